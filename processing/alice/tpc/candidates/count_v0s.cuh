// Number of V0 candidates of each displaced track of positive charge.
//
// In:  displaced tracks and their bins. Out: tpc_merged_tracks.v0s_of_track, 0 for all other tracks;
// v0_first_partners. Partners are the
// displaced tracks of negative charge in the bins around that of the track: so time grows with their density, not with
// the square of all tracks. A track with more than tpc_max_partners has no candidate, and the event the note
// crowded_v0s. Blocks of an event share its merged tracks. Bounds: those of the merged tracks.
#pragma once

#include "alice/tpc/candidates/generated/tpc_count_v0s.h"
#include "alice/tpc/candidates/v0_pairs.cuh"
#include "alice/tpc/generated/tpc_flags.h"
#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "framework/device/between_blocks.cuh"

HLT_KERNEL(tpc_count_v0s)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t event = p.event_of(blockIdx.x), part = blockIdx.x - event * hlt::tpc_merging_parts;
    const uint32_t first = p.tpc_merged_tracks.first(event), n = p.tpc_merged_tracks.count[event];
    const hlt::tpc_v0_tracks of = hlt::v0_tracks_of(p, event);
    const hlt::tpc_v0_limits limits = hlt::v0_limits_of(p);
    bool crowded = false;
    for (uint32_t i = part * blockDim.x + threadIdx.x; i < n; i += hlt::tpc_merging_parts * blockDim.x) {
        uint32_t n_candidates = 0;
        uint32_t* const kept = p.tpc_merged_tracks.v0_first_partners + (first + i) * hlt::tpc_kept_partners;
        if (of.is_positive(i)) {
            if (of.n_partners(i) > hlt::tpc_max_partners)
                crowded = true;
            else
                of.for_candidates(limits, i, [&](const hlt::tpc_v0& found) {
                    if (n_candidates < hlt::tpc_kept_partners) kept[n_candidates] = found.negative;
                    ++n_candidates;
                });
        }
        p.tpc_merged_tracks.v0s_of_track[first + i] = static_cast<uint16_t>(n_candidates);
    }
    if (crowded) hlt::set_bits_between_blocks(&p.events.flags[event], uint32_t{hlt::crowded_v0s});
}
