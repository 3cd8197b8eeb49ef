// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// Votes within a logical warp of 32 lanes. Only active lanes that the mask names count. Part of warp.h.
#pragma once
#include "warp_lanes.h"

namespace amdflow {

__device__ inline unsigned int activemask() { return detail::of_warp(wave::ballot(true)); }

// Legacy forms: all active lanes of the warp take part.
__device__ inline unsigned int ballot(int predicate) { return detail::of_warp(wave::ballot(predicate != 0)); }
__device__ inline int any(int predicate) { return ballot(predicate) != 0u; }
__device__ inline int all(int predicate) { return ballot(!predicate) == 0u; }

template <typename Mask> __device__ inline unsigned int ballot_sync(Mask mask, int predicate) {
  return ballot(predicate) & static_cast<unsigned int>(mask);
}

template <typename Mask> __device__ inline int any_sync(Mask mask, int predicate) {
  return ballot_sync(mask, predicate) != 0u;
}

template <typename Mask> __device__ inline int all_sync(Mask mask, int predicate) {
  return ballot_sync(mask, !predicate) == 0u;
}

// Whether the predicate is the same in all lanes that take part.
template <typename Mask> __device__ inline int uni_sync(Mask mask, int predicate) {
  return all_sync(mask, predicate) || !any_sync(mask, predicate);
}

// The lanes of a wave run together, so there is nothing to wait for: only memory has to be put in order.
__device__ inline void syncwarp() { wave::fence_and_barrier(); }
template <typename Mask> __device__ inline void syncwarp(Mask) { wave::fence_and_barrier(); }

}  // namespace amdflow
