// RMSNorm, one block a row, two halves a load.
#include "fusedops/check.h"
#include "fusedops/fusedops.h"

namespace fusedops {
namespace {

#define FUSEDOPS_BLOCK_THREADS 256
using Accumulator = float;
#include "block_reduce.inl"

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Four blocks of 256 threads fit a multiprocessor's registers.
__global__ void __launch_bounds__(FUSEDOPS_BLOCK_THREADS, 4)
rmsnorm_kernel(const __half2* __restrict__ x, const __half2* __restrict__ weight, __half2* __restrict__ y, int pairs, float eps) {
  const size_t start = static_cast<size_t>(blockIdx.x) * pairs;

  float squares = 0.0f;
  for (int i = threadIdx.x; i < pairs; i += FUSEDOPS_BLOCK_THREADS) {
    const float2 v = __half22float2(__ldg(x + start + i));
    squares += v.x * v.x + v.y * v.y;
  }
  squares = block_reduce(squares, 0.0f, Add());
  const float scale = rsqrtf(squares / (2 * pairs) + eps);

  for (int i = threadIdx.x; i < pairs; i += FUSEDOPS_BLOCK_THREADS) {
    const float2 v = __half22float2(__ldg(x + start + i));
    const float2 w = __half22float2(__ldg(weight + i));
    y[start + i] = __floats2half2_rn(v.x * scale * w.x, v.y * scale * w.y);
  }
}

}  // namespace

void rmsnorm(const __half* x, const __half* weight, __half* y, int rows, int cols, float eps, cudaStream_t stream) {
  if (cols % 2 != 0) {
    throw Error("rmsnorm: cols must be even");
  }
  if (rows == 0) {
    return;
  }
  FUSEDOPS_LAUNCH(rmsnorm_kernel, rows, FUSEDOPS_BLOCK_THREADS, 0, stream, reinterpret_cast<const __half2*>(x),
                  reinterpret_cast<const __half2*>(weight), reinterpret_cast<__half2*>(y), cols / 2, eps);
}

}  // namespace fusedops
