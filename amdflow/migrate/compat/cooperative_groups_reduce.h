// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// cooperative_groups/reduce.h for ROCm versions without it: every thread of the group gets the result.
#pragma once
#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>

namespace cooperative_groups {

template <typename T = void> struct plus { __device__ T operator()(T a, T b) const { return a + b; } };
template <typename T = void> struct less { __device__ T operator()(T a, T b) const { return b < a ? b : a; } };
template <typename T = void> struct greater { __device__ T operator()(T a, T b) const { return a < b ? b : a; } };
template <typename T = void> struct bit_and { __device__ T operator()(T a, T b) const { return a & b; } };
template <typename T = void> struct bit_or { __device__ T operator()(T a, T b) const { return a | b; } };
template <typename T = void> struct bit_xor { __device__ T operator()(T a, T b) const { return a ^ b; } };

// A tile has a power of two of threads, all of them in one wave: a butterfly reaches every thread.
template <unsigned int Size, typename Parent, typename T, typename Operation>
__device__ inline T reduce(const thread_block_tile<Size, Parent>& group, T value, Operation operation) {
  for (unsigned int step = Size / 2; step > 0; step /= 2) {
    value = operation(value, group.shfl_xor(value, step));
  }
  return value;
}

// A coalesced group may have any number of threads: each adds the values in rank order.
template <typename T, typename Operation>
__device__ inline T reduce(const coalesced_group& group, T value, Operation operation) {
  T total = group.shfl(value, 0);
  for (unsigned int rank = 1; rank < group.size(); ++rank) {
    total = operation(total, group.shfl(value, rank));
  }
  return total;
}

}  // namespace cooperative_groups
