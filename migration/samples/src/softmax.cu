// Softmax. Short rows: one warp each, in one pass (the running maximum is corrected as it grows). Long rows: one block
// each, the row held in shared memory.
#include <cfloat>

#include "fusedops/check.h"
#include "fusedops/fusedops.h"
#include "fusedops/warp.cuh"

namespace fusedops {
namespace {

#define FUSEDOPS_BLOCK_THREADS 256
using Accumulator = float;
#include "block_reduce.inl"

constexpr int kRowsPerBlock = 4;
constexpr int kShortRow = 1024;
constexpr int kDefaultSharedBytes = 48 * 1024;  // what a kernel may have without asking
constexpr float kLog2E = 1.4426950408889634f;

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};

struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// blockDim is (kWarpSize, kRowsPerBlock): threadIdx.x is the lane, threadIdx.y the warp.
__global__ void __launch_bounds__(kWarpSize* kRowsPerBlock, 8) softmax_short_kernel(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
  const int row = blockIdx.x * kRowsPerBlock + threadIdx.y;
  if (row >= rows) {
    return;  // the whole warp leaves
  }
  x += static_cast<size_t>(row) * cols;
  y += static_cast<size_t>(row) * cols;

  float top = -FLT_MAX;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += kWarpSize) {
    const float v = x[c] * kLog2E;
    const float higher = fmaxf(top, v);
    sum = sum * exp2f(top - higher) + exp2f(v - higher);
    top = higher;
  }
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
    const float other_top = __shfl_down_sync(kFullMask, top, offset);
    const float other_sum = __shfl_down_sync(kFullMask, sum, offset);
    const float higher = fmaxf(top, other_top);
    sum = sum * exp2f(top - higher) + other_sum * exp2f(other_top - higher);
    top = higher;
  }
  top = warp_broadcast(top, 0);
  sum = warp_broadcast(sum, 0);

  for (int c = threadIdx.x; c < cols; c += kWarpSize) {
    y[c] = exp2f(x[c] * kLog2E - top) / sum;
  }
}

__global__ void __launch_bounds__(FUSEDOPS_BLOCK_THREADS) softmax_long_kernel(const float* __restrict__ x, float* __restrict__ y, int cols) {
  extern __shared__ float row_cache[];
  x += static_cast<size_t>(blockIdx.x) * cols;
  y += static_cast<size_t>(blockIdx.x) * cols;

  float top = -FLT_MAX;
  for (int c = threadIdx.x; c < cols; c += FUSEDOPS_BLOCK_THREADS) {
    row_cache[c] = x[c] * kLog2E;
    top = fmaxf(top, row_cache[c]);
  }
  top = block_reduce(top, -FLT_MAX, Max());

  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += FUSEDOPS_BLOCK_THREADS) {
    row_cache[c] = exp2f(row_cache[c] - top);
    sum += row_cache[c];
  }
  sum = block_reduce(sum, 0.0f, Add());

  for (int c = threadIdx.x; c < cols; c += FUSEDOPS_BLOCK_THREADS) {
    y[c] = row_cache[c] / sum;
  }
}

}  // namespace

void softmax(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
  if (cols > kSoftmaxMaxCols) {
    throw Error("softmax: cols must be at most " + std::to_string(kSoftmaxMaxCols));
  }
  if (rows == 0 || cols == 0) {
    return;
  }
  if (cols <= kShortRow) {
    const dim3 block(kWarpSize, kRowsPerBlock);
    const int blocks = (rows + kRowsPerBlock - 1) / kRowsPerBlock;
    FUSEDOPS_LAUNCH(softmax_short_kernel, blocks, block, 0, stream, x, y, rows, cols);
    return;
  }
  const int bytes = cols * static_cast<int>(sizeof(float));  // up to 96 KiB
  if (bytes > kDefaultSharedBytes) {
    FUSEDOPS_CUDA_CHECK(cudaFuncSetAttribute(softmax_long_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  }
  FUSEDOPS_LAUNCH(softmax_long_kernel, rows, FUSEDOPS_BLOCK_THREADS, bytes, stream, x, y, cols);
}

}  // namespace fusedops
