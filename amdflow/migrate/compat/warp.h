// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// CUDA's warp functions for warps of 32 lanes on GPUs whose waves have 32 or 64: a wave of 64 lanes is two logical warps,
// lanes 0 to 31 and 32 to 63. Lane numbers run from 0 to 31 and masks have 32 bits, one for each lane of the own warp.
// For HIP's NVIDIA platform everything passes through to CUDA.
#pragma once
#include "warp_size.h"

#if defined(__HIP_PLATFORM_NVIDIA__)
#include "warp_cuda.h"
#else
#include "wave_primitives.h"
#ifdef AMDFLOW_HAS_WAVES
#include "warp_lanes.h"
#include "warp_vote.h"
#include "warp_shuffle.h"
#include "warp_match.h"
#include "warp_reduce.h"
#endif
#endif
