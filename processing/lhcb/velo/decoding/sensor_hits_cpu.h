// Hits of a sensor on the CPU: eight at a time from the coordinates on the sensor to those in space.
#pragma once

#include "framework/device/vector8.cuh"
#include "lhcb/velo/hit.cuh"

namespace hlt {

/// Where the decoders write. Between decoding a word and place_hits, x and y hold the coordinates on the sensor.
struct decoded_hits {
    float* __restrict__ x;
    float* __restrict__ y;
    float* __restrict__ z;
    int16_t* __restrict__ phi;
    uint32_t* __restrict__ id;
    uint8_t* __restrict__ module_pair;

    /// As velo_position computes them.
    __attribute__((always_inline)) void store_local(uint32_t at, const velo_geometry& geometry, uint32_t column,
                                                    float fraction_x, uint32_t row, float fraction_y) const
    {
        x[at] = geometry.local_x[column] + fraction_x * geometry.x_pitch[column];
        y[at] = (static_cast<float>(row) + fraction_y + 0.5f) * velo_pixel_pitch;
    }

    /// The hits of one sensor, from `begin` to `end`. Up to seven places behind are overwritten: decoders fill them
    /// later, or they are the velo_hit_padding of the event.
    void place(const velo_geometry& geometry, uint32_t sensor, uint32_t begin, uint32_t end) const
    {
        const float* const t = geometry.local_to_global[sensor];
        for (uint32_t i = begin; i < end; i += 8u) {
            float8 local_x, local_y;
            load8(local_x, x + i);
            load8(local_y, y + i);
            const float8 global_x = t[0] * local_x + t[1] * local_y + t[9];
            const float8 global_y = t[3] * local_x + t[4] * local_y + t[10];
            const float8 global_z = t[6] * local_x + t[7] * local_y + t[11];
            std::memcpy(x + i, &global_x, sizeof global_x);
            std::memcpy(y + i, &global_y, sizeof global_y);
            std::memcpy(z + i, &global_z, sizeof global_z);
            std::memset(module_pair + i, static_cast<int>(sensor / 8u), 8u);
        }
    }

    /// Angles of hits that lie in space. Over full vectors: sensors have few hits.
    void find_phi(uint32_t begin, uint32_t end) const
    {
        for (uint32_t i = begin; i < end; ++i) phi[i] = velo_phi(x[i], y[i]);
    }
};

}  // namespace hlt
