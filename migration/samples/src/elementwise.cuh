// Grid-stride loop over arrays of float. Include it after
//   struct ElementOp { __device__ float operator()(float, float) const; }
//   constexpr int kThreads, kPrefetchAhead
// and fusedops/ptx.cuh. One element operation a translation unit.
#pragma once

__global__ void __launch_bounds__(kThreads) elementwise_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out, int n) {
  const ElementOp op{};
  const int stride = gridDim.x * kThreads;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += stride) {
    if (i + kPrefetchAhead * stride < n) {
      fusedops::ptx::prefetch_l2(a + i + kPrefetchAhead * stride);
      fusedops::ptx::prefetch_l2(b + i + kPrefetchAhead * stride);
    }
    out[i] = op(fusedops::ptx::load_streaming(a + i), fusedops::ptx::load_streaming(b + i));
  }
}
