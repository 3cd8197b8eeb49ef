// GEMM without a library: a warp a 16 x 8 tile on tensor cores, or a thread an element where there are none that fit.
#include "fusedops/check.h"
#include "fusedops/fusedops.h"

namespace fusedops {
namespace {

constexpr int kTileM = 16;
constexpr int kTileN = 8;
constexpr int kTileK = 16;

__global__ void __launch_bounds__(32) tile_gemm_tensor_kernel(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ c, int n, int k) {
#if __CUDA_ARCH__ >= 800
  // The fragments' layout: a lane holds rows `group` and `group + 8` of A, row `group` of B, and columns 2 * `part`, 2 * `part` + 1.
  const int group = threadIdx.x >> 2;
  const int part = threadIdx.x & 3;
  const __half* const a_low = a + static_cast<size_t>(blockIdx.y * kTileM + group) * k + part * 2;
  const __half* const a_high = a_low + static_cast<size_t>(8) * k;
  const __half* const b_row = b + static_cast<size_t>(blockIdx.x * kTileN + group) * k + part * 2;

  float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int step = 0; step < k; step += kTileK) {
    const uint32_t a0 = *reinterpret_cast<const uint32_t*>(a_low + step);
    const uint32_t a1 = *reinterpret_cast<const uint32_t*>(a_high + step);
    const uint32_t a2 = *reinterpret_cast<const uint32_t*>(a_low + step + 8);
    const uint32_t a3 = *reinterpret_cast<const uint32_t*>(a_high + step + 8);
    const uint32_t b0 = *reinterpret_cast<const uint32_t*>(b_row + step);
    const uint32_t b1 = *reinterpret_cast<const uint32_t*>(b_row + step + 8);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }

  float* const c_low = c + static_cast<size_t>(blockIdx.y * kTileM + group) * n + blockIdx.x * kTileN + part * 2;
  float* const c_high = c_low + static_cast<size_t>(8) * n;
  *reinterpret_cast<float2*>(c_low) = make_float2(acc[0], acc[1]);
  *reinterpret_cast<float2*>(c_high) = make_float2(acc[2], acc[3]);
#endif
}

__global__ void tile_gemm_simple_kernel(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ c, int n, int k) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y;
  if (col >= n) {
    return;
  }
  float acc = 0.0f;
  for (int i = 0; i < k; ++i) {
    acc += __half2float(a[static_cast<size_t>(row) * k + i]) * __half2float(b[static_cast<size_t>(col) * k + i]);
  }
  c[static_cast<size_t>(row) * n + col] = acc;
}

}  // namespace

void tile_gemm(const __half* a, const __half* b, float* c, int m, int n, int k, cudaStream_t stream) {
  if (m % kTileM != 0 || n % kTileN != 0 || k % kTileK != 0) {
    throw Error("tile_gemm: m and k must be multiples of 16, n of 8");
  }
  if (m == 0 || n == 0) {
    return;
  }
  int device = 0;
  int major = 0;
  FUSEDOPS_CUDA_CHECK(cudaGetDevice(&device));
  FUSEDOPS_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  if (major >= 8) {
    const dim3 grid(n / kTileN, m / kTileM);
    FUSEDOPS_LAUNCH(tile_gemm_tensor_kernel, grid, 32, 0, stream, a, b, c, n, k);
  } else {
    const dim3 grid((n + 127) / 128, m);
    FUSEDOPS_LAUNCH(tile_gemm_simple_kernel, grid, 128, 0, stream, a, b, c, n, k);
  }
}

}  // namespace fusedops
