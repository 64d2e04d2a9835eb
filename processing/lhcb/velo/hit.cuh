// From a cluster on a sensor to a hit in space (docs/physics/velo-decoding.md).
#pragma once

#include "framework/device/math.cuh"
#include "lhcb/velo/generated/velo_types.h"

namespace hlt {

constexpr float velo_phi_units_per_radian = 32768.f / pi;

struct velo_point {
    float x, y, z;
};

/// Global position (mm) of (column + fraction_x, row + fraction_y) on a sensor, fractions in pixels.
__device__ velo_point velo_position(const velo_geometry& geometry, uint32_t sensor, uint32_t column, float fraction_x,
                                    uint32_t row, float fraction_y)
{
    const float local_x = geometry.local_x[column] + fraction_x * geometry.x_pitch[column];
    const float local_y = (static_cast<float>(row) + fraction_y + 0.5f) * velo_pixel_pitch;
    alignas(16) float t[12];
    for (uint32_t i = 0; i < 3u; ++i)
        reinterpret_cast<four_of<float>*>(t)[i] =
            reinterpret_cast<const four_of<float>*>(geometry.local_to_global[sensor])[i];
    return {t[0] * local_x + t[1] * local_y + t[9], t[3] * local_x + t[4] * local_y + t[10],
            t[6] * local_x + t[7] * local_y + t[11]};
}

/// Azimuth in units of 2 pi / 2^16: differences wrap as int16 do. Truncated towards zero; +pi becomes -pi.
__device__ int16_t velo_phi(float x, float y)
{
    return static_cast<int16_t>(static_cast<int32_t>(atan2_approximate(y, x) * velo_phi_units_per_radian));
}

/// LHCbID: detector 2, orientation bits (set if the centre of the cluster is off the centre of the pixel), channel id.
__device__ uint32_t velo_lhcb_id(uint32_t sensor, uint32_t column, uint32_t row, bool off_x, bool off_y)
{
    return 2u << 28 | (off_x ? 1u << 27 : 0u) | (off_y ? 1u << 26 : 0u) | sensor << 18 | column << 8 | row;
}

}  // namespace hlt
