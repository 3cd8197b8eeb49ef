// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// PTX's cvt: out-of-range numbers are clamped, NaN becomes what PTX says, never undefined behaviour.
#pragma once
#include "ptx_float.h"

namespace amdflow {
namespace ptx {
namespace detail {
struct whole {};
struct real {};
template <typename T> using kind = typename std::conditional<std::is_integral<T>::value, whole, real>::type;

AMDFLOW_FUNCTION float wide(float x) { return x; }
AMDFLOW_FUNCTION double wide(double x) { return x; }
AMDFLOW_FUNCTION float wide(_Float16 x) { return static_cast<float>(x); }
AMDFLOW_FUNCTION float wide(bf16 x) { return widen(x); }
AMDFLOW_FUNCTION double round_by(double x, int mode) {
  return mode & rni ? __builtin_rint(x) : mode & rzi ? __builtin_trunc(x) : mode & rmi ? __builtin_floor(x)
                                                        : mode & rpi ? __builtin_ceil(x) : x;
}
AMDFLOW_FUNCTION float round_by(float x, int mode) {
  return mode & rni ? __builtin_rintf(x) : mode & rzi ? __builtin_truncf(x) : mode & rmi ? __builtin_floorf(x)
                                                         : mode & rpi ? __builtin_ceilf(x) : x;
}

// The target's range as floating-point numbers: `bottom` belongs to it, `above` is the first number that does not.
template <typename To> struct range {
  static constexpr int bits = 8 * sizeof(To);
  static constexpr double above =
      (bits == 64 ? 9223372036854775808.0 : static_cast<double>(1ull << (bits - 1) % 64)) * (std::is_signed<To>::value ? 1 : 2);
  static constexpr double bottom = std::is_signed<To>::value ? -above : 0.0;
  static AMDFLOW_FUNCTION To most() {
    return static_cast<To>(std::is_signed<To>::value ? ~0ull >> (65 - bits) : ~0ull >> (64 - bits));
  }
  static AMDFLOW_FUNCTION To least() { return std::is_signed<To>::value ? static_cast<To>(1ull << (bits - 1)) : To(0); }
};

template <typename To, int Mode, typename From> AMDFLOW_FUNCTION To convert(From from, whole, whole) {
  if (Mode & sat) {
    const bool negative = from < From(0);
    if (negative) {
      const long long value = static_cast<long long>(from);
      if (!std::is_signed<To>::value || value < static_cast<long long>(range<To>::least())) return range<To>::least();
    } else if (static_cast<unsigned long long>(from) > static_cast<unsigned long long>(range<To>::most())) {
      return range<To>::most();
    }
  }
  return static_cast<To>(from);
}
template <typename To, int Mode, typename From> AMDFLOW_FUNCTION To convert(From from, real, whole) {
  const auto x = in<Mode>(wide(from));
  if (x != x) return sizeof(From) == 8 || sizeof(To) == 8 ? static_cast<To>(1ull << (8 * sizeof(To) - 1)) : To(0);
  const auto rounded = round_by(x, Mode);
  if (rounded >= range<To>::above) return range<To>::most();
  if (rounded < range<To>::bottom) return range<To>::least();
  return static_cast<To>(rounded);
}
template <typename To, typename From> struct narrow {
  static AMDFLOW_FUNCTION To at(From x) { return static_cast<To>(x); }
};
template <typename From> struct narrow<bf16, From> {
  static AMDFLOW_FUNCTION bf16 at(From x) { return to_bf16(odd_float(static_cast<double>(x))); }
};
template <> struct narrow<bf16, float> {
  static AMDFLOW_FUNCTION bf16 at(float x) { return to_bf16(x); }
};
template <typename To, int Mode, typename From> AMDFLOW_FUNCTION To convert(From from, whole, real) {
  return out<Mode>(narrow<To, double>::at(static_cast<double>(from)));
}

AMDFLOW_FUNCTION unsigned short bits_of(_Float16 x) { return as<unsigned short>(x); }
AMDFLOW_FUNCTION unsigned short bits_of(bf16 x) { return x.bits; }
AMDFLOW_FUNCTION unsigned int bits_of(float x) { return as<unsigned int>(x); }
AMDFLOW_FUNCTION unsigned long long bits_of(double x) { return as<unsigned long long>(x); }
template <typename To, int Mode, typename From> AMDFLOW_FUNCTION To convert(From from, real, real) {
  const auto x = round_by(in<Mode>(wide(from)), Mode);
  To to = narrow<To, typename std::remove_const<decltype(x)>::type>::at(x);
  if ((Mode & rz) && __builtin_fabs(static_cast<double>(wide(to))) > __builtin_fabs(static_cast<double>(x)) &&
      __builtin_fabs(static_cast<double>(x)) <= 1.7976931348623157e308) {
    const auto bits = bits_of(to);
    const bool was_finite = __builtin_fabs(static_cast<double>(x)) < (sizeof(x) == 4 ? 3.402823669209385e38 : HUGE_VAL);
    if (was_finite) to = as<To>(static_cast<typename std::remove_const<decltype(bits)>::type>(bits - 1));
  }
  return out<Mode>(to);
}
}  // namespace detail

template <typename To, typename From, int Mode = plain> AMDFLOW_FUNCTION To cvt(From from) {
  return detail::convert<To, Mode>(from, detail::kind<From>(), detail::kind<To>());
}
// From 64-bit integers straight to float: one rounding.
#define AMDFLOW_PTX_FROM_LONG(From)                                                                       \
  template <> AMDFLOW_FUNCTION float cvt<float, From, plain>(From from) { return static_cast<float>(from); }
AMDFLOW_PTX_FROM_LONG(long long)
AMDFLOW_PTX_FROM_LONG(unsigned long long)
#undef AMDFLOW_PTX_FROM_LONG

// cvt.rn.f16x2.f32 d, a, b: a is the upper half.
template <typename Pair, int Mode = plain> AMDFLOW_FUNCTION Pair cvt_pair(float upper, float lower) {
  using half = decltype(Pair().low);
  return {cvt<half, float, Mode>(lower), cvt<half, float, Mode>(upper)};
}
// Ten bits of mantissa; halfway cases go away from zero.
AMDFLOW_FUNCTION unsigned int cvt_tf32(float x) {
  const unsigned int bits = as<unsigned int>(x);
  return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
}
template <typename Part> AMDFLOW_FUNCTION unsigned int cvt_pack(int upper, int lower, unsigned int rest) {
  const unsigned int width = 8 * sizeof(Part), mask = (1u << width) - 1;
  const unsigned int high = static_cast<unsigned int>(cvt<Part, int, sat>(upper)) & mask;
  const unsigned int low = static_cast<unsigned int>(cvt<Part, int, sat>(lower)) & mask;
  return (width == 8 ? rest << 16 : 0u) | high << width | low;
}

}  // namespace ptx
}  // namespace amdflow
