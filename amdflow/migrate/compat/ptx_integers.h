// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// PTX's arithmetic on integers. Sums and products wrap; `carry` is PTX's condition code.
#pragma once
#include "ptx_base.h"

namespace amdflow {
namespace ptx {
namespace detail {
template <typename T> struct twice;
template <> struct twice<unsigned short> { using type = unsigned int; };
template <> struct twice<short> { using type = int; };
template <> struct twice<unsigned int> { using type = unsigned long long; };
template <> struct twice<int> { using type = long long; };
template <> struct twice<unsigned long long> { using type = unsigned __int128; };
template <> struct twice<long long> { using type = __int128; };
template <typename T> using unsigned_of = typename std::make_unsigned<T>::type;
// At least 32 bits, so that products of 16-bit numbers do not overflow an int.
template <typename T> using worker = typename std::conditional<sizeof(T) < 4, unsigned int, unsigned_of<T>>::type;
}  // namespace detail

template <typename T> AMDFLOW_FUNCTION T int_add(T a, T b) {
  using U = detail::worker<T>;
  return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
}
template <typename T> AMDFLOW_FUNCTION T int_sub(T a, T b) {
  using U = detail::worker<T>;
  return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
}
template <typename T> AMDFLOW_FUNCTION T mul_lo(T a, T b) {
  using U = detail::worker<T>;
  return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
}
template <typename T> AMDFLOW_FUNCTION typename detail::twice<T>::type mul_wide(T a, T b) {
  using W = typename detail::twice<T>::type;
  return static_cast<W>(a) * static_cast<W>(b);
}
template <typename T> AMDFLOW_FUNCTION T mul_hi(T a, T b) { return static_cast<T>(mul_wide<T>(a, b) >> (8 * sizeof(T))); }
template <typename T> AMDFLOW_FUNCTION T mad_lo(T a, T b, T c) { return int_add<T>(mul_lo<T>(a, b), c); }
template <typename T> AMDFLOW_FUNCTION T mad_hi(T a, T b, T c) { return int_add<T>(mul_hi<T>(a, b), c); }
template <typename T> AMDFLOW_FUNCTION typename detail::twice<T>::type mad_wide(T a, T b, typename detail::twice<T>::type c) {
  return int_add<typename detail::twice<T>::type>(mul_wide<T>(a, b), c);
}

// The low 24 bits as a number.
template <typename T> AMDFLOW_FUNCTION long long low_24(T value) {
  const unsigned int bits = static_cast<unsigned int>(value) << 8;
  return std::is_signed<T>::value ? static_cast<int>(bits) >> 8 : static_cast<long long>(bits >> 8);
}
template <typename T> AMDFLOW_FUNCTION T mul24_lo(T a, T b) { return static_cast<T>(low_24<T>(a) * low_24<T>(b)); }
template <typename T> AMDFLOW_FUNCTION T mul24_hi(T a, T b) { return static_cast<T>(low_24<T>(a) * low_24<T>(b) >> 16); }
template <typename T> AMDFLOW_FUNCTION T mad24_lo(T a, T b, T c) { return int_add<T>(mul24_lo<T>(a, b), c); }
template <typename T> AMDFLOW_FUNCTION T mad24_hi(T a, T b, T c) { return int_add<T>(mul24_hi<T>(a, b), c); }

template <typename T> AMDFLOW_FUNCTION T sad(T a, T b, T c) { return int_add<T>(c, a < b ? int_sub<T>(b, a) : int_sub<T>(a, b)); }
template <typename T> AMDFLOW_FUNCTION T int_min(T a, T b) { return a < b ? a : b; }
template <typename T> AMDFLOW_FUNCTION T int_max(T a, T b) { return a < b ? b : a; }
template <typename T> AMDFLOW_FUNCTION T int_abs(T a) { return a < T(0) ? int_sub<T>(0, a) : a; }
template <typename T> AMDFLOW_FUNCTION T int_neg(T a) { return int_sub<T>(0, a); }
template <typename T> AMDFLOW_FUNCTION T int_div(T a, T b) { return static_cast<T>(a / b); }
template <typename T> AMDFLOW_FUNCTION T int_rem(T a, T b) { return static_cast<T>(a % b); }
template <typename T, typename C> AMDFLOW_FUNCTION T slct(T a, T b, C c) { return c >= C(0) ? a : b; }
template <typename T> AMDFLOW_FUNCTION T selp(T a, T b, bool first) { return first ? a : b; }

AMDFLOW_FUNCTION int clamp_to_int(long long value) {
  return value > 2147483647LL ? 2147483647 : value < -2147483648LL ? -2147483647 - 1 : static_cast<int>(value);
}
AMDFLOW_FUNCTION int add_sat(int a, int b) { return clamp_to_int(static_cast<long long>(a) + b); }
AMDFLOW_FUNCTION int sub_sat(int a, int b) { return clamp_to_int(static_cast<long long>(a) - b); }

// Extended precision. T is an unsigned type; the high product of signed factors is mul_hi of the signed type.
template <typename T> AMDFLOW_FUNCTION T addc_cc(T a, T b, unsigned int& carry) {
  const T partial = a + b;
  const T sum = partial + carry;
  carry = (partial < a) | (sum < partial);
  return sum;
}
template <typename T> AMDFLOW_FUNCTION T add_cc(T a, T b, unsigned int& carry) {
  carry = 0;
  return addc_cc<T>(a, b, carry);
}
template <typename T> AMDFLOW_FUNCTION T addc(T a, T b, unsigned int carry) { return a + b + carry; }
template <typename T> AMDFLOW_FUNCTION T subc_cc(T a, T b, unsigned int& carry) {
  const T partial = a - b;
  const T difference = partial - carry;
  carry = (a < b) | (partial < carry);
  return difference;
}
template <typename T> AMDFLOW_FUNCTION T sub_cc(T a, T b, unsigned int& carry) {
  carry = 0;
  return subc_cc<T>(a, b, carry);
}
template <typename T> AMDFLOW_FUNCTION T subc(T a, T b, unsigned int carry) { return a - b - carry; }

// Sums of absolute differences, dot products.
template <typename A> AMDFLOW_FUNCTION int part_8(unsigned int word, int index) {
  const unsigned int up = word << (24 - 8 * index);
  return std::is_signed<A>::value ? static_cast<int>(up) >> 24 : static_cast<int>(up >> 24);
}
template <typename A> AMDFLOW_FUNCTION int part_16(unsigned int word, int index) {
  const unsigned int up = word << (16 - 16 * index);
  return std::is_signed<A>::value ? static_cast<int>(up) >> 16 : static_cast<int>(up >> 16);
}
template <typename A, typename B> AMDFLOW_FUNCTION unsigned int dp4a(unsigned int a, unsigned int b, unsigned int c) {
#if defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
  if (std::is_signed<A>::value && std::is_signed<B>::value) return __builtin_amdgcn_sdot4(a, b, c, false);
  if (!std::is_signed<A>::value && !std::is_signed<B>::value) return __builtin_amdgcn_udot4(a, b, c, false);
#elif defined(__GFX11__) || defined(__GFX12__)
  return __builtin_amdgcn_sudot4(std::is_signed<A>::value, a, std::is_signed<B>::value, b, c, false);
#endif
  for (int index = 0; index < 4; ++index) c += static_cast<unsigned int>(part_8<A>(a, index) * part_8<B>(b, index));
  return c;
}
template <typename A, typename B, int First> AMDFLOW_FUNCTION unsigned int dp2a(unsigned int a, unsigned int b, unsigned int c) {
  for (int index = 0; index < 2; ++index) {
    c += static_cast<unsigned int>(part_16<A>(a, index)) * static_cast<unsigned int>(part_8<B>(b, First + index));
  }
  return c;
}

// PTX's video instructions on all lanes of a word: Bits is 8 or 16, D, A, B say which are signed, Sum adds the lanes to c.
enum video_operation { video_add, video_sub, video_avrg, video_absdiff, video_min, video_max };
AMDFLOW_FUNCTION int video_value(video_operation operation, int x, int y) {
  switch (operation) {
    case video_add: return x + y;
    case video_sub: return x - y;
    case video_avrg: return (x + y + (x + y >= 0)) >> 1;
    case video_absdiff: return x < y ? y - x : x - y;
    case video_min: return x < y ? x : y;
    default: return x < y ? y : x;
  }
}
template <int Bits, typename D, typename A, typename B, bool Saturate, bool Sum>
AMDFLOW_FUNCTION unsigned int video(video_operation operation, unsigned int a, unsigned int b, unsigned int c) {
  unsigned int result = Sum ? c : 0;
  const int top = std::is_signed<D>::value ? (1 << (Bits - 1)) - 1 : (1 << Bits) - 1;
  const int bottom = std::is_signed<D>::value ? -(1 << (Bits - 1)) : 0;
  for (int index = 0; index < 32 / Bits; ++index) {
    const int x = Bits == 8 ? part_8<A>(a, index) : part_16<A>(a, index);
    const int y = Bits == 8 ? part_8<B>(b, index) : part_16<B>(b, index);
    int value = video_value(operation, x, y);
    if (Saturate) value = value > top ? top : value < bottom ? bottom : value;
    const unsigned int kept = static_cast<unsigned int>(value) & ((1u << Bits) - 1);
    if (Sum) {
      result += static_cast<unsigned int>(Bits == 8 ? part_8<D>(kept, 0) : part_16<D>(kept, 0));
    } else {
      result |= kept << (index * Bits);
    }
  }
  return result;
}

}  // namespace ptx
}  // namespace amdflow
