// CUDA's warp functions for 32 lanes, written down from the PTX manual's description of shfl, vote, match and redux: plain
// loops over what the 32 lanes of a warp bring. Used on recorded values (namespace reference) and by cuda_runtime.h.
#pragma once
#include "simulator.h"

namespace reference {

// The lane that shfl reads from, by the manual's own formula over the operands b (lane, delta or mask) and c.
enum class Mode { up, down, butterfly, index };

inline unsigned int shuffle_source(Mode mode, unsigned int lane, unsigned int operand, int width) {
  const int clamp = mode == Mode::up ? 0 : 31;
  const int segment_mask = (32 - width) & 31;
  const int b = static_cast<int>(operand & 31), own = static_cast<int>(lane);
  const int largest = (own & segment_mask) | (clamp & ~segment_mask);
  const int smallest = own & segment_mask;
  int source = 0;
  bool is_inside = false;
  switch (mode) {
    case Mode::up: source = own - b; is_inside = source >= largest; break;
    case Mode::down: source = own + b; is_inside = source <= largest; break;
    case Mode::butterfly: source = own ^ b; is_inside = source <= largest; break;
    case Mode::index: source = smallest | (b & ~segment_mask); is_inside = source <= largest; break;
  }
  return static_cast<unsigned int>(is_inside ? source : own);
}

// members: lanes of the mask that are there. value(i) is what lane i brings.
template <typename Value> unsigned int ballot(unsigned int members, Value value) {
  unsigned int votes = 0;
  for (unsigned int i = 0; i < 32; ++i) {
    if ((members >> i & 1) != 0 && value(i)) votes |= 1u << i;
  }
  return votes;
}

template <typename T> bool same_bits(const T& a, const T& b) { return std::memcmp(&a, &b, sizeof(T)) == 0; }

template <typename Value> unsigned int match_any(unsigned int members, unsigned int lane, Value value) {
  return ballot(members, [&](unsigned int i) { return same_bits(value(i), value(lane)); });
}

template <typename T, typename Value, typename Operation>
T reduce(unsigned int members, Value value, Operation operation) {
  bool is_first = true;
  T result{};
  for (unsigned int i = 0; i < 32; ++i) {
    if ((members >> i & 1) == 0) continue;
    result = is_first ? value(i) : operation(result, value(i));
    is_first = false;
  }
  return result;
}

}  // namespace reference
