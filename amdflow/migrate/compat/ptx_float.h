// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// PTX's arithmetic on float, double, half, bfloat16 and pairs of the latter two, rounded to nearest.
// Approximate functions are at least as exact as PTX promises; the last bits may differ from those of an NVIDIA GPU.
#pragma once
#include "ptx_base.h"
#include <cmath>

namespace amdflow {
namespace ptx {
namespace detail {

AMDFLOW_FUNCTION float widen(bf16 x) { return as<float>(static_cast<unsigned int>(x.bits) << 16); }
AMDFLOW_FUNCTION float widen(_Float16 x) { return static_cast<float>(x); }
AMDFLOW_FUNCTION bf16 to_bf16(float x) {
  const unsigned int bits = as<unsigned int>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bf16{0x7fff};
  return bf16{static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}
// Rounded to odd: what is cut off leaves its trace in the last bit, so that a second rounding is right.
AMDFLOW_FUNCTION float odd_float(double x) {
  const float near = static_cast<float>(x);
  if (static_cast<double>(near) == x || x != x) return near;
  unsigned int bits = as<unsigned int>(near);
  if (__builtin_fabs(static_cast<double>(near)) > __builtin_fabs(x)) --bits;
  return as<float>(bits | 1u);
}
AMDFLOW_FUNCTION double odd_sum(double x, double y) {
  AMDFLOW_UNFUSED
  const double sum = x + y;
  const double back = sum - x;
  const double error = (x - (sum - back)) + (y - back);
  unsigned long long bits = as<unsigned long long>(sum);
  if (error == 0 || error != error || (bits & 1)) return sum;
  return as<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

#define AMDFLOW_PTX_PLAIN(T)                                                          \
  AMDFLOW_FUNCTION T add(T a, T b) { AMDFLOW_UNFUSED return a + b; }                 \
  AMDFLOW_FUNCTION T sub(T a, T b) { AMDFLOW_UNFUSED return a - b; }                 \
  AMDFLOW_FUNCTION T mul(T a, T b) { AMDFLOW_UNFUSED return a * b; }
AMDFLOW_PTX_PLAIN(float)
AMDFLOW_PTX_PLAIN(double)
AMDFLOW_PTX_PLAIN(_Float16)
#undef AMDFLOW_PTX_PLAIN
AMDFLOW_FUNCTION bf16 add(bf16 a, bf16 b) { return to_bf16(add(widen(a), widen(b))); }
AMDFLOW_FUNCTION bf16 sub(bf16 a, bf16 b) { return to_bf16(sub(widen(a), widen(b))); }
AMDFLOW_FUNCTION bf16 mul(bf16 a, bf16 b) { return to_bf16(mul(widen(a), widen(b))); }

AMDFLOW_FUNCTION float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
AMDFLOW_FUNCTION double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
AMDFLOW_FUNCTION _Float16 fma(_Float16 a, _Float16 b, _Float16 c) {
#if defined(__HIP_DEVICE_COMPILE__)
  return __builtin_fmaf16(a, b, c);
#else
  return static_cast<_Float16>(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c));
#endif
}
AMDFLOW_FUNCTION bf16 fma(bf16 a, bf16 b, bf16 c) {
  const double product = static_cast<double>(widen(a)) * static_cast<double>(widen(b));
  return to_bf16(odd_float(odd_sum(product, static_cast<double>(widen(c)))));
}

template <typename F> AMDFLOW_FUNCTION F negated(F x) { return -x; }
AMDFLOW_FUNCTION bf16 negated(bf16 x) { return bf16{static_cast<unsigned short>(x.bits ^ 0x8000)}; }
AMDFLOW_FUNCTION bool below(float a, float b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }
AMDFLOW_FUNCTION bool below(double a, double b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }
AMDFLOW_FUNCTION bool below(_Float16 a, _Float16 b) { return below(widen(a), widen(b)); }
AMDFLOW_FUNCTION bool below(bf16 a, bf16 b) { return below(widen(a), widen(b)); }
template <typename F> AMDFLOW_FUNCTION bool is_nan(F x) { return x != x; }
AMDFLOW_FUNCTION bool is_nan(bf16 x) { return (x.bits & 0x7fff) > 0x7f80; }
AMDFLOW_FUNCTION float not_a_number(float) { return as<float>(0x7fffffffu); }
AMDFLOW_FUNCTION double not_a_number(double) { return as<double>(0x7fffffffffffffffull); }
AMDFLOW_FUNCTION _Float16 not_a_number(_Float16) { return as<_Float16>(static_cast<unsigned short>(0x7fff)); }
AMDFLOW_FUNCTION bf16 not_a_number(bf16) { return bf16{0x7fff}; }
AMDFLOW_FUNCTION float number(float, float x) { return x; }
AMDFLOW_FUNCTION double number(double, float x) { return x; }
AMDFLOW_FUNCTION _Float16 number(_Float16, float x) { return static_cast<_Float16>(x); }
AMDFLOW_FUNCTION bf16 number(bf16, float x) { return to_bf16(x); }

AMDFLOW_FUNCTION float flush(float x) { return __builtin_fabsf(x) < 1.17549435e-38f ? __builtin_copysignf(0.0f, x) : x; }
AMDFLOW_FUNCTION double flush(double x) { return __builtin_fabs(x) < 2.2250738585072014e-308 ? __builtin_copysign(0.0, x) : x; }
AMDFLOW_FUNCTION _Float16 flush(_Float16 x) {
  const unsigned short bits = as<unsigned short>(x);
  return (bits & 0x7c00) == 0 ? as<_Float16>(static_cast<unsigned short>(bits & 0x8000)) : x;
}
AMDFLOW_FUNCTION bf16 flush(bf16 x) { return (x.bits & 0x7f80) == 0 ? bf16{static_cast<unsigned short>(x.bits & 0x8000)} : x; }

template <int Mode, typename F> AMDFLOW_FUNCTION F in(F x) { return Mode & ftz ? flush(x) : x; }
template <int Mode, typename F> AMDFLOW_FUNCTION F out(F x) {
  if (Mode & ftz) x = flush(x);
  const F zero = number(x, 0.0f), one = number(x, 1.0f);
  if (Mode & sat) x = is_nan(x) || below(x, zero) ? zero : below(one, x) ? one : x;
  if (Mode & relu) x = is_nan(x) ? not_a_number(x) : below(x, zero) ? zero : x;
  return x;
}
template <int Mode, typename F> AMDFLOW_FUNCTION F lesser(F a, F b) {
  if (is_nan(a) || is_nan(b)) return (Mode & nan) || (is_nan(a) && is_nan(b)) ? not_a_number(a) : is_nan(a) ? b : a;
  return below(b, a) ? b : a;
}
template <int Mode, typename F> AMDFLOW_FUNCTION F greater(F a, F b) {
  if (is_nan(a) || is_nan(b)) return (Mode & nan) || (is_nan(a) && is_nan(b)) ? not_a_number(a) : is_nan(a) ? b : a;
  return below(a, b) ? b : a;
}
}  // namespace detail

// One instruction for every type: plain types, then pairs element by element.
#define AMDFLOW_PTX_TWO(name, body)                                                                                   \
  template <typename F, int Mode = plain> struct name##_of {                                                          \
    static AMDFLOW_FUNCTION F at(F x, F y) {                                                                          \
      const F a = detail::in<Mode>(x), b = detail::in<Mode>(y);                                                       \
      return detail::out<Mode>(body);                                                                                 \
    }                                                                                                                 \
  };                                                                                                                  \
  template <int Mode> struct name##_of<f16x2, Mode> {                                                                 \
    static AMDFLOW_FUNCTION f16x2 at(f16x2 a, f16x2 b) {                                                              \
      return {name##_of<_Float16, Mode>::at(a.low, b.low), name##_of<_Float16, Mode>::at(a.high, b.high)};            \
    }                                                                                                                 \
  };                                                                                                                  \
  template <int Mode> struct name##_of<bf16x2, Mode> {                                                                \
    static AMDFLOW_FUNCTION bf16x2 at(bf16x2 a, bf16x2 b) {                                                           \
      return {name##_of<bf16, Mode>::at(a.low, b.low), name##_of<bf16, Mode>::at(a.high, b.high)};                    \
    }                                                                                                                 \
  };                                                                                                                  \
  template <int Mode> struct name##_of<f32x2, Mode> {                                                                 \
    static AMDFLOW_FUNCTION f32x2 at(f32x2 a, f32x2 b) {                                                              \
      return {name##_of<float, Mode>::at(a.low, b.low), name##_of<float, Mode>::at(a.high, b.high)};                  \
    }                                                                                                                 \
  };                                                                                                                  \
  template <typename F, int Mode = plain> AMDFLOW_FUNCTION F name(F a, F b) { return name##_of<F, Mode>::at(a, b); }
AMDFLOW_PTX_TWO(add, detail::add(a, b))
AMDFLOW_PTX_TWO(sub, detail::sub(a, b))
AMDFLOW_PTX_TWO(mul, detail::mul(a, b))
AMDFLOW_PTX_TWO(minimum, (detail::lesser<Mode>(a, b)))
AMDFLOW_PTX_TWO(maximum, (detail::greater<Mode>(a, b)))
AMDFLOW_PTX_TWO(divide, (a / b))
#undef AMDFLOW_PTX_TWO

template <typename F, int Mode = plain> struct fma_of {
  static AMDFLOW_FUNCTION F at(F a, F b, F c) {
    return detail::out<Mode>(detail::fma(detail::in<Mode>(a), detail::in<Mode>(b), detail::in<Mode>(c)));
  }
};
template <int Mode> struct fma_of<f16x2, Mode> {
  static AMDFLOW_FUNCTION f16x2 at(f16x2 a, f16x2 b, f16x2 c) {
    return {fma_of<_Float16, Mode>::at(a.low, b.low, c.low), fma_of<_Float16, Mode>::at(a.high, b.high, c.high)};
  }
};
template <int Mode> struct fma_of<bf16x2, Mode> {
  static AMDFLOW_FUNCTION bf16x2 at(bf16x2 a, bf16x2 b, bf16x2 c) {
    return {fma_of<bf16, Mode>::at(a.low, b.low, c.low), fma_of<bf16, Mode>::at(a.high, b.high, c.high)};
  }
};
template <int Mode> struct fma_of<f32x2, Mode> {
  static AMDFLOW_FUNCTION f32x2 at(f32x2 a, f32x2 b, f32x2 c) {
    return {fma_of<float, Mode>::at(a.low, b.low, c.low), fma_of<float, Mode>::at(a.high, b.high, c.high)};
  }
};
template <typename F, int Mode = plain> AMDFLOW_FUNCTION F fma(F a, F b, F c) { return fma_of<F, Mode>::at(a, b, c); }

namespace detail {
AMDFLOW_FUNCTION float magnitude(float x) { return __builtin_fabsf(x); }
AMDFLOW_FUNCTION double magnitude(double x) { return __builtin_fabs(x); }
AMDFLOW_FUNCTION _Float16 magnitude(_Float16 x) { return as<_Float16>(static_cast<unsigned short>(as<unsigned short>(x) & 0x7fff)); }
AMDFLOW_FUNCTION bf16 magnitude(bf16 x) { return bf16{static_cast<unsigned short>(x.bits & 0x7fff)}; }
AMDFLOW_FUNCTION float reciprocal(float x) { return 1.0f / x; }
AMDFLOW_FUNCTION double reciprocal(double x) { return 1.0 / x; }
AMDFLOW_FUNCTION float root(float x) { return __builtin_sqrtf(x); }
AMDFLOW_FUNCTION double root(double x) { return __builtin_sqrt(x); }
// With .ftz one instruction of the GPU does (1 ulp, no subnormal numbers); without it, subnormal numbers count.
#if defined(__HIP_DEVICE_COMPILE__)
#define AMDFLOW_PTX_FAST(name, instruction, otherwise)                                     \
  template <int Mode> AMDFLOW_FUNCTION float name(float x) {                               \
    return Mode & ftz ? instruction(x) : otherwise(x);                                     \
  }
#else
#define AMDFLOW_PTX_FAST(name, instruction, otherwise) \
  template <int Mode> AMDFLOW_FUNCTION float name(float x) { return otherwise(x); }
AMDFLOW_FUNCTION float rsqrtf(float x) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x))); }
AMDFLOW_FUNCTION double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
#endif
AMDFLOW_PTX_FAST(exp2_of, __builtin_amdgcn_exp2f, __builtin_exp2f)
AMDFLOW_PTX_FAST(log2_of, __builtin_amdgcn_logf, __builtin_log2f)
AMDFLOW_PTX_FAST(reciprocal_of, __builtin_amdgcn_rcpf, reciprocal)
AMDFLOW_PTX_FAST(root_of, __builtin_amdgcn_sqrtf, root)
AMDFLOW_PTX_FAST(inverse_root_of, __builtin_amdgcn_rsqf, rsqrtf)
#undef AMDFLOW_PTX_FAST
template <int Mode> AMDFLOW_FUNCTION double reciprocal_of(double x) { return reciprocal(x); }
template <int Mode> AMDFLOW_FUNCTION double inverse_root_of(double x) { return rsqrt(x); }
template <int Mode> AMDFLOW_FUNCTION _Float16 exp2_of(_Float16 x) { return static_cast<_Float16>(exp2_of<plain>(widen(x))); }
template <int Mode> AMDFLOW_FUNCTION bf16 exp2_of(bf16 x) { return to_bf16(exp2_of<plain>(widen(x))); }
// Accurate, not the hardware's: AMD states no bound for its instructions, PTX promises 2^-20.5 within [-pi, pi].
AMDFLOW_FUNCTION float sine(float x) { return ::sinf(x); }
AMDFLOW_FUNCTION float cosine(float x) { return ::cosf(x); }
AMDFLOW_FUNCTION float tangent_h(float x) { return ::tanhf(x); }
AMDFLOW_FUNCTION _Float16 tangent_h(_Float16 x) { return static_cast<_Float16>(tangent_h(widen(x))); }
AMDFLOW_FUNCTION bf16 tangent_h(bf16 x) { return to_bf16(tangent_h(widen(x))); }
}  // namespace detail

#define AMDFLOW_PTX_ONE(name, body)                                                                            \
  template <typename F, int Mode = plain> struct name##_of {                                                   \
    static AMDFLOW_FUNCTION F at(F x) {                                                                        \
      const F a = detail::in<Mode>(x);                                                                         \
      return detail::out<Mode>(body);                                                                          \
    }                                                                                                          \
  };                                                                                                           \
  template <int Mode> struct name##_of<f16x2, Mode> {                                                          \
    static AMDFLOW_FUNCTION f16x2 at(f16x2 a) {                                                                \
      return {name##_of<_Float16, Mode>::at(a.low), name##_of<_Float16, Mode>::at(a.high)};                    \
    }                                                                                                          \
  };                                                                                                           \
  template <int Mode> struct name##_of<bf16x2, Mode> {                                                         \
    static AMDFLOW_FUNCTION bf16x2 at(bf16x2 a) {                                                              \
      return {name##_of<bf16, Mode>::at(a.low), name##_of<bf16, Mode>::at(a.high)};                            \
    }                                                                                                          \
  };                                                                                                           \
  template <typename F, int Mode = plain> AMDFLOW_FUNCTION F name(F a) { return name##_of<F, Mode>::at(a); }
AMDFLOW_PTX_ONE(absolute, detail::magnitude(a))
AMDFLOW_PTX_ONE(negative, detail::negated(a))
AMDFLOW_PTX_ONE(ex2, detail::exp2_of<Mode>(a))
AMDFLOW_PTX_ONE(lg2, detail::log2_of<Mode>(a))
AMDFLOW_PTX_ONE(rcp, detail::reciprocal(a))
AMDFLOW_PTX_ONE(rcp_approx, detail::reciprocal_of<Mode>(a))
AMDFLOW_PTX_ONE(sqrt_approx, detail::root_of<Mode>(a))
AMDFLOW_PTX_ONE(square_root, detail::root(a))
AMDFLOW_PTX_ONE(rsqrt_approx, detail::inverse_root_of<Mode>(a))
AMDFLOW_PTX_ONE(sin_approx, detail::sine(a))
AMDFLOW_PTX_ONE(cos_approx, detail::cosine(a))
AMDFLOW_PTX_ONE(tanh_approx, detail::tangent_h(a))
#undef AMDFLOW_PTX_ONE

template <typename F> AMDFLOW_FUNCTION F sign_from(F sign, F value);
template <> AMDFLOW_FUNCTION float sign_from<float>(float sign, float value) { return __builtin_copysignf(value, sign); }
template <> AMDFLOW_FUNCTION double sign_from<double>(double sign, double value) { return __builtin_copysign(value, sign); }

}  // namespace ptx
}  // namespace amdflow
