// What the kernels that make and clean VELO tracks share.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t max_velo_track_hits = 26;

/// Fourth word of a seed: what became of its three hits.
enum seed_fate : uint16_t { seed_left = 0, seed_extended = 1, seed_accepted = 2 };

}  // namespace hlt
