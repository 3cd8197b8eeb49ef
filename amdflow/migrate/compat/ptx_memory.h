// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// PTX's loads, stores, atomics, fences and copies to shared memory.
// Cache hints change speed only and are dropped, with three exceptions that others can observe: volatile and .cv read
// memory anew each time (system scope), .cg passes by the cache of the own compute unit (agent scope).
#pragma once
#include "address_spaces.h"
#include "ptx_float.h"

namespace amdflow {
namespace ptx {

template <typename T, int Count> struct vec_of { typedef T type __attribute__((ext_vector_type(Count))); };
template <typename T, int Count> using vec = typename vec_of<T, Count>::type;

// Address spaces. An address is a pointer or a number; offsets are bytes.
struct global {
  template <typename T> struct place {
    typedef T bits __attribute__((may_alias));
    typedef bits* pointer;
  };
};
struct shared {
  template <typename T> struct place {
    typedef T bits __attribute__((may_alias));
    typedef __attribute__((address_space(3))) bits* pointer;
  };
};
template <typename A> __device__ inline unsigned long long at(A address, long long offset = 0) {
  return as<unsigned long long>(address) + static_cast<unsigned long long>(offset);
}

namespace detail {
template <typename T, typename Space, typename A> __device__ inline typename Space::template place<T>::pointer pointer(A address) {
  return (typename Space::template place<T>::pointer)at(address);
}
template <int Size> struct word;
template <> struct word<1> { using type = unsigned char; };
template <> struct word<2> { using type = unsigned short; };
template <> struct word<4> { using type = unsigned int; };
template <> struct word<8> { using type = unsigned long long; };
// Accesses of up to 8 bytes are one piece, wider ones several.
template <typename T> using piece_of = typename word<(sizeof(T) < 8 ? sizeof(T) : 8)>::type;
}  // namespace detail

template <typename T, typename Space = global, typename A> __device__ inline T load(A address) {
  return *detail::pointer<T, Space>(address);
}
template <typename T, typename Space = global, typename A> __device__ inline void store(A address, T value) {
  *detail::pointer<T, Space>(address) = value;
}
// Data that is read or written once.
template <typename T, typename A> __device__ inline T load_streaming(A address) {
  return __builtin_nontemporal_load(detail::pointer<T, global>(address));
}
template <typename T, typename A> __device__ inline void store_streaming(A address, T value) {
  __builtin_nontemporal_store(value, detail::pointer<T, global>(address));
}
template <typename T, int Order, int Scope, typename Space = global, typename A> __device__ inline T load_ordered(A address) {
  using piece = detail::piece_of<T>;
  static_assert(sizeof(T) % sizeof(piece) == 0, "an access of 1, 2, 4, 8 or 16 bytes");
  piece pieces[sizeof(T) / sizeof(piece)];
  for (unsigned int index = 0; index < sizeof(T) / sizeof(piece); ++index) {
    pieces[index] = __hip_atomic_load(detail::pointer<piece, Space>(at(address, index * sizeof(piece))), Order, Scope);
  }
  T value;
  __builtin_memcpy(&value, pieces, sizeof(T));
  return value;
}
template <typename T, int Order, int Scope, typename Space = global, typename A>
__device__ inline void store_ordered(A address, T value) {
  using piece = detail::piece_of<T>;
  static_assert(sizeof(T) % sizeof(piece) == 0, "an access of 1, 2, 4, 8 or 16 bytes");
  piece pieces[sizeof(T) / sizeof(piece)];
  __builtin_memcpy(pieces, &value, sizeof(T));
  for (unsigned int index = 0; index < sizeof(T) / sizeof(piece); ++index) {
    __hip_atomic_store(detail::pointer<piece, Space>(at(address, index * sizeof(piece))), pieces[index], Order, Scope);
  }
}

// asm's "memory" clobber: the compiler moves no access across it.
__device__ inline void compiler_barrier() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

// The builtin wants its order spelled out.
#define AMDFLOW_PTX_FENCE(scope)                                                    \
  Order == __ATOMIC_SEQ_CST   ? __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, scope)     \
  : Order == __ATOMIC_ACQUIRE ? __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, scope)     \
  : Order == __ATOMIC_RELEASE ? __builtin_amdgcn_fence(__ATOMIC_RELEASE, scope)     \
                              : __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, scope)
template <int Order, int Scope> __device__ inline void fence() {
  if (Scope == __HIP_MEMORY_SCOPE_WORKGROUP) {
    AMDFLOW_PTX_FENCE("workgroup");
  } else if (Scope == __HIP_MEMORY_SCOPE_AGENT) {
    AMDFLOW_PTX_FENCE("agent");
  } else {
    AMDFLOW_PTX_FENCE("");
  }
}
#undef AMDFLOW_PTX_FENCE

#define AMDFLOW_PTX_ATOMIC(name, builtin)                                                                             \
  template <typename T, int Order, int Scope, typename Space = global, typename A>                                   \
  __device__ inline T name(A address, T value) {                                                                      \
    return builtin(detail::pointer<T, Space>(address), value, Order, Scope);                                         \
  }
AMDFLOW_PTX_ATOMIC(atom_and, __hip_atomic_fetch_and)
AMDFLOW_PTX_ATOMIC(atom_or, __hip_atomic_fetch_or)
AMDFLOW_PTX_ATOMIC(atom_xor, __hip_atomic_fetch_xor)
AMDFLOW_PTX_ATOMIC(atom_exch, __hip_atomic_exchange)
AMDFLOW_PTX_ATOMIC(atom_min, __hip_atomic_fetch_min)
AMDFLOW_PTX_ATOMIC(atom_max, __hip_atomic_fetch_max)
#undef AMDFLOW_PTX_ATOMIC

template <typename T, int Order, int Scope, typename Space = global, typename A>
__device__ inline T atom_cas(A address, T expected, T wanted) {
  constexpr int failed = Order == __ATOMIC_ACQ_REL ? __ATOMIC_ACQUIRE : Order == __ATOMIC_RELEASE ? __ATOMIC_RELAXED : Order;
  __hip_atomic_compare_exchange_strong(detail::pointer<T, Space>(address), &expected, wanted, Order, failed, Scope);
  return expected;
}

namespace detail {
// Any operation on a word of 32 bits, tried until no other thread came between.
template <int Order, int Scope, typename Space, typename A, typename F>
__device__ inline unsigned int update(A address, F operation) {
  unsigned int seen = __hip_atomic_load(pointer<unsigned int, Space>(address), __ATOMIC_RELAXED, Scope);
  while (true) {
    const unsigned int before = atom_cas<unsigned int, Order, Scope, Space>(address, seen, operation(seen));
    if (before == seen) return before;
    seen = before;
  }
}
template <typename T, int Order, int Scope, typename Space> struct adder {
  template <typename A> static __device__ inline T at(A address, T value) {
    return __hip_atomic_fetch_add(pointer<T, Space>(address), value, Order, Scope);
  }
};
template <typename Pair, int Order, int Scope, typename Space> struct pair_adder {
  template <typename A> static __device__ inline Pair at(A address, Pair value) {
    return as<Pair>(update<Order, Scope, Space>(
        address, [=](unsigned int seen) { return as<unsigned int>(ptx::add<Pair>(as<Pair>(seen), value)); }));
  }
};
template <typename Half, int Order, int Scope, typename Space> struct half_adder {
  template <typename A> static __device__ inline Half at(A address, Half value) {
    const unsigned long long place = ptx::at(address);
    const unsigned int up = place & 2 ? 16 : 0;
    const unsigned int before = update<Order, Scope, Space>(place & ~3ull, [=](unsigned int seen) {
      const Half old = as<Half>(static_cast<unsigned short>(seen >> up));
      const unsigned int sum = as<unsigned short>(ptx::add<Half>(old, value));
      return (seen & ~(0xffffu << up)) | sum << up;
    });
    return as<Half>(static_cast<unsigned short>(before >> up));
  }
};
template <int O, int S, typename P> struct adder<f16x2, O, S, P> : pair_adder<f16x2, O, S, P> {};
template <int O, int S, typename P> struct adder<bf16x2, O, S, P> : pair_adder<bf16x2, O, S, P> {};
template <int O, int S, typename P> struct adder<_Float16, O, S, P> : half_adder<_Float16, O, S, P> {};
template <int O, int S, typename P> struct adder<bf16, O, S, P> : half_adder<bf16, O, S, P> {};
}  // namespace detail

template <typename T, int Order, int Scope, typename Space = global, typename A>
__device__ inline T atom_add(A address, T value) {
  return detail::adder<T, Order, Scope, Space>::at(address, value);
}
template <typename T, int Order, int Scope, typename Space = global, typename A>
__device__ inline T atom_inc(A address, T limit) {
  return detail::update<Order, Scope, Space>(address, [=](unsigned int seen) { return seen >= limit ? 0u : seen + 1; });
}
template <typename T, int Order, int Scope, typename Space = global, typename A>
__device__ inline T atom_dec(A address, T limit) {
  return detail::update<Order, Scope, Space>(
      address, [=](unsigned int seen) { return seen == 0 || seen > limit ? limit : seen - 1; });
}

// cp.async, done at once: from the global to the shared address; bytes from `size` on are zero.
template <int Bytes, typename D, typename S>
__device__ inline void cp_async(D to, S from, unsigned int size = Bytes) {
  using words = vec<unsigned int, Bytes / 4>;
  if (size >= Bytes) {
    store<words, shared>(to, load<words>(from));
    return;
  }
  for (unsigned int index = 0; index < Bytes; ++index) {
    const unsigned char byte = index < size ? load<unsigned char>(at(from, index)) : 0;
    store<unsigned char, shared>(at(to, index), byte);
  }
}
// The copies are done already: what is left of a wait is that the compiler moves nothing across it.
__device__ inline void cp_async_wait() { compiler_barrier(); }

template <typename A> __device__ inline void prefetch(A address) {
  __builtin_prefetch(reinterpret_cast<const void*>(at(address)));
}
template <typename A> __device__ inline unsigned int to_shared(A address) {
  return static_cast<unsigned int>(cvta_generic_to_shared(reinterpret_cast<const void*>(at(address))));
}
template <typename A> __device__ inline unsigned long long from_shared(A address) {
  return reinterpret_cast<unsigned long long>(cvta_shared_to_generic(at(address)));
}
template <typename A> __device__ inline bool in_shared(A address) { return is_shared(reinterpret_cast<const void*>(at(address))); }
template <typename A> __device__ inline bool in_local(A address) { return is_local(reinterpret_cast<const void*>(at(address))); }
template <typename A> __device__ inline bool in_global(A address) { return is_global(reinterpret_cast<const void*>(at(address))); }

}  // namespace ptx
}  // namespace amdflow
