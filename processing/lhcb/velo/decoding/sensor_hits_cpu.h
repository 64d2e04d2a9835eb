// Hits on the CPU: the columns that decoders write, and the transformation from sensor to global coordinates.
#pragma once

#include "framework/device/vector8.cuh"
#include "lhcb/velo/hit.cuh"

namespace hlt {

using float4 = float __attribute__((vector_size(16)));

// velo_position loads four numbers at once, also on a GPU, whose compiler does not know __builtin_offsetof.
static_assert(__builtin_offsetof(velo_geometry, local_to_global) % sizeof(four_of<float>) == 0u);

/// Destination of the decoders.
struct decoded_hits {
    float* __restrict__ x;
    float* __restrict__ y;
    float* __restrict__ z;
    int16_t* __restrict__ phi;
    uint32_t* __restrict__ id;
    uint8_t* __restrict__ module_pair;

    /// Store four points (x, y, z and an unused lane) from place `at` on.
    __attribute__((always_inline)) void store_points(uint32_t at, const float4 (&points)[4]) const
    {
        const float4 xy01 = __builtin_shufflevector(points[0], points[1], 0, 4, 1, 5);
        const float4 xy23 = __builtin_shufflevector(points[2], points[3], 0, 4, 1, 5);
        const float4 z01 = __builtin_shufflevector(points[0], points[1], 2, 6, 3, 7);
        const float4 z23 = __builtin_shufflevector(points[2], points[3], 2, 6, 3, 7);
        const float4 of_x = __builtin_shufflevector(xy01, xy23, 0, 1, 4, 5);
        const float4 of_y = __builtin_shufflevector(xy01, xy23, 2, 3, 6, 7);
        const float4 of_z = __builtin_shufflevector(z01, z23, 0, 1, 4, 5);
        std::memcpy(x + at, &of_x, sizeof of_x);
        std::memcpy(y + at, &of_y, sizeof of_y);
        std::memcpy(z + at, &of_z, sizeof of_z);
    }

    /// Compute the angles of the hits in these places, for all sensors together: a sensor has too few hits to fill
    /// vectors.
    void find_phi(uint32_t begin, uint32_t end) const
    {
        for (uint32_t i = begin; i < end; ++i) phi[i] = velo_phi(x[i], y[i]);
    }
};

/// The transformations of sensors by their columns: an operation of four lanes computes x, y and z of a hit.
class sensor_transformations {
  public:
    /// Call this for each sensor that has hits.
    void add(const velo_geometry& geometry, uint32_t sensor)
    {
        const float* const t = geometry.local_to_global[sensor];
        of_sensors_[sensor] = columns{float4{t[0], t[3], t[6]}, float4{t[1], t[4], t[7]}, float4{t[9], t[10], t[11]}};
    }

    /// x, y and z as velo_position computes them, and an unused lane.
    __attribute__((always_inline)) float4 position(uint32_t sensor, float local_x, float local_y) const
    {
        const columns& of = of_sensors_[sensor];
        return of.x * local_x + of.y * local_y + of.centre;
    }

  private:
    struct alignas(64) columns {
        float4 x, y, centre;
    };
    columns of_sensors_[n_velo_sensors];
};

}  // namespace hlt
