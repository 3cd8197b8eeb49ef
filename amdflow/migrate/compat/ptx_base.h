// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// Ground for the PTX headers: types, modifiers, and moving bits between types.
#pragma once
#if defined(__HIPCC__) && !defined(__HIP_PLATFORM_NVIDIA__)
#include <hip/hip_runtime.h>
#endif
#include <string.h>
#include <type_traits>
#ifndef AMDFLOW_FUNCTION
#if defined(__HIP_PLATFORM_NVIDIA__)
#define AMDFLOW_FUNCTION __device__ inline
#elif defined(__HIPCC__)
#define AMDFLOW_FUNCTION __host__ __device__ inline
#else
#define AMDFLOW_FUNCTION inline
#endif
#endif
// An addition and a multiplication that PTX keeps apart must not be fused.
#ifdef __clang__
#define AMDFLOW_UNFUSED _Pragma("clang fp contract(off)")
#else
#define AMDFLOW_UNFUSED
#endif

namespace amdflow {
namespace ptx {

// Modifiers of instructions, combined with |.
enum modifier : int { plain = 0, ftz = 1, sat = 2, relu = 4, nan = 8, rni = 16, rzi = 32, rmi = 64, rpi = 128, rz = 256 };

#if !defined(__HIP_PLATFORM_NVIDIA__)
struct f16x2 { _Float16 low, high; };
#endif
struct bf16 { unsigned short bits; };
struct bf16x2 { bf16 low, high; };
struct f32x2 { float low, high; };

namespace detail {
struct by_value {};
struct by_bits {};
struct from_pointer {};
struct to_pointer {};
template <typename T> struct is_whole {
  static constexpr bool value = std::is_integral<T>::value || std::is_enum<T>::value;
};
template <typename To, typename From> struct how {
  static constexpr bool bits =
      !(is_whole<To>::value && is_whole<From>::value) && !std::is_same<To, From>::value && sizeof(To) == sizeof(From);
  using plain_kind = typename std::conditional<bits, by_bits, by_value>::type;
  using kind = typename std::conditional<
      std::is_pointer<From>::value, from_pointer,
      typename std::conditional<std::is_pointer<To>::value, to_pointer, plain_kind>::type>::type;
};
template <typename To, typename From> AMDFLOW_FUNCTION To move(From from, by_value) { return static_cast<To>(from); }
template <typename To, typename From> AMDFLOW_FUNCTION To move(From from, by_bits) {
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}
template <typename To, typename From> AMDFLOW_FUNCTION To move(From from, from_pointer) {
  return (To)(reinterpret_cast<unsigned long long>(from));
}
template <typename To, typename From> AMDFLOW_FUNCTION To move(From from, to_pointer) {
  return reinterpret_cast<To>(static_cast<unsigned long long>(from));
}
}  // namespace detail

// Integers and pointers keep their value, everything else of the same size keeps its bits.
template <typename To, typename From> AMDFLOW_FUNCTION To as(From from) {
  return detail::move<To, From>(from, typename detail::how<To, From>::kind());
}

template <typename T, typename V> AMDFLOW_FUNCTION void set(T& target, V value) {
  target = as<typename std::remove_cv<T>::type>(value);
}

// The halves of a register, and a register from its halves (mov.b64 {a, b}, c and the reverse).
template <typename Half, typename Whole> AMDFLOW_FUNCTION Half piece(Whole whole, int index) {
  using bits = typename std::conditional<
      sizeof(Half) == 4, unsigned int, typename std::conditional<sizeof(Half) == 2, unsigned short, unsigned char>::type>::type;
  return as<Half>(static_cast<bits>(whole >> (8 * sizeof(Half) * index)));
}
template <typename Whole, typename Half> AMDFLOW_FUNCTION Whole join(Half low, Half high) {
  return static_cast<Whole>(low) | static_cast<Whole>(static_cast<Whole>(high) << (8 * sizeof(Half)));
}
template <typename Whole, typename Part> AMDFLOW_FUNCTION Whole join(Part a, Part b, Part c, Part d) {
  const int width = 8 * sizeof(Part);
  return static_cast<Whole>(a) | static_cast<Whole>(b) << width | static_cast<Whole>(c) << (2 * width) |
         static_cast<Whole>(d) << (3 * width);
}

}  // namespace ptx
}  // namespace amdflow
