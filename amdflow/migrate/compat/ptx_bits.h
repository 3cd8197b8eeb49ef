// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// PTX's operations on bits. Positions and lengths beyond the word are clamped or wrapped as PTX says.
#pragma once
#include "ptx_base.h"

namespace amdflow {
namespace ptx {

template <typename T> AMDFLOW_FUNCTION T bfe(T value, unsigned int position, unsigned int length) {
  using U = typename std::make_unsigned<T>::type;
  const unsigned int width = 8 * sizeof(T);
  position &= 0xff;
  length &= 0xff;
  if (length == 0) return 0;
  const U word = static_cast<U>(value);
  const unsigned int there = position < width ? width - position : 0;
  const unsigned int taken = length < there ? length : there;
  U field = position < width ? word >> position : 0;
  if (taken < width) {
    const U above = ~U(0) << taken;
    const unsigned int last = position + length - 1 < width ? position + length - 1 : width - 1;
    const bool negative = std::is_signed<T>::value && (word >> last & 1) != 0;
    field = negative ? (field | above) : (field & static_cast<U>(~above));
  }
  return static_cast<T>(field);
}

template <typename T> AMDFLOW_FUNCTION T bfi(T field, T base, unsigned int position, unsigned int length) {
  const unsigned int width = 8 * sizeof(T);
  position &= 0xff;
  length &= 0xff;
  if (length == 0 || position >= width) return base;
  const T ones = length < width ? static_cast<T>((T(1) << length) - 1) : static_cast<T>(~T(0));
  const T mask = ones << position;
  return (base & ~mask) | ((field << position) & mask);
}

// Byte `index` (0 to 7) of b:a.
AMDFLOW_FUNCTION unsigned int byte_of(unsigned int a, unsigned int b, unsigned int index) {
  return ((index < 4 ? a : b) >> (8 * (index & 3))) & 0xff;
}
AMDFLOW_FUNCTION unsigned int four_bytes(unsigned int a, unsigned int b, unsigned int i3, unsigned int i2, unsigned int i1, unsigned int i0) {
  return byte_of(a, b, i3) << 24 | byte_of(a, b, i2) << 16 | byte_of(a, b, i1) << 8 | byte_of(a, b, i0);
}

AMDFLOW_FUNCTION unsigned int prmt(unsigned int a, unsigned int b, unsigned int selector) {
  unsigned int result = 0;
  for (int place = 0; place < 4; ++place) {
    const unsigned int chosen = selector >> (4 * place);
    unsigned int byte = byte_of(a, b, chosen & 7);
    if (chosen & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * place);
  }
  return result;
}
AMDFLOW_FUNCTION unsigned int prmt_f4e(unsigned int a, unsigned int b, unsigned int c) {
  c &= 3;
  return four_bytes(a, b, c + 3, c + 2, c + 1, c);
}
AMDFLOW_FUNCTION unsigned int prmt_b4e(unsigned int a, unsigned int b, unsigned int c) {
  c &= 3;
  return four_bytes(a, b, (c + 5) & 7, (c + 6) & 7, (c + 7) & 7, c);
}
AMDFLOW_FUNCTION unsigned int prmt_rc8(unsigned int a, unsigned int b, unsigned int c) {
  c &= 3;
  return four_bytes(a, b, c, c, c, c);
}
AMDFLOW_FUNCTION unsigned int prmt_ecl(unsigned int a, unsigned int b, unsigned int c) {
  c &= 3;
  return four_bytes(a, b, 3, c > 2 ? c : 2, c > 1 ? c : 1, c);
}
AMDFLOW_FUNCTION unsigned int prmt_ecr(unsigned int a, unsigned int b, unsigned int c) {
  c &= 3;
  return four_bytes(a, b, c, c < 2 ? c : 2, c < 1 ? c : 1, 0);
}
AMDFLOW_FUNCTION unsigned int prmt_rc16(unsigned int a, unsigned int b, unsigned int c) {
  const unsigned int low = 2 * (c & 1);
  return four_bytes(a, b, low + 1, low, low + 1, low);
}

AMDFLOW_FUNCTION unsigned int shf_l_wrap(unsigned int low, unsigned int high, unsigned int count) {
  count &= 31;
  return count ? high << count | low >> (32 - count) : high;
}
AMDFLOW_FUNCTION unsigned int shf_r_wrap(unsigned int low, unsigned int high, unsigned int count) {
  count &= 31;
  return count ? high << (32 - count) | low >> count : low;
}
AMDFLOW_FUNCTION unsigned int shf_l_clamp(unsigned int low, unsigned int high, unsigned int count) {
  return count >= 32 ? low : shf_l_wrap(low, high, count);
}
AMDFLOW_FUNCTION unsigned int shf_r_clamp(unsigned int low, unsigned int high, unsigned int count) {
  return count >= 32 ? high : shf_r_wrap(low, high, count);
}

// Bit i of the table is the result for the input bits a, b, c of i = 4a + 2b + c.
AMDFLOW_FUNCTION unsigned int lop3(unsigned int a, unsigned int b, unsigned int c, unsigned int table) {
  unsigned int result = 0;
  for (unsigned int row = 0; row < 8; ++row) {
    if (table >> row & 1) result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  }
  return result;
}
template <unsigned int Table> AMDFLOW_FUNCTION unsigned int lop3(unsigned int a, unsigned int b, unsigned int c) {
  return lop3(a, b, c, Table);
}

template <typename T> AMDFLOW_FUNCTION unsigned int popc(T word) { return __builtin_popcountll(word); }
template <typename T> AMDFLOW_FUNCTION unsigned int clz(T word) {
  return word == 0 ? 8 * sizeof(T) : __builtin_clzll(word) - (64 - 8 * sizeof(T));
}
template <typename T> AMDFLOW_FUNCTION T brev(T word) {
  T result = 0;
  for (unsigned int place = 0; place < 8 * sizeof(T); ++place) {
    result = static_cast<T>(result << 1 | (word >> place & 1));
  }
  return result;
}
#ifdef __clang__
template <> AMDFLOW_FUNCTION unsigned int brev<unsigned int>(unsigned int word) { return __builtin_bitreverse32(word); }
template <> AMDFLOW_FUNCTION unsigned long long brev<unsigned long long>(unsigned long long word) {
  return __builtin_bitreverse64(word);
}
#endif

// Place of the highest bit that is not a sign bit; all ones where there is none.
template <typename T> AMDFLOW_FUNCTION unsigned int bfind(T value) {
  using U = typename std::make_unsigned<T>::type;
  const U word = value < T(0) ? static_cast<U>(~value) : static_cast<U>(value);
  return word == 0 ? ~0u : 8 * sizeof(T) - 1 - clz<U>(word);
}
template <typename T> AMDFLOW_FUNCTION unsigned int bfind_shiftamt(T value) {
  const unsigned int place = bfind<T>(value);
  return place == ~0u ? ~0u : 8 * sizeof(T) - 1 - place;
}

// The |offset|-th set bit from `base` on, upwards or downwards; all ones where there is none.
AMDFLOW_FUNCTION unsigned int fns(unsigned int mask, unsigned int base, int offset) {
  if (offset == 0) return base < 32 && (mask >> base & 1) ? base : ~0u;
  int left = offset < 0 ? -offset : offset;
  const int step = offset < 0 ? -1 : 1;
  for (int place = static_cast<int>(base); place >= 0 && place < 32; place += step) {
    if ((mask >> place & 1) && --left == 0) return static_cast<unsigned int>(place);
  }
  return ~0u;
}

template <typename T> AMDFLOW_FUNCTION T shl(T value, unsigned int count) {
  return count < 8 * sizeof(T) ? static_cast<T>(value << count) : T(0);
}
template <typename T> AMDFLOW_FUNCTION T shr(T value, unsigned int count) {
  const unsigned int most = 8 * sizeof(T) - 1;
  if (count > most) return value < T(0) ? static_cast<T>(-1) : T(0);
  return static_cast<T>(value >> count);
}
template <typename T> AMDFLOW_FUNCTION T bit_and(T a, T b) { return static_cast<T>(a & b); }
template <typename T> AMDFLOW_FUNCTION T bit_or(T a, T b) { return static_cast<T>(a | b); }
template <typename T> AMDFLOW_FUNCTION T bit_xor(T a, T b) { return static_cast<T>(a ^ b); }
template <typename T> AMDFLOW_FUNCTION T bit_not(T a) { return static_cast<T>(~a); }
template <typename T> AMDFLOW_FUNCTION T cnot(T a) { return a == T(0) ? T(1) : T(0); }

}  // namespace ptx
}  // namespace amdflow
