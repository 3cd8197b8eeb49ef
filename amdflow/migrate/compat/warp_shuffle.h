// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// Shuffles within a logical warp of 32 lanes, or within segments of it that the width names. Part of warp.h.
#pragma once
#include "warp_lanes.h"

namespace amdflow {
namespace detail {

// Bits of a lane number that name its segment. Of widths and distances the low five bits count, as in PTX's shfl.
__device__ inline unsigned int segment_bits(int width) { return (32u - static_cast<unsigned int>(width)) & 31u; }

// First and last lane of the own segment.
__device__ inline unsigned int first_lane(int width) { return lane_id() & segment_bits(width); }
__device__ inline unsigned int last_lane(int width) { return first_lane(width) | (~segment_bits(width) & 31u); }

// The lane to read from. A lane outside the segment is replaced by the own one.
__device__ inline unsigned int lane_at(int source, int width) {
  return first_lane(width) | (static_cast<unsigned int>(source) & ~segment_bits(width) & 31u);
}

__device__ inline unsigned int lane_above(unsigned int delta, int width) {
  const unsigned int lane = lane_id(), source = lane + (delta & 31u);
  return source <= last_lane(width) ? source : lane;
}

__device__ inline unsigned int lane_below(unsigned int delta, int width) {
  const unsigned int lane = lane_id(), distance = delta & 31u;
  return lane >= first_lane(width) + distance ? lane - distance : lane;
}

__device__ inline unsigned int lane_across(int lane_mask, int width) {
  const unsigned int lane = lane_id(), source = lane ^ (static_cast<unsigned int>(lane_mask) & 31u);
  return source <= last_lane(width) ? source : lane;
}

}  // namespace detail

template <typename T>
__device__ inline detail::promoted_t<T> shfl(AMDFLOW_MAYBE_UNDEFINED T value, int source, int width = warp_size) {
  return detail::from_lane<detail::promoted_t<T>>(value, detail::lane_at(source, width));
}

template <typename T>
__device__ inline detail::promoted_t<T> shfl_up(AMDFLOW_MAYBE_UNDEFINED T value, unsigned int delta,
                                                int width = warp_size) {
  return detail::from_lane<detail::promoted_t<T>>(value, detail::lane_below(delta, width));
}

template <typename T>
__device__ inline detail::promoted_t<T> shfl_down(AMDFLOW_MAYBE_UNDEFINED T value, unsigned int delta,
                                                  int width = warp_size) {
  return detail::from_lane<detail::promoted_t<T>>(value, detail::lane_above(delta, width));
}

template <typename T>
__device__ inline detail::promoted_t<T> shfl_xor(AMDFLOW_MAYBE_UNDEFINED T value, int lane_mask,
                                                 int width = warp_size) {
  return detail::from_lane<detail::promoted_t<T>>(value, detail::lane_across(lane_mask, width));
}

// The mask of the _sync forms says which lanes arrive. They run together, so there is nothing to wait for.
template <typename Mask, typename T>
__device__ inline detail::promoted_t<T> shfl_sync(Mask, AMDFLOW_MAYBE_UNDEFINED T value, int source,
                                                  int width = warp_size) {
  return shfl(value, source, width);
}

template <typename Mask, typename T>
__device__ inline detail::promoted_t<T> shfl_up_sync(Mask, AMDFLOW_MAYBE_UNDEFINED T value, unsigned int delta,
                                                     int width = warp_size) {
  return shfl_up(value, delta, width);
}

template <typename Mask, typename T>
__device__ inline detail::promoted_t<T> shfl_down_sync(Mask, AMDFLOW_MAYBE_UNDEFINED T value, unsigned int delta,
                                                       int width = warp_size) {
  return shfl_down(value, delta, width);
}

template <typename Mask, typename T>
__device__ inline detail::promoted_t<T> shfl_xor_sync(Mask, AMDFLOW_MAYBE_UNDEFINED T value, int lane_mask,
                                                      int width = warp_size) {
  return shfl_xor(value, lane_mask, width);
}

}  // namespace amdflow
