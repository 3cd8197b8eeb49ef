// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// All that the logical warps of warp.h need of the hardware. A wave has 32 or 64 lanes.
#pragma once

#if defined(__HIPCC__)  // a host compiler has no use for them
#include <hip/hip_runtime.h>
#define AMDFLOW_HAS_WAVES

#if defined(__has_attribute)
#if __has_attribute(maybe_undef)
#define AMDFLOW_MAYBE_UNDEFINED __attribute__((maybe_undef))
#endif
#endif
#ifndef AMDFLOW_MAYBE_UNDEFINED
#define AMDFLOW_MAYBE_UNDEFINED
#endif

namespace amdflow {
namespace wave {

// Position of this thread in its wave, from 0.
__device__ inline unsigned int lane() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
}

// Lane that the logical warp of this thread starts at: 0 or 32.
__device__ inline unsigned int warp_start() { return __builtin_amdgcn_wavefrontsize() == 64 ? lane() & 32u : 0u; }

// One bit for each active lane whose predicate holds.
__device__ inline unsigned long long ballot(bool predicate) { return __builtin_amdgcn_ballot_w64(predicate); }

// The word that the active lane called source passes.
__device__ inline unsigned int permute(AMDFLOW_MAYBE_UNDEFINED unsigned int word, unsigned int source) {
  return static_cast<unsigned int>(
      __builtin_amdgcn_ds_bpermute(static_cast<int>(source << 2), static_cast<int>(word)));
}

// What lanes of the wave wrote before it, all of them can read behind it.
__device__ inline void fence_and_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

// Number of this thread in its block, x running fastest.
__device__ inline unsigned int thread_in_block() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

}  // namespace wave
}  // namespace amdflow

#endif  // __HIPCC__
