// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// Arithmetic rounded down (rd), up (ru) or towards zero (rz). HIP's operators round to nearest, so the direction is
// put right here: exactly, for a few instructions more. For HIP's NVIDIA platform everything passes through to CUDA.
#pragma once
#if defined(__HIP_PLATFORM_NVIDIA__)

namespace amdflow {

#define AMDFLOW_DIRECTED_ALL(letter, F, mode)                                                                   \
  __device__ inline F letter##add_##mode(F a, F b) { return __##letter##add_##mode(a, b); }                     \
  __device__ inline F letter##sub_##mode(F a, F b) { return __##letter##sub_##mode(a, b); }                     \
  __device__ inline F letter##mul_##mode(F a, F b) { return __##letter##mul_##mode(a, b); }                     \
  __device__ inline F letter##div_##mode(F a, F b) { return __##letter##div_##mode(a, b); }                     \
  __device__ inline F letter##rcp_##mode(F a) { return __##letter##rcp_##mode(a); }                             \
  __device__ inline F letter##sqrt_##mode(F a) { return __##letter##sqrt_##mode(a); }
#define AMDFLOW_DIRECTED_MODE(mode)                                                                             \
  AMDFLOW_DIRECTED_ALL(f, float, mode)                                                                          \
  AMDFLOW_DIRECTED_ALL(d, double, mode)                                                                         \
  __device__ inline float fmaf_##mode(float a, float b, float c) { return __fmaf_##mode(a, b, c); }

#else
#include "ptx_float.h"

namespace amdflow {
namespace directed {

enum rounding { rd, ru, rz };

AMDFLOW_FUNCTION bool steps_down(rounding mode, bool negative) { return mode == rd || (mode == rz && !negative); }
AMDFLOW_FUNCTION bool steps_up(rounding mode, bool negative) { return mode == ru || (mode == rz && negative); }

// The neighbour of a number that was rounded to nearest, where it lies on the wrong side: `error` is true value minus x.
template <typename F, typename Bits> AMDFLOW_FUNCTION F settle(F x, double error, rounding mode) {
  const bool negative = std::signbit(x);
  const bool down = error < 0 && steps_down(mode, negative), up = error > 0 && steps_up(mode, negative);
  if (!down && !up) return x;
  if (x == F(0)) {
    const F smallest = ptx::as<F>(Bits(1));
    return down ? (negative || mode == rd ? -smallest : x) : smallest;
  }
  const Bits bits = ptx::as<Bits>(x);
  return ptx::as<F>(static_cast<Bits>(down == negative ? bits + 1 : bits - 1));
}

// A double whose last bit remembers that something was cut off.
AMDFLOW_FUNCTION double odd(double x, double error) {
  const unsigned long long bits = ptx::as<unsigned long long>(x);
  if (error == 0 || error != error || (bits & 1)) return x;
  return ptx::as<double>((error > 0) == (x > 0) ? bits + 1 : bits - 1);
}
AMDFLOW_FUNCTION float narrowed(double x, rounding mode) {
  const float near = static_cast<float>(x);
  if (x != x || std::isinf(x) || static_cast<double>(near) == x) return near;
  return settle<float, unsigned int>(near, std::isinf(near) ? (near > 0 ? -1.0 : 1.0) : x - static_cast<double>(near), mode);
}
template <typename F> AMDFLOW_FUNCTION F signed_zero(F a, F b, F sum, rounding mode) {
  return sum == F(0) && std::signbit(a) != std::signbit(b) ? (mode == rd ? -F(0) : F(0)) : sum;
}

AMDFLOW_FUNCTION float add(float a, float b, rounding mode) {
  const double x = a, y = b;
  return signed_zero<float>(a, b, narrowed(ptx::detail::odd_sum(x, y), mode), mode);
}
AMDFLOW_FUNCTION float mul(float a, float b, rounding mode) {
  return narrowed(static_cast<double>(a) * static_cast<double>(b), mode);
}
AMDFLOW_FUNCTION float fma(float a, float b, float c, rounding mode) {
  const double product = static_cast<double>(a) * static_cast<double>(b), addend = c;
  const float sum = narrowed(ptx::detail::odd_sum(product, addend), mode);
  return product + addend == 0 && std::signbit(product) != std::signbit(addend) ? (mode == rd ? -0.0f : 0.0f) : sum;
}
AMDFLOW_FUNCTION float div(float a, float b, rounding mode) {
  const double x = a, y = b, quotient = x / y;
  if (std::isinf(quotient) || quotient != quotient || std::isinf(y) || x == 0) return static_cast<float>(quotient);
  const double rest = __builtin_fma(-quotient, y, x);
  return narrowed(odd(quotient, y < 0 ? -rest : rest), mode);
}
AMDFLOW_FUNCTION float sqrt(float a, rounding mode) {
  const double x = a, root = __builtin_sqrt(x);
  if (!(x > 0) || std::isinf(x)) return static_cast<float>(root);
  return narrowed(odd(root, __builtin_fma(-root, root, x)), mode);
}

// Doubles: the error of the rounded result is known by its sign. Numbers near the smallest are scaled for that.
AMDFLOW_FUNCTION double overflowed(double x, rounding mode) {
  return settle<double, unsigned long long>(x, x > 0 ? -1.0 : 1.0, mode);
}
AMDFLOW_FUNCTION double settled(double x, double error, rounding mode) {
  return settle<double, unsigned long long>(x, error, mode);
}
AMDFLOW_FUNCTION bool finite(double x) { return x - x == 0; }
constexpr double scale = 1.6069380442589903e60;  // 2^200
AMDFLOW_FUNCTION double add(double a, double b, rounding mode) {
  AMDFLOW_UNFUSED
  const double sum = a + b;
  if (!finite(a) || !finite(b)) return sum;
  if (std::isinf(sum)) return overflowed(sum, mode);
  const double back = sum - a;
  const double error = (a - (sum - back)) + (b - back);
  return signed_zero<double>(a, b, settled(sum, error, mode), mode);
}
AMDFLOW_FUNCTION double mul(double a, double b, rounding mode) {
  const double product = a * b;
  if (!finite(a) || !finite(b) || a == 0 || b == 0) return product;
  if (std::isinf(product)) return overflowed(product, mode);
  if (product == 0) return settled(product, std::signbit(product) ? -1.0 : 1.0, mode);
  if (__builtin_fabs(product) > 1e-270) return settled(product, __builtin_fma(a, b, -product), mode);
  const bool first = __builtin_fabs(a) < __builtin_fabs(b);
  return settled(product, __builtin_fma(first ? a * scale : a, first ? b : b * scale, -(product * scale)), mode);
}
AMDFLOW_FUNCTION double div(double a, double b, rounding mode) {
  const double quotient = a / b;
  if (!finite(a) || !finite(b) || a == 0 || b == 0) return quotient;
  if (std::isinf(quotient)) return overflowed(quotient, mode);
  if (quotient == 0) return settled(quotient, std::signbit(quotient) ? -1.0 : 1.0, mode);
  const bool tiny = __builtin_fabs(a) < 1e-240;
  const double rest = __builtin_fma(-(tiny ? quotient * scale : quotient), b, tiny ? a * scale : a);
  return settled(quotient, b < 0 ? -rest : rest, mode);
}
AMDFLOW_FUNCTION double sqrt(double a, rounding mode) {
  const double root = __builtin_sqrt(a);
  if (!(a > 0) || std::isinf(a)) return root;
  const bool tiny = a < 1e-240;
  const double wide = tiny ? root * 1.2676506002282294e30 : root;  // 2^100
  return settled(root, __builtin_fma(-wide, wide, tiny ? a * scale : a), mode);
}

}  // namespace directed

#define AMDFLOW_DIRECTED_ALL(letter, F, mode)                                                           \
  AMDFLOW_FUNCTION F letter##add_##mode(F a, F b) { return directed::add(a, b, directed::mode); }       \
  AMDFLOW_FUNCTION F letter##sub_##mode(F a, F b) { return directed::add(a, -b, directed::mode); }      \
  AMDFLOW_FUNCTION F letter##mul_##mode(F a, F b) { return directed::mul(a, b, directed::mode); }       \
  AMDFLOW_FUNCTION F letter##div_##mode(F a, F b) { return directed::div(a, b, directed::mode); }       \
  AMDFLOW_FUNCTION F letter##rcp_##mode(F a) { return directed::div(F(1), a, directed::mode); }         \
  AMDFLOW_FUNCTION F letter##sqrt_##mode(F a) { return directed::sqrt(a, directed::mode); }
#define AMDFLOW_DIRECTED_MODE(mode)                                                                     \
  AMDFLOW_DIRECTED_ALL(f, float, mode)                                                                  \
  AMDFLOW_DIRECTED_ALL(d, double, mode)                                                                 \
  AMDFLOW_FUNCTION float fmaf_##mode(float a, float b, float c) { return directed::fma(a, b, c, directed::mode); }
#endif
AMDFLOW_DIRECTED_MODE(rd)
AMDFLOW_DIRECTED_MODE(ru)
AMDFLOW_DIRECTED_MODE(rz)
#undef AMDFLOW_DIRECTED_MODE
#undef AMDFLOW_DIRECTED_ALL

}  // namespace amdflow
