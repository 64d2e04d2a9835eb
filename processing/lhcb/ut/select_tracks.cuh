// The continuations that become VELO-UT tracks: those that share few hits with better ones, stored without gaps.
//
// Each hit belongs to the best continuation that has it. A continuation with more than max_shared_hits hits of others
// is most often a VELO track whose particle left no hits in the UT, with hits of another particle (docs/physics/ut.md).
// In:  ut_candidates, velo_tracks.count, ut_hits.count. Out: ut_tracks, ascending by VELO track; events.flags.
// One block per event, threads stride over hits, then over VELO tracks.
// Bounds: max_ut_tracks for each event; the first ones are kept and the event is flagged. Numbers of VELO tracks and of
// hits have 16 bits.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/ut/generated/ut_select_tracks.h"
#include "lhcb/ut/generated/ut_types.h"

namespace hlt {

/// Sort key of continuations, the best first: the upper bits of the quality, a positive number, then the track.
__device__ uint32_t ut_rank(float quality, uint32_t track) { return (__float_as_uint(quality) & 0xffff0000u) | track; }

}  // namespace hlt

HLT_KERNEL(ut_select_tracks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t first_candidate = p.ut_candidates.first(event), first_track = p.ut_tracks.first(event);
    const uint32_t n_candidates = p.velo_tracks.count[event], n_hits = p.ut_hits.count[event];
    uint32_t* const owner = p.scratch.owner + p.scratch.first(event);
    const uint8_t* const hit_count = p.ut_candidates.hit_count + first_candidate;
    const float* const quality = p.ut_candidates.quality + first_candidate;
    const uint16_t* const hits = p.ut_candidates.hits + first_candidate * hlt::n_ut_layers;

    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) owner[i] = 0xffffffffu;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n_candidates; i += blockDim.x) {
        if (hit_count[i] == 0u) continue;
        for (uint32_t layer = 0; layer < hlt::n_ut_layers; ++layer) {
            const uint32_t hit = hits[i * hlt::n_ut_layers + layer];
            if (hit != hlt::no_ut_hit) atomicMin(&owner[hit], hlt::ut_rank(quality[i], i));
        }
    }
    __syncthreads();

    uint32_t n_tracks = 0;
    for (uint32_t base = 0; base < n_candidates; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        bool kept = i < n_candidates && hit_count[i] > 0u;
        if (kept) {
            uint32_t n_shared = 0;
            for (uint32_t layer = 0; layer < hlt::n_ut_layers; ++layer) {
                const uint32_t hit = hits[i * hlt::n_ut_layers + layer];
                if (hit != hlt::no_ut_hit && owner[hit] != hlt::ut_rank(quality[i], i)) ++n_shared;
            }
            kept = n_shared <= p.max_shared_hits;
        }
        uint32_t total;
        const uint32_t at = n_tracks + hlt::block_exclusive_count(kept, scratch, total);
        n_tracks += total;
        if (!kept || at >= hlt::max_ut_tracks) continue;
        const uint32_t track = first_track + at, candidate = first_candidate + i;
        p.ut_tracks.velo_track[track] = static_cast<uint16_t>(i);
        p.ut_tracks.qop[track] = p.ut_candidates.qop[candidate];
        p.ut_tracks.x[track] = p.ut_candidates.x[candidate];
        p.ut_tracks.z[track] = p.ut_candidates.z[candidate];
        p.ut_tracks.tx[track] = p.ut_candidates.tx[candidate];
        p.ut_tracks.hit_count[track] = hit_count[i];
        for (uint32_t layer = 0; layer < hlt::n_ut_layers; ++layer)
            p.ut_tracks.hits[track * hlt::n_ut_layers + layer] = hits[i * hlt::n_ut_layers + layer];
    }
    if (threadIdx.x != 0) return;
    p.ut_tracks.count[event] = hlt::min_of(n_tracks, hlt::max_ut_tracks);
    if (n_tracks > hlt::max_ut_tracks) p.events.flags[event] |= hlt::overflow;
}
