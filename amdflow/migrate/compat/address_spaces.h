// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// Shared memory as 32-bit addresses, and which memory a pointer means. A shared address is an offset into the
// workgroup's LDS, so arithmetic on it means what it means in CUDA; keep it unsigned and do not mix it with pointers.
#pragma once
#if !defined(__HIP_PLATFORM_NVIDIA__)
#include <hip/hip_runtime.h>
#endif
#include <cstddef>

namespace amdflow {

#if defined(__HIP_PLATFORM_NVIDIA__)
__device__ inline size_t cvta_generic_to_shared(const void* pointer) { return __cvta_generic_to_shared(pointer); }
__device__ inline void* cvta_shared_to_generic(size_t address) { return __cvta_shared_to_generic(address); }
__device__ inline size_t cvta_generic_to_global(const void* pointer) { return __cvta_generic_to_global(pointer); }
__device__ inline void* cvta_global_to_generic(size_t address) { return __cvta_global_to_generic(address); }
__device__ inline unsigned int is_shared(const void* pointer) { return __isShared(pointer); }
__device__ inline unsigned int is_local(const void* pointer) { return __isLocal(pointer); }
__device__ inline unsigned int is_global(const void* pointer) { return __isGlobal(pointer); }
#else
__device__ inline size_t cvta_generic_to_shared(const void* pointer) {
  return (unsigned int)(unsigned long long)(__attribute__((address_space(3))) const char*)pointer;
}
__device__ inline void* cvta_shared_to_generic(size_t address) {
  return (void*)(__attribute__((address_space(3))) char*)(unsigned long long)address;
}
__device__ inline size_t cvta_generic_to_global(const void* pointer) { return reinterpret_cast<size_t>(pointer); }
__device__ inline void* cvta_global_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
__device__ inline unsigned int is_shared(const void* pointer) {
  return __builtin_amdgcn_is_shared((__attribute__((address_space(0))) const void*)pointer);
}
__device__ inline unsigned int is_local(const void* pointer) {
  return __builtin_amdgcn_is_private((__attribute__((address_space(0))) const void*)pointer);
}
__device__ inline unsigned int is_global(const void* pointer) { return !is_shared(pointer) && !is_local(pointer); }
#endif

}  // namespace amdflow
