// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// Host code that asks for the warp size gets the width its kernels count in, not that of the hardware's wave.
#pragma once
#include <hip/hip_runtime_api.h>
#include "warp_size.h"

namespace amdflow {

inline hipError_t device_attribute(int* value, hipDeviceAttribute_t attribute, int device) {
  const hipError_t status = hipDeviceGetAttribute(value, attribute, device);
  if (status == hipSuccess && attribute == hipDeviceAttributeWarpSize) {
    *value = warp_size;
  }
  return status;
}

}  // namespace amdflow
