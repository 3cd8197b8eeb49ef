// Reductions and broadcasts inside one warp.
#pragma once

namespace fusedops {

constexpr int kWarpSize = 32;
constexpr unsigned int kFullMask = 0xffffffffu;

// The result is right in every lane.
template <typename T, typename Op>
__device__ __forceinline__ T warp_all_reduce(T value, Op op) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    value = op(value, __shfl_xor_sync(kFullMask, value, offset));
  }
  return value;
}

template <typename T>
__device__ __forceinline__ T warp_broadcast(T value, int source_lane) {
  return __shfl_sync(kFullMask, value, source_lane);
}

}  // namespace fusedops
