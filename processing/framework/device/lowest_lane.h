// The lowest of the wide lanes of a CPU (wide_lanes.h).
#pragma once

#include "framework/device/wide_lanes.h"

namespace hlt {

inline __attribute__((always_inline)) uint32_t lowest_wide(const uint_wide& lanes)
{
    uint8x32 lowest;
    std::memcpy(&lowest, &lanes, sizeof lowest);
    if constexpr (sizeof lanes > sizeof lowest) {
        uint8x32 high;
        std::memcpy(&high, reinterpret_cast<const char*>(&lanes) + sizeof lowest, sizeof high);
        lowest = lowest < high ? lowest : high;
    }
    return lowest_lane(lowest);
}

/// Of floats that are not negative: their order is that of their bits.
inline __attribute__((always_inline)) float lowest_wide(const float_wide& lanes)
{
    uint_wide bits;
    std::memcpy(&bits, &lanes, sizeof bits);
    return __uint_as_float(lowest_wide(bits));
}

}  // namespace hlt
