// Bins in phi: 128 in each of the 26 module pairs. The sort of hits uses them, and the tracking finds its windows in
// them.
#pragma once

#include "lhcb/velo/generated/velo_types.h"

namespace hlt {

constexpr uint32_t phi_bins_per_pair = 1u << phi_bin_bits;

/// Bin of an angle counted from -pi in units of 2 pi / 2^16; it wraps.
__device__ int32_t phi_bin(uint32_t module_pair, int32_t phi_from_zero)
{
    return static_cast<int32_t>(module_pair * phi_bins_per_pair) + ((phi_from_zero & 0xffff) >> (16u - phi_bin_bits));
}

}  // namespace hlt
