// Stands for the compatibility library's header of the same name: the hardware's part, played by the simulator.
#pragma once
#include "device_language.h"

#define AMDFLOW_HAS_WAVES
#define AMDFLOW_MAYBE_UNDEFINED

namespace amdflow {
namespace wave {

__device__ inline unsigned int lane() { return simulator::self().lane; }
__device__ inline unsigned int warp_start() { return simulator::state.wave_size == 64 ? lane() & 32u : 0u; }

__device__ inline unsigned long long ballot(bool predicate) {
  const simulator::Meeting& meeting = simulator::meet(predicate);
  unsigned long long votes = 0;
  for (unsigned int i = 0; i < 64; ++i) {
    votes |= static_cast<unsigned long long>(meeting.has(i) && meeting.of<bool>(i)) << i;
  }
  return votes;
}

__device__ inline unsigned int permute(unsigned int word, unsigned int source) {
  const simulator::Meeting& meeting = simulator::meet(word);
  return meeting.has(source) ? meeting.of<unsigned int>(source) : simulator::POISON;
}

__device__ inline void fence_and_barrier() { simulator::meet(0); }

__device__ inline unsigned int thread_in_block() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

}  // namespace wave
}  // namespace amdflow
