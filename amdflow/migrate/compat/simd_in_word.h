// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// Arithmetic on the two halves or four bytes of a 32-bit word, and dot products of bytes.
// For HIP's NVIDIA platform the functions with two operands pass through to CUDA, the others are made of them.
#pragma once
#include "ptx_integers.h"

namespace amdflow {

template <int Bits> AMDFLOW_FUNCTION unsigned int part_u(unsigned int word, int index) {
  return (word >> (index * Bits)) & ((1u << Bits) - 1);
}

template <int Bits> AMDFLOW_FUNCTION int part_s(unsigned int word, int index) {
  return static_cast<int>(word << (32 - (index + 1) * Bits)) >> (32 - Bits);
}

// value, held to what a part of Bits bits can be.
template <int Bits> AMDFLOW_FUNCTION int held_s(int value) {
  const int most = (1 << (Bits - 1)) - 1;
  return value > most ? most : value < -most - 1 ? -most - 1 : value;
}
template <int Bits> AMDFLOW_FUNCTION int held_u(int value) {
  return value > (1 << Bits) - 1 ? (1 << Bits) - 1 : value < 0 ? 0 : value;
}

#if defined(__HIP_PLATFORM_NVIDIA__)
#define AMDFLOW_SIMD_ONE(name, bits, expression) \
  __device__ inline unsigned int name(unsigned int a) { return __##name(a); }
#define AMDFLOW_SIMD_TWO(name, bits, expression) \
  __device__ inline unsigned int name(unsigned int a, unsigned int b) { return __##name(a, b); }
#define AMDFLOW_SIMD_SUM(name, bits, expression) AMDFLOW_SIMD_TWO(name, bits, expression)
#else
// u, v are the parts of a and b without, s, t with their sign.
#define AMDFLOW_SIMD_PARTS(bits, b)                                                         \
  constexpr int Bits = bits;                                                                \
  const unsigned int u = part_u<Bits>(a, index), v = part_u<Bits>(b, index);                \
  const int s = part_s<Bits>(a, index), t = part_s<Bits>(b, index);                         \
  (void)u, (void)v, (void)s, (void)t;
#define AMDFLOW_SIMD_LOOP(bits, b, expression)                                              \
  unsigned int result = 0;                                                                  \
  for (int index = 0; index < 32 / bits; ++index) {                                         \
    AMDFLOW_SIMD_PARTS(bits, b)                                                             \
    result |= (static_cast<unsigned int>(expression) & ((1u << Bits) - 1)) << (index * Bits); \
  }                                                                                         \
  return result;
#define AMDFLOW_SIMD_ONE(name, bits, expression) \
  AMDFLOW_FUNCTION unsigned int name(unsigned int a) { AMDFLOW_SIMD_LOOP(bits, 0, expression) }
#define AMDFLOW_SIMD_TWO(name, bits, expression) \
  AMDFLOW_FUNCTION unsigned int name(unsigned int a, unsigned int b) { AMDFLOW_SIMD_LOOP(bits, b, expression) }
#define AMDFLOW_SIMD_SUM(name, bits, expression)                                            \
  AMDFLOW_FUNCTION unsigned int name(unsigned int a, unsigned int b) {                      \
    unsigned int result = 0;                                                                \
    for (int index = 0; index < 32 / bits; ++index) {                                       \
      AMDFLOW_SIMD_PARTS(bits, b)                                                           \
      result += static_cast<unsigned int>(expression);                                      \
    }                                                                                       \
    return result;                                                                          \
  }
#endif
#define AMDFLOW_SIMD(kind, name, expression) \
  AMDFLOW_SIMD_##kind(name##2, 16, expression) AMDFLOW_SIMD_##kind(name##4, 8, expression)

AMDFLOW_SIMD(ONE, vabs, s < 0 ? -s : s)
AMDFLOW_SIMD(ONE, vabsss, held_s<Bits>(s < 0 ? -s : s))
AMDFLOW_SIMD(ONE, vneg, -s)
AMDFLOW_SIMD(ONE, vnegss, held_s<Bits>(-s))
AMDFLOW_SIMD(TWO, vadd, u + v)
AMDFLOW_SIMD(TWO, vaddss, held_s<Bits>(s + t))
AMDFLOW_SIMD(TWO, vaddus, held_u<Bits>(static_cast<int>(u + v)))
AMDFLOW_SIMD(TWO, vsub, u - v)
AMDFLOW_SIMD(TWO, vsubss, held_s<Bits>(s - t))
AMDFLOW_SIMD(TWO, vsubus, held_u<Bits>(static_cast<int>(u) - static_cast<int>(v)))
AMDFLOW_SIMD(TWO, vmaxs, s > t ? s : t)
AMDFLOW_SIMD(TWO, vmaxu, u > v ? u : v)
AMDFLOW_SIMD(TWO, vmins, s < t ? s : t)
AMDFLOW_SIMD(TWO, vminu, u < v ? u : v)
AMDFLOW_SIMD(TWO, vabsdiffs, s > t ? s - t : t - s)
AMDFLOW_SIMD(TWO, vabsdiffu, u > v ? u - v : v - u)
AMDFLOW_SIMD(SUM, vsads, s > t ? s - t : t - s)
AMDFLOW_SIMD(SUM, vsadu, u > v ? u - v : v - u)
AMDFLOW_SIMD(TWO, vavgs, (s + t + (s + t >= 0)) >> 1)
AMDFLOW_SIMD(TWO, vavgu, (u + v + 1) >> 1)
AMDFLOW_SIMD(TWO, vhaddu, (u + v) >> 1)
#define AMDFLOW_SIMD_COMPARE(name, condition)       \
  AMDFLOW_SIMD(TWO, vcmp##name, condition ? ~0u : 0u) \
  AMDFLOW_SIMD(TWO, vset##name, condition ? 1u : 0u)
AMDFLOW_SIMD_COMPARE(eq, (u == v))
AMDFLOW_SIMD_COMPARE(ne, (u != v))
AMDFLOW_SIMD_COMPARE(gts, (s > t))
AMDFLOW_SIMD_COMPARE(gtu, (u > v))
AMDFLOW_SIMD_COMPARE(ges, (s >= t))
AMDFLOW_SIMD_COMPARE(geu, (u >= v))
AMDFLOW_SIMD_COMPARE(lts, (s < t))
AMDFLOW_SIMD_COMPARE(ltu, (u < v))
AMDFLOW_SIMD_COMPARE(les, (s <= t))
AMDFLOW_SIMD_COMPARE(leu, (u <= v))
#undef AMDFLOW_SIMD_COMPARE

// Minimum and maximum of whole words and halves, of three, of a sum, held above zero (relu), with the answer which it was.
AMDFLOW_FUNCTION int vimax_s32_relu(int a, int b) { return ptx::int_max(ptx::int_max(a, b), 0); }
AMDFLOW_FUNCTION int vimin_s32_relu(int a, int b) { return ptx::int_max(ptx::int_min(a, b), 0); }
#define AMDFLOW_THREE(which)                                                                                          \
  AMDFLOW_FUNCTION int vi##which##3_s32(int a, int b, int c) { return ptx::int_##which(ptx::int_##which(a, b), c); }  \
  AMDFLOW_FUNCTION unsigned int vi##which##3_u32(unsigned int a, unsigned int b, unsigned int c) {                    \
    return ptx::int_##which(ptx::int_##which(a, b), c);                                                               \
  }                                                                                                                   \
  AMDFLOW_FUNCTION int vi##which##3_s32_relu(int a, int b, int c) {                                                   \
    return ptx::int_max(vi##which##3_s32(a, b, c), 0);                                                                \
  }                                                                                                                   \
  AMDFLOW_FUNCTION int viadd##which##_s32(int a, int b, int c) { return ptx::int_##which(ptx::int_add(a, b), c); }    \
  AMDFLOW_FUNCTION unsigned int viadd##which##_u32(unsigned int a, unsigned int b, unsigned int c) {                  \
    return ptx::int_##which(a + b, c);                                                                                \
  }                                                                                                                   \
  AMDFLOW_FUNCTION int viadd##which##_s32_relu(int a, int b, int c) {                                                 \
    return ptx::int_max(viadd##which##_s32(a, b, c), 0);                                                              \
  }                                                                                                                   \
  AMDFLOW_FUNCTION unsigned int vi##which##_s16x2_relu(unsigned int a, unsigned int b) {                              \
    return vmaxs2(v##which##s2(a, b), 0);                                                                             \
  }                                                                                                                   \
  AMDFLOW_FUNCTION unsigned int vi##which##3_s16x2(unsigned int a, unsigned int b, unsigned int c) {                  \
    return v##which##s2(v##which##s2(a, b), c);                                                                       \
  }                                                                                                                   \
  AMDFLOW_FUNCTION unsigned int vi##which##3_u16x2(unsigned int a, unsigned int b, unsigned int c) {                  \
    return v##which##u2(v##which##u2(a, b), c);                                                                       \
  }                                                                                                                   \
  AMDFLOW_FUNCTION unsigned int vi##which##3_s16x2_relu(unsigned int a, unsigned int b, unsigned int c) {             \
    return vmaxs2(vi##which##3_s16x2(a, b, c), 0);                                                                    \
  }                                                                                                                   \
  AMDFLOW_FUNCTION unsigned int viadd##which##_s16x2(unsigned int a, unsigned int b, unsigned int c) {                \
    return v##which##s2(vadd2(a, b), c);                                                                              \
  }                                                                                                                   \
  AMDFLOW_FUNCTION unsigned int viadd##which##_u16x2(unsigned int a, unsigned int b, unsigned int c) {                \
    return v##which##u2(vadd2(a, b), c);                                                                              \
  }                                                                                                                   \
  AMDFLOW_FUNCTION unsigned int viadd##which##_s16x2_relu(unsigned int a, unsigned int b, unsigned int c) {           \
    return vmaxs2(viadd##which##_s16x2(a, b, c), 0);                                                                  \
  }
AMDFLOW_THREE(max)
AMDFLOW_THREE(min)
// `first` tells whether it was a; of a pair, one answer for each half.
AMDFLOW_FUNCTION int vibmax_s32(int a, int b, bool* first) { return (*first = a >= b) ? a : b; }
AMDFLOW_FUNCTION int vibmin_s32(int a, int b, bool* first) { return (*first = a <= b) ? a : b; }
AMDFLOW_FUNCTION unsigned int vibmax_u32(unsigned int a, unsigned int b, bool* first) { return (*first = a >= b) ? a : b; }
AMDFLOW_FUNCTION unsigned int vibmin_u32(unsigned int a, unsigned int b, bool* first) { return (*first = a <= b) ? a : b; }
#define AMDFLOW_PAIR(name, function, relation)                                                          \
  AMDFLOW_FUNCTION unsigned int name(unsigned int a, unsigned int b, bool* high, bool* low) {           \
    const unsigned int first = relation(a, b);                                                          \
    *high = (first >> 16) != 0;                                                                         \
    *low = (first & 0xffff) != 0;                                                                       \
    return function(a, b);                                                                              \
  }
AMDFLOW_PAIR(vibmax_s16x2, vmaxs2, vcmpges2)
AMDFLOW_PAIR(vibmin_s16x2, vmins2, vcmples2)
AMDFLOW_PAIR(vibmax_u16x2, vmaxu2, vcmpgeu2)
AMDFLOW_PAIR(vibmin_u16x2, vminu2, vcmpleu2)
#undef AMDFLOW_PAIR
#undef AMDFLOW_THREE

// Dot products of bytes, and of halves with bytes.
#if defined(__HIP_PLATFORM_NVIDIA__)
#define AMDFLOW_DOT(name)                                                                  \
  template <typename A, typename B, typename C>                                            \
  __device__ inline auto name(A a, B b, C c)->decltype(__##name(a, b, c)) {                \
    return __##name(a, b, c);                                                              \
  }
AMDFLOW_DOT(dp4a)
AMDFLOW_DOT(dp2a_lo)
AMDFLOW_DOT(dp2a_hi)
#undef AMDFLOW_DOT
#else
AMDFLOW_FUNCTION int dp4a(int a, int b, int c) { return static_cast<int>(ptx::dp4a<int, int>(a, b, c)); }
AMDFLOW_FUNCTION unsigned int dp4a(unsigned int a, unsigned int b, unsigned int c) {
  return ptx::dp4a<unsigned int, unsigned int>(a, b, c);
}
#define AMDFLOW_DP2A(half, first)                                                                              \
  AMDFLOW_FUNCTION int dp2a_##half(int a, int b, int c) {                                                      \
    return static_cast<int>(ptx::dp2a<int, int, first>(a, b, c));                                              \
  }                                                                                                            \
  AMDFLOW_FUNCTION unsigned int dp2a_##half(unsigned int a, unsigned int b, unsigned int c) {                  \
    return ptx::dp2a<unsigned int, unsigned int, first>(a, b, c);                                              \
  }
AMDFLOW_DP2A(lo, 0)
AMDFLOW_DP2A(hi, 2)
#undef AMDFLOW_DP2A
#ifdef __HIPCC__
AMDFLOW_FUNCTION int dp4a(char4 a, char4 b, int c) { return dp4a(ptx::as<int>(a), ptx::as<int>(b), c); }
AMDFLOW_FUNCTION unsigned int dp4a(uchar4 a, uchar4 b, unsigned int c) {
  return dp4a(ptx::as<unsigned int>(a), ptx::as<unsigned int>(b), c);
}
AMDFLOW_FUNCTION int dp2a_lo(short2 a, char4 b, int c) { return dp2a_lo(ptx::as<int>(a), ptx::as<int>(b), c); }
AMDFLOW_FUNCTION int dp2a_hi(short2 a, char4 b, int c) { return dp2a_hi(ptx::as<int>(a), ptx::as<int>(b), c); }
AMDFLOW_FUNCTION unsigned int dp2a_lo(ushort2 a, uchar4 b, unsigned int c) {
  return dp2a_lo(ptx::as<unsigned int>(a), ptx::as<unsigned int>(b), c);
}
AMDFLOW_FUNCTION unsigned int dp2a_hi(ushort2 a, uchar4 b, unsigned int c) {
  return dp2a_hi(ptx::as<unsigned int>(a), ptx::as<unsigned int>(b), c);
}
#endif
#endif

#undef AMDFLOW_SIMD
#undef AMDFLOW_SIMD_ONE
#undef AMDFLOW_SIMD_TWO
#undef AMDFLOW_SIMD_SUM
#undef AMDFLOW_SIMD_LOOP
#undef AMDFLOW_SIMD_PARTS

}  // namespace amdflow
