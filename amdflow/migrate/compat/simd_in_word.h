// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// Arithmetic on the two halves or four bytes of a 32-bit word, and dot products of bytes.
#pragma once
#ifdef __HIPCC__
#include <hip/hip_runtime.h>
#define AMDFLOW_FUNCTION __host__ __device__ inline
#else
#define AMDFLOW_FUNCTION inline
#endif

namespace amdflow {

template <int Bits> AMDFLOW_FUNCTION unsigned int part_u(unsigned int word, int index) {
  return (word >> (index * Bits)) & ((1u << Bits) - 1);
}

template <int Bits> AMDFLOW_FUNCTION int part_s(unsigned int word, int index) {
  return static_cast<int>(word << (32 - (index + 1) * Bits)) >> (32 - Bits);
}

// f(unsigned a, unsigned b, int signed_a, int signed_b) for each part; the low bits of its value are kept.
template <int Bits, typename F> AMDFLOW_FUNCTION unsigned int each_part(unsigned int a, unsigned int b, F f) {
  unsigned int result = 0;
  for (int index = 0; index < 32 / Bits; ++index) {
    const unsigned int value = f(part_u<Bits>(a, index), part_u<Bits>(b, index), part_s<Bits>(a, index), part_s<Bits>(b, index));
    result |= (value & ((1u << Bits) - 1)) << (index * Bits);
  }
  return result;
}

#define AMDFLOW_SIMD(name, expression)                                                                                \
  AMDFLOW_FUNCTION unsigned int name##2(unsigned int a, unsigned int b) {                                              \
    return each_part<16>(a, b, [](unsigned int u, unsigned int v, int s, int t) -> unsigned int {                      \
      (void)u, (void)v, (void)s, (void)t;                                                                              \
      return static_cast<unsigned int>(expression);                                                                    \
    });                                                                                                                \
  }                                                                                                                    \
  AMDFLOW_FUNCTION unsigned int name##4(unsigned int a, unsigned int b) {                                              \
    return each_part<8>(a, b, [](unsigned int u, unsigned int v, int s, int t) -> unsigned int {                       \
      (void)u, (void)v, (void)s, (void)t;                                                                              \
      return static_cast<unsigned int>(expression);                                                                    \
    });                                                                                                                \
  }

AMDFLOW_SIMD(vadd, u + v)
AMDFLOW_SIMD(vsub, u - v)
AMDFLOW_SIMD(vmaxs, s > t ? s : t)
AMDFLOW_SIMD(vmaxu, u > v ? u : v)
AMDFLOW_SIMD(vmins, s < t ? s : t)
AMDFLOW_SIMD(vminu, u < v ? u : v)
AMDFLOW_SIMD(vabsdiffs, s > t ? s - t : t - s)
AMDFLOW_SIMD(vabsdiffu, u > v ? u - v : v - u)
AMDFLOW_SIMD(vavgs, (s + t + (s + t >= 0)) >> 1)
AMDFLOW_SIMD(vavgu, (u + v + 1) >> 1)
AMDFLOW_SIMD(vhaddu, (u + v) >> 1)
AMDFLOW_SIMD(vcmpeq, u == v ? ~0u : 0u)
AMDFLOW_SIMD(vcmpne, u != v ? ~0u : 0u)
AMDFLOW_SIMD(vcmpgts, s > t ? ~0u : 0u)
AMDFLOW_SIMD(vcmpgtu, u > v ? ~0u : 0u)
AMDFLOW_SIMD(vcmpges, s >= t ? ~0u : 0u)
AMDFLOW_SIMD(vcmpgeu, u >= v ? ~0u : 0u)
AMDFLOW_SIMD(vcmplts, s < t ? ~0u : 0u)
AMDFLOW_SIMD(vcmpltu, u < v ? ~0u : 0u)
AMDFLOW_SIMD(vcmples, s <= t ? ~0u : 0u)
AMDFLOW_SIMD(vcmpleu, u <= v ? ~0u : 0u)
#undef AMDFLOW_SIMD

AMDFLOW_FUNCTION int dp4a(int a, int b, int c) {
  for (int index = 0; index < 4; ++index) {
    c += part_s<8>(static_cast<unsigned int>(a), index) * part_s<8>(static_cast<unsigned int>(b), index);
  }
  return c;
}

AMDFLOW_FUNCTION unsigned int dp4a(unsigned int a, unsigned int b, unsigned int c) {
  for (int index = 0; index < 4; ++index) {
    c += part_u<8>(a, index) * part_u<8>(b, index);
  }
  return c;
}

}  // namespace amdflow
