// What the compiler has no intrinsic for, as inline PTX.
#pragma once

#include <cstdint>

namespace fusedops {
namespace ptx {

// Own lane, also where blocks have more than one dimension.
__device__ __forceinline__ unsigned int lane_id() {
  unsigned int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// Lanes below the own one.
__device__ __forceinline__ unsigned int lanemask_lt() {
  unsigned int mask;
  asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  return mask;
}

// Read once, through the read-only path.
__device__ __forceinline__ float load_streaming(const float* address) {
  float value;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(value) : "l"(address));
  return value;
}

__device__ __forceinline__ void prefetch_l2(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

// `bits` bits of `word` from bit `start` on.
__device__ __forceinline__ uint32_t bit_field(uint32_t word, uint32_t start, uint32_t bits) {
  uint32_t field;
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(field) : "r"(word), "r"(start), "r"(bits));
  return field;
}

// 2^x, two units in the last place, subnormals to zero.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace ptx
}  // namespace fusedops
