// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// Where a thread stands in its logical warp of 32 lanes. Part of warp.h.
#pragma once
#include "warp_size.h"
#include "wave_primitives.h"

namespace amdflow {

// Lane of this thread in its warp, 0 to 31: what PTX calls %laneid.
__device__ inline unsigned int lane_id() { return wave::lane() & 31u; }

// Number of this thread's warp in its block: what PTX calls %warpid.
__device__ inline unsigned int warp_id() { return wave::thread_in_block() / warp_size; }

// Masks of lanes relative to the own one: %lanemask_eq and its kin.
__device__ inline unsigned int lanemask_eq() { return 1u << lane_id(); }
__device__ inline unsigned int lanemask_lt() { return (1u << lane_id()) - 1u; }
__device__ inline unsigned int lanemask_le() { return (2u << lane_id()) - 1u; }
__device__ inline unsigned int lanemask_gt() { return ~lanemask_le(); }
__device__ inline unsigned int lanemask_ge() { return ~lanemask_lt(); }

namespace detail {

// The bits of the own warp in a mask of the wave.
__device__ inline unsigned int of_warp(unsigned long long wave_mask) {
  return static_cast<unsigned int>(wave_mask >> wave::warp_start());
}

// What the given lane of the own warp passes as value: any type that can be copied byte by byte.
template <typename T> __device__ inline T from_lane(AMDFLOW_MAYBE_UNDEFINED T value, unsigned int lane) {
  constexpr unsigned int count = (sizeof(T) + 3) / 4;
  unsigned int words[count] = {};
  __builtin_memcpy(words, static_cast<const void*>(&value), sizeof(T));
  const unsigned int source = wave::warp_start() + lane;
  for (unsigned int index = 0; index < count; ++index) {
    words[index] = wave::permute(words[index], source);
  }
  __builtin_memcpy(static_cast<void*>(&value), words, sizeof(T));
  return value;
}

// CUDA has no overloads for integers below int: they are promoted.
template <typename T> struct promoted { using type = T; };
template <> struct promoted<bool> { using type = int; };
template <> struct promoted<char> { using type = int; };
template <> struct promoted<signed char> { using type = int; };
template <> struct promoted<unsigned char> { using type = int; };
template <> struct promoted<short> { using type = int; };
template <> struct promoted<unsigned short> { using type = int; };
template <typename T> using promoted_t = typename promoted<T>::type;

}  // namespace detail
}  // namespace amdflow
