// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// Loads and stores with a cache operator. The operator is a hint: it changes speed, never the value.
#pragma once
#include <hip/hip_runtime.h>

namespace amdflow {

template <typename T> __device__ inline T ldcg(const T* address) { return *address; }
template <typename T> __device__ inline T ldca(const T* address) { return *address; }
template <typename T> __device__ inline T ldcs(const T* address) { return *address; }
template <typename T> __device__ inline T ldlu(const T* address) { return *address; }
// "Do not keep it, look again": a volatile read, element by element where the type has elements.
template <typename T> __device__ inline T ldcv(const T* address) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  const T value = *address;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  return value;
}

template <typename T> __device__ inline void stwb(T* address, T value) { *address = value; }
template <typename T> __device__ inline void stcg(T* address, T value) { *address = value; }
template <typename T> __device__ inline void stcs(T* address, T value) { *address = value; }
template <typename T> __device__ inline void stwt(T* address, T value) { *address = value; }

}  // namespace amdflow
