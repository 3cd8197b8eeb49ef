// Reduction over a block. Not a header of its own: include it inside namespace fusedops, after
//   FUSEDOPS_BLOCK_THREADS   how many threads every block of this file has, a multiple of the warp size
//   Accumulator              the type that is summed in
// have been defined, and <cuda_runtime.h> has been included.

template <typename Op>
__device__ __forceinline__ Accumulator reduce_in_warp(Accumulator value, Op op) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    value = op(value, __shfl_down_sync(0xffffffff, value, offset));
  }
  return value;
}

// The result is right in every thread. `identity` leaves the other operand as it is.
template <typename Op>
__device__ __forceinline__ Accumulator block_reduce(Accumulator value, Accumulator identity, Op op) {
  __shared__ Accumulator partial[FUSEDOPS_BLOCK_THREADS / 32];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;

  value = reduce_in_warp(value, op);
  __syncthreads();  // a result of the call before may still be being read
  if (lane == 0) {
    partial[warp] = value;
  }
  __syncthreads();

  if (warp == 0) {
    value = lane < FUSEDOPS_BLOCK_THREADS / 32 ? partial[lane] : identity;
    value = reduce_in_warp(value, op);
    if (lane == 0) {
      partial[0] = value;
    }
  }
  __syncthreads();
  return partial[0];
}
