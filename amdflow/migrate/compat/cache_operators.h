// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// Loads and stores with a cache operator. Most operators are hints: they change speed, never the value. Two can be
// observed by other threads and are kept: "cg" passes by the cache of the own compute unit, "cv" and "wt" go to memory.
#pragma once
#if !defined(__HIP_PLATFORM_NVIDIA__)
#include "ptx_memory.h"
#endif

namespace amdflow {

#if defined(__HIP_PLATFORM_NVIDIA__)
#define AMDFLOW_LOAD(name, plain) \
  template <typename T> __device__ inline T name(const T* address) { return __##name(address); }
#define AMDFLOW_STORE(name, plain) \
  template <typename T> __device__ inline void name(T* address, T value) { __##name(address, value); }
#else
#define AMDFLOW_LOAD(name, expression) \
  template <typename T> __device__ inline T name(const T* address) { return expression; }
#define AMDFLOW_STORE(name, statement) \
  template <typename T> __device__ inline void name(T* address, T value) { statement; }
#endif
AMDFLOW_LOAD(ldca, *address)
AMDFLOW_LOAD(ldcs, *address)
AMDFLOW_LOAD(ldlu, *address)
AMDFLOW_LOAD(ldcg, (ptx::load_ordered<T, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT>(address)))
AMDFLOW_LOAD(ldcv, (ptx::load_ordered<T, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM>(address)))
AMDFLOW_STORE(stwb, *address = value)
AMDFLOW_STORE(stcs, *address = value)
AMDFLOW_STORE(stcg, (ptx::store_ordered<T, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT>(address, value)))
AMDFLOW_STORE(stwt, (ptx::store_ordered<T, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM>(address, value)))
#undef AMDFLOW_LOAD
#undef AMDFLOW_STORE

}  // namespace amdflow
