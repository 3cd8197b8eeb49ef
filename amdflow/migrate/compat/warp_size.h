// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// The width of a warp as CUDA code knows it. It is not the width of the hardware's wave, which may be 64.
#pragma once

namespace amdflow {

constexpr int warp_size = 32;

}  // namespace amdflow
