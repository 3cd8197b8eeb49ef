// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// cooperative_groups/scan.h for ROCm versions without it.
#pragma once
#include "cooperative_groups_reduce.h"

namespace cooperative_groups {

template <typename Group, typename T, typename Operation>
__device__ inline T inclusive_scan(const Group& group, T value, Operation operation) {
  const unsigned int rank = group.thread_rank();
  for (unsigned int step = 1; step < group.size(); step *= 2) {
    const T other = group.shfl_up(value, step);
    value = rank >= step ? operation(other, value) : value;
  }
  return value;
}

template <typename Group, typename T>
__device__ inline T inclusive_scan(const Group& group, T value) { return inclusive_scan(group, value, plus<T>()); }

template <typename Group, typename T, typename Operation>
__device__ inline T exclusive_scan(const Group& group, T value, Operation operation) {
  const T before = group.shfl_up(inclusive_scan(group, value, operation), 1);
  return group.thread_rank() == 0 ? T{} : before;
}

template <typename Group, typename T>
__device__ inline T exclusive_scan(const Group& group, T value) { return exclusive_scan(group, value, plus<T>()); }

}  // namespace cooperative_groups
