// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// Lanes of a logical warp that hold the same bits. Part of warp.h.
#pragma once
#include "warp_vote.h"

namespace amdflow {

// One ballot for each bit of the value: no branch, so lanes with different masks may call it together.
template <typename Mask, typename T> __device__ inline unsigned int match_any_sync(Mask mask, T value) {
  const detail::promoted_t<T> compared = value;
  static_assert(sizeof(compared) == 4 || sizeof(compared) == 8, "match compares values of 32 or 64 bits");
  unsigned int words[sizeof(compared) / 4];
  __builtin_memcpy(words, &compared, sizeof(compared));
  unsigned int same = activemask() & static_cast<unsigned int>(mask);
  for (unsigned int word : words) {
    for (unsigned int bit = 0; bit < 32; ++bit) {
      const unsigned int is_set = (word >> bit) & 1u;
      same &= ballot(static_cast<int>(is_set)) ^ (is_set - 1u);
    }
  }
  return same;
}

// The lanes that take part if all of them hold the same bits, else 0.
template <typename Mask, typename T>
__device__ inline unsigned int match_all_sync(Mask mask, T value, int* predicate) {
  const unsigned int members = activemask() & static_cast<unsigned int>(mask);
  const bool same = match_any_sync(mask, value) == members;
  *predicate = all_sync(mask, same);
  return *predicate ? members : 0u;
}

}  // namespace amdflow
