// Warp code as CUDA programs write it, for warps of 32 lanes. Original and migrated form must give the same results.
#include <cuda_runtime.h>

#define FULL_MASK 0xffffffff
#define WARP_SIZE 32
#define WARP_SUM(value)                                          \
  for (int offset = WARP_SIZE / 2; offset > 0; offset >>= 1) {   \
    value += __shfl_down_sync(FULL_MASK, value, offset);         \
  }

// Two stages: one slot in shared memory for each warp, the first warp adds them up.
__global__ void block_sum(const int* in, int* out, int count) {
  __shared__ int slots[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int value = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x) value += in[i];
  WARP_SUM(value)
  if (lane == 0) slots[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = lane < blockDim.x / 32 ? slots[lane] : 0;
    WARP_SUM(value)
    if (lane == 0) out[blockIdx.x] = value;
  }
}

// The same by warpSize, every lane gets the result.
__global__ void warp_maximum(const float* in, float* out) {
  float value = in[threadIdx.x];
  for (int step = warpSize / 2; step > 0; step /= 2) {
    float other = __shfl_xor_sync(0xffffffffu, value, step);
    value = other > value ? other : value;
  }
  out[threadIdx.x] = value + threadIdx.x / warpSize;
}

template <typename T> __device__ T inclusive_scan(T value, int lane) {
  for (int step = 1; step < WARP_SIZE; step *= 2) {
    T below = __shfl_up_sync(FULL_MASK, value, step);
    if (lane >= step) value += below;
  }
  return value;
}

// Scan of a block: scan of each warp, then of the warps' totals.
__global__ void block_scan(const long long* in, long long* out) {
  __shared__ long long totals[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  long long value = inclusive_scan(in[threadIdx.x], lane);
  if (lane == 31) totals[warp] = value;
  __syncthreads();
  if (warp == 0) totals[lane] = inclusive_scan(lane < (blockDim.x + 31) / 32 ? totals[lane] : 0ll, lane);
  __syncthreads();
  out[threadIdx.x] = value + (warp > 0 ? totals[warp - 1] : 0);
}

// Stream compaction: a ballot, ranks by population count, one atomic for each warp.
__global__ void compact(const int* in, int* out, int* size) {
  int lane = threadIdx.x & (WARP_SIZE - 1), value = in[threadIdx.x];
  bool wanted = value % 3 == 0;
  unsigned votes = __ballot_sync(FULL_MASK, wanted);
  int rank = __popc(votes & ((1u << lane) - 1)), base = 0;
  if (lane == 0) base = atomicAdd(size, __popc(votes));
  base = __shfl_sync(FULL_MASK, base, 0);
  if (wanted) out[base + rank] = value;
}

// Only some lanes come here: the lowest of them speaks for all.
__global__ void aggregate(const int* in, int* counter, int* places) {
  places[threadIdx.x] = -1;
  if (in[threadIdx.x] % 5 < 2) {
    unsigned active = __activemask();
    int leader = __ffs(active) - 1, lane = threadIdx.x % 32, first = 0;
    if (lane == leader) first = atomicAdd(counter, __popc(active));
    first = __shfl_sync(active, first, leader);
    places[threadIdx.x] = first + __popc(active & ~(0xffffffffu << lane));
  }
}

// Histogram: lanes with the same bin find each other, one of them adds for all.
__global__ void histogram(const int* in, int* bins) {
  int bin = in[threadIdx.x] % 7, lane = threadIdx.x % 32;
  unsigned peers = __match_any_sync(FULL_MASK, bin);
  if (lane == __ffs(peers) - 1) atomicAdd(&bins[bin], __popc(peers));
}

// Segmented reduction: heads by ballot, the length of the own segment by counting zeros.
__global__ void segmented_sum(const int* keys, const int* in, int* out) {
  int lane = threadIdx.x & 31, key = keys[threadIdx.x], value = in[threadIdx.x];
  int before = __shfl_up_sync(FULL_MASK, key, 1);
  unsigned heads = __ballot_sync(FULL_MASK, lane == 0 || key != before);
  unsigned mine = heads & (0xffffffffu >> (31 - lane));
  int start = 31 - __clz(mine);
  for (int step = 1; step < 32; step <<= 1) {
    int other = __shfl_up_sync(FULL_MASK, value, step);
    if (lane - step >= start) value += other;
  }
  out[threadIdx.x] = value;
}

// Eight lanes work on a row each: groups below a warp.
__global__ void row_sums(const double* in, double* out) {
  double value = in[threadIdx.x];
  auto add = [&](int step) { value += __shfl_down_sync(FULL_MASK, value, step, 8); };
  add(4);
  add(2);
  add(1);
  out[threadIdx.x] = __shfl_sync(FULL_MASK, value, 0, 8);
}

// Lanes of one warp leave a loop at different times; those that remain vote.
__global__ void rounds(const int* in, int* out) {
  int left = in[threadIdx.x] % 6, seen = 0;
  while (__any_sync(FULL_MASK, left > 0)) {
    seen += __popc(__ballot_sync(FULL_MASK, left > 0));
    if (left > 0) --left;
  }
  out[threadIdx.x] = seen;
}

// Exchange through shared memory with a barrier of the warp, and reductions that sm_80 has as instructions.
__global__ void exchange(const int* in, int* out) {
  __shared__ int buffer[256];
  int lane = threadIdx.x & 31, first = threadIdx.x - lane;
  buffer[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  int opposite = buffer[first + 31 - lane];
  unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
  int sum = __reduce_add_sync(half, opposite), largest = __reduce_max_sync(FULL_MASK, opposite);
  unsigned bits = __reduce_or_sync(FULL_MASK, 1u << (opposite & 31));
  out[threadIdx.x] = sum * 3 + largest * 5 + static_cast<int>(bits % 1009) + __all_sync(half, opposite > 2);
}
