// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// PTX's instructions across the lanes of a logical warp of 32.
#pragma once
#include "ptx_base.h"
#include "warp.h"

namespace amdflow {
namespace ptx {

// The lane that shfl reads from, as PTX defines it: c holds the clamp in bits 0 to 4 and the segment mask in bits 8 to 12.
// `valid` tells whether it lies in the segment.
namespace detail {
enum class direction { up, down, bfly, idx };
__device__ inline unsigned int source_lane(direction way, unsigned int b, unsigned int c, bool& valid) {
  const unsigned int lane = lane_id(), segment = c >> 8 & 31, clamp = c & 31;
  const unsigned int most = (lane & segment) | (clamp & ~segment);
  b &= 31;
  unsigned int source = lane;
  switch (way) {
    case direction::up:
      source = lane - b;
      valid = static_cast<int>(source) >= static_cast<int>(most);
      break;
    case direction::down:
      source = lane + b;
      valid = source <= most;
      break;
    case direction::bfly:
      source = lane ^ b;
      valid = source <= most;
      break;
    case direction::idx:
      source = (lane & segment) | (b & ~segment);
      valid = source <= most;
      break;
  }
  return valid ? source & 31 : lane;
}
template <typename T> __device__ inline T shuffle(direction way, T value, unsigned int b, unsigned int c, bool& valid) {
  return amdflow::detail::from_lane<T>(value, source_lane(way, b, c, valid));
}
}  // namespace detail
#define AMDFLOW_PTX_SHUFFLE(way)                                                                                     \
  __device__ inline unsigned int shfl_##way(unsigned int value, unsigned int b, unsigned int c, bool& valid) {       \
    return detail::shuffle<unsigned int>(detail::direction::way, value, b, c, valid);                                \
  }                                                                                                                  \
  __device__ inline unsigned int shfl_##way(unsigned int value, unsigned int b, unsigned int c) {                    \
    bool valid = false;                                                                                              \
    return shfl_##way(value, b, c, valid);                                                                           \
  }
AMDFLOW_PTX_SHUFFLE(up)
AMDFLOW_PTX_SHUFFLE(down)
AMDFLOW_PTX_SHUFFLE(bfly)
AMDFLOW_PTX_SHUFFLE(idx)
#undef AMDFLOW_PTX_SHUFFLE

__device__ inline unsigned int vote_ballot(bool predicate, unsigned int mask) { return ballot_sync(mask, predicate); }
__device__ inline bool vote_any(bool predicate, unsigned int mask) { return any_sync(mask, predicate) != 0; }
__device__ inline bool vote_all(bool predicate, unsigned int mask) { return all_sync(mask, predicate) != 0; }
__device__ inline bool vote_uni(bool predicate, unsigned int mask) { return uni_sync(mask, predicate) != 0; }
template <typename T> __device__ inline unsigned int match_all(T value, unsigned int mask, bool& same) {
  int all_same = 0;
  const unsigned int members = match_all_sync(mask, value, &all_same);
  same = all_same != 0;
  return members;
}
// One lane of the mask: the lowest that is there.
__device__ inline unsigned int elect(unsigned int mask, bool& chosen) {
  const unsigned int leader = __builtin_ctz(activemask() & mask);
  chosen = leader == lane_id();
  return leader;
}

}  // namespace ptx
}  // namespace amdflow
