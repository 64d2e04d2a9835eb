// Bins in phi: 64 in each of the 26 module pairs. They sort the hits, and the tracking finds its windows through them.
#pragma once

#include "geometry.cuh"

namespace hlt {

constexpr uint32_t phi_bin_bits = 6;
constexpr uint32_t phi_bins_per_pair = 1u << phi_bin_bits;
constexpr uint32_t n_phi_bins = n_velo_module_pairs * phi_bins_per_pair;
constexpr uint32_t phi_bin_stride = n_phi_bins + 1u;  // offsets of an event: the last is its number of hits

__device__ uint32_t phi_bin_of(uint32_t module_pair, int16_t phi)
{
    const uint32_t from_zero = static_cast<uint32_t>(static_cast<int32_t>(phi) + 32768);
    return module_pair * phi_bins_per_pair + (from_zero >> (16u - phi_bin_bits));
}

}  // namespace hlt
