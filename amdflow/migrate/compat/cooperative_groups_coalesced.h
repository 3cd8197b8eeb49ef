// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// The active threads of the own logical warp of 32 lanes as a group. HIP's coalesced_threads() takes the whole wave.
#pragma once
#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>

namespace cooperative_groups {

#if defined(__HIP_PLATFORM_NVIDIA__)

__device__ inline coalesced_group coalesced_warp_threads() { return coalesced_threads(); }

#else

namespace amdflow_detail {

struct group_of_lanes : coalesced_group {
  __device__ explicit group_of_lanes(unsigned long long lanes) : coalesced_group(lanes) {}
};

}  // namespace amdflow_detail

__device__ inline coalesced_group coalesced_warp_threads() {
  const unsigned int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
  const unsigned long long warp = 0xffffffffull << (lane & 32u);
  return amdflow_detail::group_of_lanes(__builtin_amdgcn_ballot_w64(true) & warp);
}

#endif

}  // namespace cooperative_groups
