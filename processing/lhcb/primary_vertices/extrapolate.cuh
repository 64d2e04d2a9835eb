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

namespace hlt {

/// Pack those VELO tracks of an event in the z range that `belongs` accepts, with padding, from `first` on. `p`: the
/// tracks and the scale of variances. Returns their number. The threads of the block call it together.
template <typename Parameters, typename Columns, typename Belongs>
__device__ uint32_t pv_pack_tracks(const Parameters& p, uint32_t event, const Columns& out, uint32_t first,
                                   Belongs belongs)
{
    __shared__ uint32_t scratch[max_block_size / warp_size];
    const uint32_t first_velo_track = p.velo_beamline.first(event);
    const uint32_t n_velo_tracks = p.velo_tracks.count[event];

    uint32_t n = 0;
    for (uint32_t base = 0; base < n_velo_tracks; base += blockDim.x) {
        const uint32_t velo_track = first_velo_track + base + threadIdx.x;
        const bool there = base + threadIdx.x < n_velo_tracks;
        const float z = there ? p.velo_beamline.z[velo_track] : 0.f;
        const bool used = there && z > pv_z_min && z < pv_z_max && belongs(velo_track);
        uint32_t total;
        const uint32_t place = first + n + block_exclusive_count(used, scratch, total);
        if (used) {
            const float tx = p.velo_beamline.tx[velo_track];
            const float ty = p.velo_beamline.ty[velo_track];
            const float slope2 = tx * tx + ty * ty;
            const float steep = slope2 / (slope2 + p.variance_slope * p.variance_slope);
            const float scale = p.min_variance_scale + (p.max_variance_scale - p.min_variance_scale) * steep;
            out.x[place] = p.velo_beamline.x[velo_track];
            out.y[place] = p.velo_beamline.y[velo_track];
            out.z[place] = z;
            out.tx[place] = tx;
            out.ty[place] = ty;
            out.weight[place] = 1.f / p.velo_beamline.c00[velo_track];
            out.fit_weight[place] = 1.f / (scale * p.velo_beamline.c00[velo_track]);
        }
        n += total;
    }
    for (uint32_t place = first + n + threadIdx.x; place < first + pv_padded(n); place += blockDim.x) {
        out.x[place] = 1e6f;
        out.y[place] = 1e6f;
        out.z[place] = 0.f;
        out.tx[place] = 0.f;
        out.ty[place] = 0.f;
        out.weight[place] = 1.f;
        out.fit_weight[place] = 1.f;
    }
    return n;
}

}  // namespace hlt

HLT_KERNEL(pv_beamline_extrapolate)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t n =
        hlt::pv_pack_tracks(p, blockIdx.x, p.pv_tracks, p.pv_tracks.first(blockIdx.x), [](uint32_t) { return true; });
    if (threadIdx.x == 0) p.pv_tracks.count[blockIdx.x] = n;
}
