// The tracks of each half of the VELO at the beam line, packed in their order (docs/physics/velo-halves.md).
//
// A track belongs to a half if all its hits are on modules of that half. A track with hits of both depends on the
// distance of the halves, so it belongs to none. What is stored of a track, and the padding behind the tracks of each
// half: lhcb/primary_vertices/extrapolate.cuh.
// In:  velo_tracks.{count, hit_count, hits}, velo_hits.id, velo_beamline.{x, y, z, tx, ty, c00}.
// Out: half_tracks.{counts [event][2], x, y, z, tx, ty, weight, fit_weight}.
// One block per event; threads stride over tracks, once for each half.
// Bounds: tracks of an event as velo_tracks.count, plus padding of both halves.
#pragma once

#include "lhcb/primary_vertices/extrapolate.cuh"
#include "lhcb/primary_vertices/halves/generated/half_types.h"
#include "lhcb/primary_vertices/halves/generated/velo_halves_split_tracks.h"

namespace hlt {

/// The half of a hit; neighbouring modules belong to opposite halves.
__device__ uint32_t velo_half_of(uint32_t lhcb_id) { return lhcb_id >> 20 & 1u; }

/// True if all hits of a track are on one half.
__device__ bool is_of_half(const uint32_t* ids, const uint16_t* hits, uint32_t n_hits, uint32_t half)
{
    for (uint32_t i = 0; i < n_hits; ++i)
        if (velo_half_of(ids[hits[i]]) != half) return false;
    return true;
}

}  // namespace hlt

HLT_KERNEL(velo_halves_split_tracks)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t* ids = p.velo_hits.id + p.velo_hits.first(blockIdx.x);
    uint32_t first = p.half_tracks.first(blockIdx.x);
    for (uint32_t half = 0; half < hlt::n_velo_halves; ++half) {
        const uint32_t n = hlt::pv_pack_tracks(p, blockIdx.x, p.half_tracks, first, [&](uint32_t track) {
            return hlt::is_of_half(ids, p.velo_tracks.hits + track * hlt::max_velo_track_hits,
                                   p.velo_tracks.hit_count[track], half);
        });
        if (threadIdx.x == 0) p.half_tracks.counts[hlt::n_velo_halves * blockIdx.x + half] = n;
        first += hlt::pv_padded(n);
    }
}
