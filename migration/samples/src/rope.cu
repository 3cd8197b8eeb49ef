// Rotary position embedding, in place.
#include "fusedops/check.h"
#include "fusedops/fusedops.h"

namespace fusedops {
namespace {

#if CUDART_VERSION < 11000
// Before 11 the read-only path was reached fastest through a texture reference.
texture<float2, cudaTextureType1D, cudaReadModeElementType> angle_texture;

void bind_angles(const float2* table, size_t bytes) {
  FUSEDOPS_CUDA_CHECK(cudaBindTexture(nullptr, angle_texture, table, bytes));
}

__device__ __forceinline__ float2 angle_at(const float2*, int index) {
  return tex1Dfetch(angle_texture, index);
}
#else
void bind_angles(const float2*, size_t) {}

__device__ __forceinline__ float2 angle_at(const float2* table, int index) {
  return __ldg(table + index);
}
#endif

__global__ void rope_kernel(float2* __restrict__ qk, const float2* __restrict__ table, const int* __restrict__ positions, int heads, int pairs) {
  const int token = blockIdx.x;
  const int row = positions[token] * pairs;
  float2* const vectors = qk + static_cast<size_t>(token) * heads * pairs;
  for (int i = threadIdx.x; i < heads * pairs; i += blockDim.x) {
    const float2 angle = angle_at(table, row + i % pairs);
    const float2 v = vectors[i];
    vectors[i] = make_float2(v.x * angle.x - v.y * angle.y, v.x * angle.y + v.y * angle.x);
  }
}

}  // namespace

void rope(float* qk, const float2* table, const int* positions, int tokens, int heads, int dim, int max_position, cudaStream_t stream) {
  if (dim % 2 != 0) {
    throw Error("rope: dim must be even");
  }
  if (tokens == 0) {
    return;
  }
  const int pairs = dim / 2;
  bind_angles(table, static_cast<size_t>(max_position) * pairs * sizeof(float2));
  FUSEDOPS_LAUNCH(rope_kernel, tokens, 128, 0, stream, reinterpret_cast<float2*>(qk), table, positions, heads, pairs);
}

}  // namespace fusedops
