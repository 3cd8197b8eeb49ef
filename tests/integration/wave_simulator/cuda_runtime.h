// Stands for CUDA's runtime header when CUDA kernels run in the simulator, with warps of 32 lanes.
#pragma once
#include "cuda_reference.h"
#include "device_language.h"

constexpr int warpSize = 32;

namespace cuda_warp {

__device__ inline unsigned int lane() { return simulator::self().lane; }
inline unsigned int members(unsigned int mask, const simulator::Meeting& meeting) {
  return mask & static_cast<unsigned int>(meeting.active);
}

template <typename T> __device__ inline T shuffle(reference::Mode mode, T value, unsigned int operand, int width) {
  const simulator::Meeting& meeting = simulator::meet(value);
  return meeting.of<T>(reference::shuffle_source(mode, lane(), operand, width));
}

template <typename T, typename Operation> __device__ inline T reduce(unsigned int mask, T value, Operation operation) {
  const simulator::Meeting& meeting = simulator::meet(value);
  return reference::reduce<T>(members(mask, meeting), [&](unsigned int i) { return meeting.of<T>(i); }, operation);
}

}  // namespace cuda_warp

template <typename T> __device__ inline T __shfl_sync(unsigned int, T value, int source, int width = 32) {
  return cuda_warp::shuffle(reference::Mode::index, value, static_cast<unsigned int>(source), width);
}
template <typename T> __device__ inline T __shfl_up_sync(unsigned int, T value, unsigned int delta, int width = 32) {
  return cuda_warp::shuffle(reference::Mode::up, value, delta, width);
}
template <typename T> __device__ inline T __shfl_down_sync(unsigned int, T value, unsigned int delta, int width = 32) {
  return cuda_warp::shuffle(reference::Mode::down, value, delta, width);
}
template <typename T> __device__ inline T __shfl_xor_sync(unsigned int, T value, int lane_mask, int width = 32) {
  return cuda_warp::shuffle(reference::Mode::butterfly, value, static_cast<unsigned int>(lane_mask), width);
}

__device__ inline unsigned int __ballot_sync(unsigned int mask, int predicate) {
  const simulator::Meeting& meeting = simulator::meet(predicate);
  return reference::ballot(cuda_warp::members(mask, meeting), [&](unsigned int i) { return meeting.of<int>(i) != 0; });
}
__device__ inline int __any_sync(unsigned int mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
__device__ inline int __all_sync(unsigned int mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
__device__ inline unsigned int __activemask() { return static_cast<unsigned int>(simulator::meet(0).active); }
__device__ inline void __syncwarp(unsigned int = ~0u) { simulator::meet(0); }

template <typename T> __device__ inline unsigned int __match_any_sync(unsigned int mask, T value) {
  const simulator::Meeting& meeting = simulator::meet(value);
  return reference::match_any(cuda_warp::members(mask, meeting), cuda_warp::lane(),
                              [&](unsigned int i) { return meeting.of<T>(i); });
}

template <typename T> __device__ inline T __reduce_add_sync(unsigned int mask, T value) {
  return cuda_warp::reduce(mask, value, [](T a, T b) { return a + b; });
}
template <typename T> __device__ inline T __reduce_max_sync(unsigned int mask, T value) {
  return cuda_warp::reduce(mask, value, [](T a, T b) { return a < b ? b : a; });
}
__device__ inline unsigned int __reduce_or_sync(unsigned int mask, unsigned int value) {
  return cuda_warp::reduce(mask, value, [](unsigned int a, unsigned int b) { return a | b; });
}
