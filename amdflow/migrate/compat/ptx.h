// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// AMDFLOW_PTX(asm statement, C++ statement): the PTX for HIP's NVIDIA platform, its meaning in C++ for all others.
#pragma once

#if defined(__HIP_PLATFORM_NVIDIA__)
#define AMDFLOW_PTX(original, ...) original
#else
#define AMDFLOW_PTX(original, ...) __VA_ARGS__
#include "directed_rounding.h"
#include "ptx_bits.h"
#include "ptx_compare.h"
#include "ptx_convert.h"
#include "ptx_float.h"
#include "ptx_integers.h"
#if defined(__HIPCC__)
#include "ptx_lanes.h"
#include "ptx_memory.h"
#endif
#endif
