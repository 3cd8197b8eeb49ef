// Whole-array reductions: a sum, and a count by ballot.
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

__global__ void __launch_bounds__(FUSEDOPS_BLOCK_THREADS, 8) sum_kernel(const float* __restrict__ x, float* __restrict__ out, int n) {
  float total = 0.0f;
  for (int i = blockIdx.x * FUSEDOPS_BLOCK_THREADS + threadIdx.x; i < n; i += gridDim.x * FUSEDOPS_BLOCK_THREADS) {
    total += x[i];
  }
  total = block_reduce(total, 0.0f, Add());
  if (threadIdx.x == 0) {
    atomicAdd(out, total);
  }
}

__global__ void count_nonfinite_kernel(const float* __restrict__ x, unsigned int* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const bool odd = i < n && !isfinite(x[i]);
  const int found = __popc(__ballot_sync(0xffffffff, odd));
  if (threadIdx.x % 32 == 0 && found > 0) {
    atomicAdd(out, found);
  }
}

}  // namespace

void sum(const float* x, float* out, int n, cudaStream_t stream) {
  if (n == 0) {
    return;
  }
  int device = 0;
  cudaDeviceProp properties;
  FUSEDOPS_CUDA_CHECK(cudaGetDevice(&device));
  FUSEDOPS_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  const int wanted = (n + FUSEDOPS_BLOCK_THREADS - 1) / FUSEDOPS_BLOCK_THREADS;
  const int resident = properties.multiProcessorCount * 8;
  FUSEDOPS_LAUNCH(sum_kernel, wanted < resident ? wanted : resident, FUSEDOPS_BLOCK_THREADS, 0, stream, x, out, n);
}

void count_nonfinite(const float* x, unsigned int* out, int n, cudaStream_t stream) {
  if (n == 0) {
    return;
  }
  FUSEDOPS_LAUNCH(count_nonfinite_kernel, (n + 255) / 256, 256, 0, stream, x, out, n);
}

}  // namespace fusedops
