// Stream compaction: the keys with one digit, gathered. A ballot gives every lane its place, one lane a warp reserves the room.
#include "fusedops/check.h"
#include "fusedops/fusedops.h"
#include "fusedops/ptx.cuh"
#include "fusedops/warp.cuh"

namespace fusedops {
namespace {

__global__ void select_digit_kernel(const uint32_t* __restrict__ keys, uint32_t* __restrict__ out, unsigned int* __restrict__ count, int n, int shift, int bits,
                                    uint32_t digit) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t key = i < n ? keys[i] : 0;
  const bool wanted = i < n && ptx::bit_field(key, shift, bits) == digit;

  const unsigned int votes = __ballot_sync(kFullMask, wanted);
  if (votes == 0) {
    return;
  }
  const int leader = __ffs(votes) - 1;
  unsigned int base = 0;
  if (ptx::lane_id() == leader) {
    base = atomicAdd(count, __popc(votes));
  }
  base = warp_broadcast(base, leader);
  if (wanted) {
    out[base + __popc(votes & ptx::lanemask_lt())] = key;
  }
}

}  // namespace

void select_digit(const uint32_t* keys, uint32_t* out, unsigned int* count, int n, int shift, int bits, uint32_t digit, cudaStream_t stream) {
  if (n == 0) {
    return;
  }
  FUSEDOPS_LAUNCH(select_digit_kernel, (n + 255) / 256, 256, 0, stream, keys, out, count, n, shift, bits, digit);
}

}  // namespace fusedops
