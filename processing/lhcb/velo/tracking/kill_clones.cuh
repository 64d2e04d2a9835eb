// Clone killing: if two tracks share most of their hits, one is removed.
//
// Every hit belongs to the best of its tracks: the one with the most hits, the first one of equals. A track is a clone
// if too many of its hits belong to others.
// In:  velo_tracks.hits, velo_tracks.candidate_count.
// Out: velo_tracks.hit_count, 0 for a clone; scratch.hit_owner.
// One block per event; threads stride over hits and over tracks.
// Bounds: velo_tracks.candidate_count <= places of the event; hits of tracks lie below velo_clusters.count.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/velo/generated/velo_types.h"
#include "lhcb/velo/tracking/generated/velo_kill_clones.h"

HLT_KERNEL(velo_kill_clones)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t first_hit = p.scratch.first(event);
    const uint32_t first_track = p.velo_tracks.first(event);
    const uint32_t n_hits = p.velo_clusters.count[event];
    const uint32_t n_tracks = p.velo_tracks.candidate_count[event];
    const uint16_t* track_hits = p.velo_tracks.hits + first_track * hlt::max_velo_track_hits;
    uint8_t* track_hit_count = p.velo_tracks.hit_count + first_track;
    uint32_t* owner = p.scratch.hit_owner + first_hit;

    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) owner[i] = 0;
    __syncthreads();
    for (uint32_t track = threadIdx.x; track < n_tracks; track += blockDim.x) {
        const uint32_t n = track_hit_count[track];
        const uint32_t rank = n << 16 | (0xffffu - track);
        for (uint32_t i = 0; i < n; ++i) atomicMax(&owner[track_hits[track * hlt::max_velo_track_hits + i]], rank);
    }
    __syncthreads();
    for (uint32_t track = threadIdx.x; track < n_tracks; track += blockDim.x) {
        const uint32_t n = track_hit_count[track];
        uint32_t shared = 0;
        for (uint32_t i = 0; i < n; ++i)
            if ((owner[track_hits[track * hlt::max_velo_track_hits + i]] & 0xffffu) != 0xffffu - track) ++shared;
        if (static_cast<float>(shared) > p.max_shared_fraction * static_cast<float>(n)) track_hit_count[track] = 0;
    }
}
