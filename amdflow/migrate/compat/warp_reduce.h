// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// Reductions over the lanes of a logical warp that a mask names; each of them gets the result. Part of warp.h.
#pragma once
#include "warp_shuffle.h"
#include "warp_vote.h"

namespace amdflow {
namespace detail {

// Each lane takes in what the next member above it has gathered, then looks twice as far. The lowest member ends with
// all of it. No branch on the mask: lanes with different masks may call it together.
template <typename T, typename Operation>
__device__ inline T reduce_members(unsigned int members, T value, Operation operation) {
  const unsigned int none = 32u, above = members & lanemask_gt();
  unsigned int next = above != 0u ? static_cast<unsigned int>(__builtin_ctz(above)) : none;
  for (int step = 0; step < 5; ++step) {
    const unsigned int source = next != none ? next : lane_id();
    const T other = from_lane(value, source);
    const unsigned int beyond = from_lane(next, source);
    value = next != none ? operation(value, other) : value;
    next = beyond;
  }
  const unsigned int lowest = members != 0u ? static_cast<unsigned int>(__builtin_ctz(members)) : lane_id();
  return from_lane(value, lowest);
}

template <typename T, typename Mask, typename Operation>
__device__ inline T reduce_sync(Mask mask, T value, Operation operation) {
  const unsigned int members = activemask() & static_cast<unsigned int>(mask);
  if (members != ~0u) {
    return reduce_members(members, value, operation);
  }
  for (int step = 16; step > 0; step /= 2) {
    value = operation(value, shfl_xor(value, step));
  }
  return value;
}

struct add { template <typename T> __device__ T operator()(T a, T b) const { return a + b; } };
template <> __device__ inline int add::operator()(int a, int b) const {
  return static_cast<int>(static_cast<unsigned int>(a) + static_cast<unsigned int>(b));
}
struct minimum { template <typename T> __device__ T operator()(T a, T b) const { return b < a ? b : a; } };
struct maximum { template <typename T> __device__ T operator()(T a, T b) const { return a < b ? b : a; } };
struct bit_and { template <typename T> __device__ T operator()(T a, T b) const { return a & b; } };
struct bit_or { template <typename T> __device__ T operator()(T a, T b) const { return a | b; } };
struct bit_xor { template <typename T> __device__ T operator()(T a, T b) const { return a ^ b; } };

}  // namespace detail

template <typename Mask, typename T> __device__ inline detail::promoted_t<T> reduce_add_sync(Mask mask, T value) {
  return detail::reduce_sync<detail::promoted_t<T>>(mask, value, detail::add());
}

template <typename Mask, typename T> __device__ inline detail::promoted_t<T> reduce_min_sync(Mask mask, T value) {
  return detail::reduce_sync<detail::promoted_t<T>>(mask, value, detail::minimum());
}

template <typename Mask, typename T> __device__ inline detail::promoted_t<T> reduce_max_sync(Mask mask, T value) {
  return detail::reduce_sync<detail::promoted_t<T>>(mask, value, detail::maximum());
}

// CUDA has these for unsigned int alone; whatever converts to it is taken.
template <typename Mask> __device__ inline unsigned int reduce_and_sync(Mask mask, unsigned int value) {
  return detail::reduce_sync<unsigned int>(mask, value, detail::bit_and());
}

template <typename Mask> __device__ inline unsigned int reduce_or_sync(Mask mask, unsigned int value) {
  return detail::reduce_sync<unsigned int>(mask, value, detail::bit_or());
}

template <typename Mask> __device__ inline unsigned int reduce_xor_sync(Mask mask, unsigned int value) {
  return detail::reduce_sync<unsigned int>(mask, value, detail::bit_xor());
}

}  // namespace amdflow
