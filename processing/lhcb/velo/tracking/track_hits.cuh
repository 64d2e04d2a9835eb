// The VELO hits of the tracks that a thread fits at once: one on a GPU, one for each lane of a vector register on the
// CPU.
#pragma once

#include "framework/device/platform.cuh"
#include "lhcb/velo/generated/velo_types.h"

namespace hlt {

struct kalman_hit {
    float x, y, z;
};

#if HLT_ON_GPU
constexpr uint32_t kalman_width = 1;

/// Hits of a track, which has at least one. They are read where they are needed: an array would lie in local memory.
struct kalman_hits {
    uint32_t rows;
    uint32_t count[kalman_width];
    const uint16_t* indices;
    const float* x;
    const float* y;
    const float* z;

    __device__ bool has(uint32_t, uint32_t) const { return true; }  // each row is a hit of this track
    __device__ kalman_hit at(uint32_t k, uint32_t) const
    {
        const uint32_t hit = indices[k];
        return {x[hit], y[hit], z[hit]};
    }
};
#else
constexpr uint32_t kalman_width = 16;

/// Hits of a group of tracks, [hit][track]. Rows below `rows` are filled, with zeros behind the last hit of a track.
struct kalman_hits {
    uint32_t rows;
    uint32_t count[kalman_width];
    float x[max_velo_track_hits][kalman_width];
    float y[max_velo_track_hits][kalman_width];
    float z[max_velo_track_hits][kalman_width];

    bool has(uint32_t k, uint32_t t) const { return k < count[t]; }
    kalman_hit at(uint32_t k, uint32_t t) const { return {x[k][t], y[k][t], z[k][t]}; }
};
#endif

/// Track `t` of the group, whose count is set, as `rows`: `indices` of its hits, and x, y, z of all hits.
__device__ void kalman_read(kalman_hits& hits, uint32_t t, const uint16_t* indices, const float* x, const float* y,
                            const float* z)
{
#if HLT_ON_GPU
    hits.indices = indices;
    hits.x = x;
    hits.y = y;
    hits.z = z;
#else
    for (uint32_t k = 0; k < hits.count[t]; ++k) {
        const uint32_t hit = indices[k];
        hits.x[k][t] = x[hit];
        hits.y[k][t] = y[hit];
        hits.z[k][t] = z[hit];
    }
    for (uint32_t k = hits.count[t]; k < hits.rows; ++k) hits.x[k][t] = hits.y[k][t] = hits.z[k][t] = 0.f;
#endif
}

}  // namespace hlt
