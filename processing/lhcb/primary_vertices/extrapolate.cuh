// Tracks at the beam line in the z range of the vertex finder, packed in their order (docs/physics/primary-vertices.md,
// input).
//
// One block per event; threads stride over tracks, a prefix sum gives the places. Behind the last track, the places up
// to a multiple of pv_lanes hold a track that is far from every vertex, so that later loops need no test for the end.
// x and y of a track have the same variance (lhcb/velo/tracking/kalman_filter.cuh); pv_tracks.weight is its inverse,
// for the seeds. The filter assumes the scattering of long particles. Most tracks of a collision are softer than that
// at large angles, and harder along the beam. So pv_tracks.fit_weight is the inverse of
//     c00 (min_variance_scale + (max_variance_scale - min_variance_scale) t^2 / (t^2 + variance_slope^2)),
// t the slope to the beam.
// Bounds: tracks of an event as velo_tracks.count, plus padding (tracks.cuh).
#pragma once

#include "lhcb/primary_vertices/generated/pv_beamline_extrapolate.h"
#include "lhcb/primary_vertices/tracks.cuh"

HLT_KERNEL(pv_beamline_extrapolate)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t first_velo_track = p.velo_beamline.first(blockIdx.x);
    const uint32_t n_velo_tracks = p.velo_tracks.count[blockIdx.x];
    const uint32_t first = p.pv_tracks.first(blockIdx.x);

    uint32_t n = 0;
    for (uint32_t base = 0; base < n_velo_tracks; base += blockDim.x) {
        const uint32_t velo_track = first_velo_track + base + threadIdx.x;
        const bool there = base + threadIdx.x < n_velo_tracks;
        const float z = there ? p.velo_beamline.z[velo_track] : 0.f;
        const bool used = there && z > hlt::pv_z_min && z < hlt::pv_z_max;
        uint32_t total;
        const uint32_t place = first + n + hlt::block_exclusive_count(used, scratch, total);
        if (used) {
            const float tx = p.velo_beamline.tx[velo_track];
            const float ty = p.velo_beamline.ty[velo_track];
            const float slope2 = tx * tx + ty * ty;
            const float steep = slope2 / (slope2 + p.variance_slope * p.variance_slope);
            const float scale = p.min_variance_scale + (p.max_variance_scale - p.min_variance_scale) * steep;
            p.pv_tracks.x[place] = p.velo_beamline.x[velo_track];
            p.pv_tracks.y[place] = p.velo_beamline.y[velo_track];
            p.pv_tracks.z[place] = z;
            p.pv_tracks.tx[place] = tx;
            p.pv_tracks.ty[place] = ty;
            p.pv_tracks.weight[place] = 1.f / p.velo_beamline.c00[velo_track];
            p.pv_tracks.fit_weight[place] = 1.f / (scale * p.velo_beamline.c00[velo_track]);
        }
        n += total;
    }
    for (uint32_t place = first + n + threadIdx.x; place < first + hlt::pv_padded(n); place += blockDim.x) {
        p.pv_tracks.x[place] = 1e6f;
        p.pv_tracks.y[place] = 1e6f;
        p.pv_tracks.z[place] = 0.f;
        p.pv_tracks.tx[place] = 0.f;
        p.pv_tracks.ty[place] = 0.f;
        p.pv_tracks.weight[place] = 1.f;
        p.pv_tracks.fit_weight[place] = 1.f;
    }
    if (threadIdx.x == 0) p.pv_tracks.count[blockIdx.x] = n;
}
