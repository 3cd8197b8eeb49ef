// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// Device functions of CUDA that HIP lacks: control, atomics of block and system scope, copies of the pipeline interface.
#pragma once
#include "address_spaces.h"
#if !defined(__HIP_PLATFORM_NVIDIA__)
#include "ptx_lanes.h"
#include "ptx_memory.h"
#else
#include <cuda_pipeline_primitives.h>
#endif

namespace amdflow {

#if defined(__HIP_PLATFORM_NVIDIA__)
__device__ inline void nanosleep(unsigned int nanoseconds) { __nanosleep(nanoseconds); }
__device__ inline void trap() { __trap(); }
__device__ inline void brkpt() { __brkpt(); }
#define AMDFLOW_COUNTED(name)                                                     \
  __device__ inline unsigned int name(unsigned int* address, unsigned int limit) { \
    return ::name(address, limit);                                                \
  }
AMDFLOW_COUNTED(atomicInc_block)
AMDFLOW_COUNTED(atomicDec_block)
AMDFLOW_COUNTED(atomicInc_system)
AMDFLOW_COUNTED(atomicDec_system)
#undef AMDFLOW_COUNTED
#define AMDFLOW_ATOMIC(name, scope, suffix, expression)                                                \
  template <typename T, typename V> __device__ inline T atomic##name##_##suffix(T* address, V value) { \
    return ::atomic##name##_##suffix(address, static_cast<T>(value));                         \
  }
template <typename T, typename V> __device__ inline T atomicCAS_block(T* address, V expected, V wanted) {
  return ::atomicCAS_block(address, static_cast<T>(expected), static_cast<T>(wanted));
}
__device__ inline void pipeline_memcpy_async(void* shared, const void* global, size_t bytes, size_t zeros = 0) {
  __pipeline_memcpy_async(shared, global, bytes, zeros);
}
__device__ inline void pipeline_commit() { __pipeline_commit(); }
__device__ inline void pipeline_wait_prior(size_t prior) { __pipeline_wait_prior(prior); }
#else
__device__ inline void nanosleep(unsigned int nanoseconds) { ptx::nanosleep(nanoseconds); }
__device__ inline void trap() { ptx::trap(); }
__device__ inline void brkpt() { ptx::break_point(); }
#define AMDFLOW_ATOMIC(name, scope, suffix, expression)                                                \
  template <typename T, typename V> __device__ inline T atomic##name##_##suffix(T* address, V given) { \
    const T value = static_cast<T>(given);                                                             \
    return expression(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_##scope);                   \
  }
#define AMDFLOW_COUNTED(name, function, scope, suffix)                                                                  \
  __device__ inline unsigned int atomic##name##_##suffix(unsigned int* address, unsigned int limit) {                   \
    return ptx::function<unsigned int, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_##scope>(address, limit);                   \
  }
AMDFLOW_COUNTED(Inc, atom_inc, WORKGROUP, block)
AMDFLOW_COUNTED(Dec, atom_dec, WORKGROUP, block)
AMDFLOW_COUNTED(Inc, atom_inc, SYSTEM, system)
AMDFLOW_COUNTED(Dec, atom_dec, SYSTEM, system)
#undef AMDFLOW_COUNTED
template <typename T, typename V, typename W> __device__ inline T atomicCAS_block(T* address, V given, W wanted) {
  T expected = static_cast<T>(given);
  __hip_atomic_compare_exchange_strong(
      address, &expected, static_cast<T>(wanted), __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  return expected;
}
// Copied at once: commit and wait have nothing left to do but to keep the compiler from moving accesses.
__device__ inline void pipeline_memcpy_async(void* shared, const void* global, size_t bytes, size_t zeros = 0) {
  const char* from = static_cast<const char*>(global);
  char* to = static_cast<char*>(shared);
  for (size_t index = 0; index < bytes; index += 4) {
    unsigned int word = 0;
    if (index + 4 + zeros <= bytes) {
      word = *reinterpret_cast<const unsigned int*>(from + index);
    } else if (index + zeros < bytes) {
      __builtin_memcpy(&word, from + index, bytes - zeros - index);
    }
    *reinterpret_cast<unsigned int*>(to + index) = word;
  }
}
__device__ inline void pipeline_commit() { ptx::compiler_barrier(); }
__device__ inline void pipeline_wait_prior(size_t) { ptx::compiler_barrier(); }
#endif
AMDFLOW_ATOMIC(Add, WORKGROUP, block, __hip_atomic_fetch_add)
AMDFLOW_ATOMIC(Min, WORKGROUP, block, __hip_atomic_fetch_min)
AMDFLOW_ATOMIC(Max, WORKGROUP, block, __hip_atomic_fetch_max)
AMDFLOW_ATOMIC(And, WORKGROUP, block, __hip_atomic_fetch_and)
AMDFLOW_ATOMIC(Or, WORKGROUP, block, __hip_atomic_fetch_or)
AMDFLOW_ATOMIC(Xor, WORKGROUP, block, __hip_atomic_fetch_xor)
AMDFLOW_ATOMIC(Exch, WORKGROUP, block, __hip_atomic_exchange)
#undef AMDFLOW_ATOMIC
template <typename T, typename V> __device__ inline T atomicSub_block(T* address, V value) {
  return atomicAdd_block(address, static_cast<T>(T(0) - static_cast<T>(value)));
}
// A counter for profilers that no tool of ROCm reads.
__device__ inline void prof_trigger(int) {}

}  // namespace amdflow
