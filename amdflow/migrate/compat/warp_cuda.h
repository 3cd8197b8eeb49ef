// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// warp.h for HIP's NVIDIA platform: CUDA's own functions. Part of warp.h.
#pragma once
#include "warp_size.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>

namespace amdflow {

#define AMDFLOW_SPECIAL_REGISTER(name, register_name)        \
  __device__ inline unsigned int name() {                    \
    unsigned int value;                                      \
    asm volatile("mov.u32 %0, %" register_name ";" : "=r"(value)); \
    return value;                                            \
  }
AMDFLOW_SPECIAL_REGISTER(lane_id, "%laneid")
AMDFLOW_SPECIAL_REGISTER(warp_id, "%warpid")
AMDFLOW_SPECIAL_REGISTER(lanemask_eq, "%lanemask_eq")
AMDFLOW_SPECIAL_REGISTER(lanemask_lt, "%lanemask_lt")
AMDFLOW_SPECIAL_REGISTER(lanemask_le, "%lanemask_le")
AMDFLOW_SPECIAL_REGISTER(lanemask_gt, "%lanemask_gt")
AMDFLOW_SPECIAL_REGISTER(lanemask_ge, "%lanemask_ge")
#undef AMDFLOW_SPECIAL_REGISTER

__device__ inline unsigned int activemask() { return __activemask(); }
template <typename Mask> __device__ inline unsigned int ballot_sync(Mask mask, int predicate) {
  return __ballot_sync(static_cast<unsigned int>(mask), predicate);
}
template <typename Mask> __device__ inline int any_sync(Mask mask, int predicate) {
  return __any_sync(static_cast<unsigned int>(mask), predicate);
}
template <typename Mask> __device__ inline int all_sync(Mask mask, int predicate) {
  return __all_sync(static_cast<unsigned int>(mask), predicate);
}
template <typename Mask> __device__ inline int uni_sync(Mask mask, int predicate) {
  return __uni_sync(static_cast<unsigned int>(mask), predicate);
}
__device__ inline void syncwarp() { __syncwarp(); }
template <typename Mask> __device__ inline void syncwarp(Mask mask) { __syncwarp(static_cast<unsigned int>(mask)); }

// The forms without a mask are gone from today's GPUs: the lanes that are active stand in for it.
__device__ inline unsigned int ballot(int predicate) { return __ballot_sync(__activemask(), predicate); }
__device__ inline int any(int predicate) { return __any_sync(__activemask(), predicate); }
__device__ inline int all(int predicate) { return __all_sync(__activemask(), predicate); }

#define AMDFLOW_SHUFFLE(name, parameter)                                                                       \
  template <typename Mask, typename T>                                                                          \
  __device__ inline auto name##_sync(Mask mask, T value, parameter source, int width = warp_size)               \
      ->decltype(__##name##_sync(0u, value, source, width)) {                                                   \
    return __##name##_sync(static_cast<unsigned int>(mask), value, source, width);                              \
  }                                                                                                             \
  template <typename T>                                                                                         \
  __device__ inline auto name(T value, parameter source, int width = warp_size)                                 \
      ->decltype(__##name##_sync(0u, value, source, width)) {                                                   \
    return __##name##_sync(__activemask(), value, source, width);                                               \
  }
AMDFLOW_SHUFFLE(shfl, int)
AMDFLOW_SHUFFLE(shfl_up, unsigned int)
AMDFLOW_SHUFFLE(shfl_down, unsigned int)
AMDFLOW_SHUFFLE(shfl_xor, int)
#undef AMDFLOW_SHUFFLE

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
template <typename Mask, typename T> __device__ inline unsigned int match_any_sync(Mask mask, T value) {
  return __match_any_sync(static_cast<unsigned int>(mask), value);
}
template <typename Mask, typename T>
__device__ inline unsigned int match_all_sync(Mask mask, T value, int* predicate) {
  return __match_all_sync(static_cast<unsigned int>(mask), value, predicate);
}
#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define AMDFLOW_REDUCTION(name)                                                           \
  template <typename Mask, typename T>                                                    \
  __device__ inline auto name(Mask mask, T value)->decltype(__##name(0u, value)) {        \
    return __##name(static_cast<unsigned int>(mask), value);                              \
  }
AMDFLOW_REDUCTION(reduce_add_sync)
AMDFLOW_REDUCTION(reduce_min_sync)
AMDFLOW_REDUCTION(reduce_max_sync)
AMDFLOW_REDUCTION(reduce_and_sync)
AMDFLOW_REDUCTION(reduce_or_sync)
AMDFLOW_REDUCTION(reduce_xor_sync)
#undef AMDFLOW_REDUCTION
#endif

}  // namespace amdflow

#endif  // __CUDACC__
