// 8-connectivity of super-pixels (A. Hennequin, thesis, 4.6.3, figure 4.32). A super-pixel has one or two components;
// two components of one super-pixel are never neighbours. `a` and `b` are components of two super-pixels, and a link
// asks whether they have pixels that touch.
#pragma once

#include "lhcb/velo/decoding/super_pixel.cuh"

namespace hlt {

/// b lies north of a.
__device__ bool touches_north(uint32_t a, uint32_t b) { return (a & 0x88u) != 0u && (b & 0x11u) != 0u; }

/// b lies north-east of a.
__device__ bool touches_north_east(uint32_t a, uint32_t b) { return (a & 0x80u) != 0u && (b & 0x01u) != 0u; }

/// b lies south-east of a.
__device__ bool touches_south_east(uint32_t a, uint32_t b) { return (a & 0x10u) != 0u && (b & 0x08u) != 0u; }

/// b lies east of a.
__device__ constexpr bool touches_east(uint32_t a, uint32_t b)
{
    const uint32_t rows = b & 15u;
    return (a >> 4 & (rows | rows << 1 | rows >> 1)) != 0u;
}

}  // namespace hlt
