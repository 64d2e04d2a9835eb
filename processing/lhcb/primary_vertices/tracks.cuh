// The tracks that may make primary vertices, as the kernels of the vertex finder share them.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/primary_vertices/generated/pv_types.h"
#include "lhcb/velo/generated/velo_types.h"

namespace hlt {

/// Sums over tracks run in pv_lanes lanes for every block size: lane l adds the tracks l, l + 32, ... in order, and the
/// lanes are added in a fixed tree. So a sum has the same bits for every number of threads. Tracks of an event, padded
/// to full lanes:
__device__ uint32_t pv_padded(uint32_t n_tracks) { return (n_tracks + pv_lanes - 1) / pv_lanes * pv_lanes; }

constexpr float pv_z_min = -541.f;    // mm, of the histogram
constexpr float pv_z_smog2 = -341.f;  // mm; the gas cell is below, with fewer tracks and larger errors
constexpr float pv_z_max = 307.f;     // mm

}  // namespace hlt
