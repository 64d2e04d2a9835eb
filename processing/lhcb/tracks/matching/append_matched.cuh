// Merge of the matched tracks into the long tracks found before, in the order of VELO tracks.
//
// Both lists ascend by VELO track and have no VELO track in common. So the place of a track is its number in its own
// list plus the number of earlier tracks in the other list. Tracks found before move up, from the last to the first; a
// block of them is read before it is written.
// In:  matched_tracks, scifi_seeds. In and out: long_tracks.
// One block per event; threads stride over tracks.
// Bounds: match_seeds ensures that all tracks fit.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/tracks/long/generated/long_types.h"
#include "lhcb/tracks/matching/generated/matching_append_matched.h"
#include "lhcb/ut/generated/ut_types.h"

namespace hlt {

/// A row of long_tracks.
struct long_track_row {
    uint16_t velo_track, ut_track;
    uint8_t origin, hit_count;
    float qop, x, y, tx, ty, quality;
    uint16_t hits[max_scifi_track_hits];
    uint16_t ut_hits[n_long_ut_layers];
};

/// The number of values below `value` among `n` ascending ones.
__device__ uint32_t n_below(const uint16_t* ascending, uint32_t n, uint32_t value)
{
    uint32_t first = 0;
    while (n > 0u) {
        const uint32_t half = n / 2u;
        const bool below = ascending[first + half] < value;
        first = below ? first + half + 1u : first;
        n = below ? n - half - 1u : half;
    }
    return first;
}

}  // namespace hlt

HLT_KERNEL(matching_append_matched)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t first = p.long_tracks.first(event);
    const uint32_t first_matched = p.matched_tracks.first(event);
    const uint32_t first_seed = p.scifi_seeds.first(event);
    const uint32_t n_before = p.long_tracks.count[event];
    const uint32_t n_matched = p.matched_tracks.count[event];
    const uint16_t* matched = p.matched_tracks.velo_track + first_matched;
    const auto write = [&](uint32_t place, const hlt::long_track_row& row) {
        const uint32_t to = first + place;
        p.long_tracks.velo_track[to] = row.velo_track;
        p.long_tracks.ut_track[to] = row.ut_track;
        p.long_tracks.origin[to] = row.origin;
        p.long_tracks.qop[to] = row.qop;
        p.long_tracks.x[to] = row.x;
        p.long_tracks.y[to] = row.y;
        p.long_tracks.tx[to] = row.tx;
        p.long_tracks.ty[to] = row.ty;
        p.long_tracks.quality[to] = row.quality;
        p.long_tracks.hit_count[to] = row.hit_count;
        for (uint32_t k = 0; k < hlt::max_scifi_track_hits; ++k)
            p.long_tracks.hits[to * hlt::max_scifi_track_hits + k] = row.hits[k];
        for (uint32_t k = 0; k < hlt::n_long_ut_layers; ++k)
            p.long_tracks.ut_hits[to * hlt::n_long_ut_layers + k] = row.ut_hits[k];
    };
    if (n_matched == 0u) return;

    // Compute the places of matched tracks before any track moves.
    uint32_t end = (n_before + blockDim.x - 1u) / blockDim.x * blockDim.x;
    __shared__ uint16_t places[hlt::max_long_tracks];
    for (uint32_t i = threadIdx.x; i < n_matched; i += blockDim.x)
        places[i] = static_cast<uint16_t>(i + hlt::n_below(p.long_tracks.velo_track + first, n_before, matched[i]));
    hlt::block_barrier();
    for (; end > 0u; end -= blockDim.x) {
        const uint32_t i = end - blockDim.x + threadIdx.x;
        hlt::long_track_row row{};
        if (i < n_before) {
            const uint32_t from = first + i;
            row.velo_track = p.long_tracks.velo_track[from];
            row.ut_track = p.long_tracks.ut_track[from];
            row.origin = p.long_tracks.origin[from];
            row.qop = p.long_tracks.qop[from];
            row.x = p.long_tracks.x[from];
            row.y = p.long_tracks.y[from];
            row.tx = p.long_tracks.tx[from];
            row.ty = p.long_tracks.ty[from];
            row.quality = p.long_tracks.quality[from];
            row.hit_count = p.long_tracks.hit_count[from];
            for (uint32_t k = 0; k < hlt::max_scifi_track_hits; ++k)
                row.hits[k] = p.long_tracks.hits[from * hlt::max_scifi_track_hits + k];
            for (uint32_t k = 0; k < hlt::n_long_ut_layers; ++k)
                row.ut_hits[k] = p.long_tracks.ut_hits[from * hlt::n_long_ut_layers + k];
        }
        hlt::block_barrier();
        if (i < n_before) write(i + hlt::n_below(matched, n_matched, row.velo_track), row);
        hlt::block_barrier();
    }
    for (uint32_t i = threadIdx.x; i < n_matched; i += blockDim.x) {
        const uint32_t from = first_seed + p.matched_tracks.seed[first_matched + i];
        hlt::long_track_row row{};
        row.velo_track = matched[i];
        row.ut_track = static_cast<uint16_t>(hlt::no_ut_track);
        row.origin = static_cast<uint8_t>(hlt::matched);
        row.qop = p.matched_tracks.qop[first_matched + i];
        row.quality = p.matched_tracks.quality[first_matched + i];
        row.x = p.scifi_seeds.x[from];
        row.y = p.scifi_seeds.y[from];
        row.tx = p.scifi_seeds.tx[from];
        row.ty = p.scifi_seeds.ty[from];
        row.hit_count = p.scifi_seeds.hit_count[from];
        for (uint32_t k = 0; k < hlt::max_scifi_track_hits; ++k)
            row.hits[k] = p.scifi_seeds.hits[from * hlt::max_scifi_track_hits + k];
        for (uint32_t k = 0; k < hlt::n_long_ut_layers; ++k)
            row.ut_hits[k] = p.matched_tracks.ut_hits[(first_matched + i) * hlt::n_long_ut_layers + k];
        write(places[i], row);
    }
    if (threadIdx.x == 0) p.long_tracks.count[event] = n_before + n_matched;
}
