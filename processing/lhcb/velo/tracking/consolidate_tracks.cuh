// Consolidation: the remaining tracks without gaps, then the accepted three-hit tracks.
//
// Tracks move to lower places of the same columns. A track is read before the barrier of the prefix sum and written
// after it.
// In:  velo_tracks.candidate_count, velo_seeds.hits, velo_seeds.count; velo_tracks.hits and velo_tracks.hit_count of
//      the candidates, 0 hits for a killed one.
// Out: velo_tracks.hits and velo_tracks.hit_count without gaps, velo_tracks.count [event].
// One block per event; a thread moves one track at a time.
// Bounds: the event has half as many places as clusters; further tracks are dropped, and the event is flagged.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/velo/generated/velo_types.h"
#include "lhcb/velo/tracking/generated/velo_consolidate_tracks.h"

namespace hlt {

/// The hits of a track while other tracks move. On a GPU they are words in registers, because an array that is indexed
/// by a variable would lie in local memory.
struct velo_track_row {
#if HLT_ON_GPU
    static constexpr uint32_t n_words = max_velo_track_hits * sizeof(uint16_t) / sizeof(uint32_t);
    static_assert(n_words * sizeof(uint32_t) == max_velo_track_hits * sizeof(uint16_t));  // rows are aligned
    uint32_t words[n_words];
    uint16_t last;

    __device__ void load(const uint16_t* hits, uint32_t n)
    {
        for (uint32_t i = 0; i < n_words; ++i) words[i] = 2u * i < n ? reinterpret_cast<const uint32_t*>(hits)[i] : 0u;
        last = hits[n - 1u];
    }
    __device__ void store(uint16_t* hits, uint32_t n) const
    {
        for (uint32_t i = 0; i < n_words; ++i)
            if (2u * i + 1u < n) reinterpret_cast<uint32_t*>(hits)[i] = words[i];
        hits[n - 1u] = last;
    }
#else
    const uint16_t* row;  // one thread: no other track moves meanwhile

    void load(const uint16_t* hits, uint32_t) { row = hits; }
    void store(uint16_t* hits, uint32_t n) const
    {
        for (uint32_t k = 0; k < n; ++k) hits[k] = row[k];
    }
#endif
};

}  // namespace hlt

HLT_KERNEL(velo_consolidate_tracks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t first_hit = p.velo_clusters.offset[event];
    const uint32_t first_track = p.velo_tracks.first(event);
    const uint32_t max_tracks = (first_hit + p.velo_clusters.bound[event]) / 2u - first_track;
    const uint32_t n_candidates = p.velo_tracks.candidate_count[event];
    const uint32_t n_seeds = p.velo_seeds.count[event];
    uint16_t* track_hits = p.velo_tracks.hits + first_track * hlt::max_velo_track_hits;
    uint8_t* track_hit_count = p.velo_tracks.hit_count + first_track;
    const uint16_t* seeds = p.velo_seeds.hits + 4u * p.velo_seeds.first(event);

    uint32_t n_tracks = 0;
    for (uint32_t base = 0; base < n_candidates; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        const uint32_t n = i < n_candidates ? track_hit_count[i] : 0;
        hlt::velo_track_row row;
        if (n > 0u) row.load(track_hits + i * hlt::max_velo_track_hits, n);
        uint32_t total;
        // Behind its barrier all threads have read their tracks.
        const uint32_t at = n_tracks + hlt::block_exclusive_count(n > 0u, scratch, total);
        if (n > 0u && at != i) {
            row.store(track_hits + at * hlt::max_velo_track_hits, n);
            track_hit_count[at] = static_cast<uint8_t>(n);
        }
        n_tracks += total;
    }
    for (uint32_t base = 0; base < n_seeds; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        const bool accepted = i < n_seeds && seeds[4u * i + 3u] == hlt::seed_accepted;
        uint32_t total;
        const uint32_t at = n_tracks + hlt::block_exclusive_count(accepted, scratch, total);
        if (accepted && at < max_tracks) {
            for (uint32_t k = 0; k < 3u; ++k) track_hits[at * hlt::max_velo_track_hits + k] = seeds[4u * i + k];
            track_hit_count[at] = 3;
        }
        n_tracks += total;
    }
    if (threadIdx.x == 0) {
        p.velo_tracks.count[event] = hlt::min_of(n_tracks, max_tracks);
        if (n_tracks > max_tracks) p.events.flags[event] |= hlt::overflow;
    }
}
