// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// PTX's special registers, barriers and control.
#pragma once
#include "ptx_shuffle.h"

namespace amdflow {
namespace ptx {

__device__ inline unsigned int nwarpid() { return (blockDim.x * blockDim.y * blockDim.z + 31) / 32; }
__device__ inline unsigned long long clock_cycles() { return static_cast<unsigned long long>(clock64()); }
// Nanoseconds: the counter ticks at 25 MHz on gfx906 to gfx90a, at 100 MHz on others.
__device__ inline unsigned long long globaltimer() {
#if defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__)
  return static_cast<unsigned long long>(wall_clock64()) * 40;
#else
  return static_cast<unsigned long long>(wall_clock64()) * 10;
#endif
}

__device__ inline int barrier_and(bool predicate) { return __syncthreads_and(predicate); }
__device__ inline int barrier_or(bool predicate) { return __syncthreads_or(predicate); }
__device__ inline int barrier_count(bool predicate) { return __syncthreads_count(predicate); }

// Between no time at all and twice the time, as PTX says. One step is 64 cycles: about 30 ns.
__device__ inline void nanosleep(unsigned int nanoseconds) {
  for (unsigned int slept = 0; slept < nanoseconds; slept += 32) __builtin_amdgcn_s_sleep(1);
}
__device__ inline void trap() { __builtin_trap(); }
__device__ inline void break_point() { __builtin_debugtrap(); }
// A dependent launch does not exist: kernels of a stream run one after the other, so there is nothing to signal or wait for.
__device__ inline void grid_dependency() {}

}  // namespace ptx
}  // namespace amdflow
