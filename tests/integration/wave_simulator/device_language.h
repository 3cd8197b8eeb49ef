// What CUDA's and HIP's device languages have in common, for a host compiler and the simulator.
#pragma once
#include <cmath>

#include "simulator.h"

#define __global__ __attribute__((always_inline))
#define __device__ __attribute__((always_inline))
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __shared__ static

#define threadIdx (simulator::self().index)
#define blockIdx (simulator::state.block_index)
#define blockDim (simulator::state.block_size)
#define gridDim (simulator::state.grid_size)

using dim3 = simulator::Index;

inline void __syncthreads() { simulator::wait_for_block(); }
inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned int>(x)); }

// One thread runs at a time, so a plain update is atomic.
template <typename T, typename U> T atomicAdd(T* address, U value) {
  const T old = *address;
  *address = old + static_cast<T>(value);
  return old;
}

using std::max;
using std::min;
