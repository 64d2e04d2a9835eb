// The fit of the VELO part of long tracks on the CPU: the common kernel with tracks in the lanes of vector registers;
// the states stay in registers from hit to hit.
#pragma once

#include "lhcb/tracks/kalman/long_tracks_cpu.h"
#include "lhcb/tracks/kalman/velo_fit.cuh"

HLT_CPU_FORM(kalman_velo_fit)
{
    if (!hlt::compares_eight_lanes) return kalman_velo_fit(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const uint32_t first_track = p.long_tracks.first(event), n_tracks = p.long_tracks.count[event];
    for (uint32_t group = 0; group < n_tracks; group += hlt::n_wide) {
        const hlt::long_tracks_in_lanes tracks{first_track + group, hlt::min_of(hlt::n_wide, n_tracks - group)};
        const hlt::velo_hits_in_lanes hits(p, event, tracks, false);
        const hlt::float_wide n_hits = __builtin_convertvector((hlt::int_wide)hits.counts(), hlt::float_wide);
        hlt::fit_velo_hits<hlt::float_wide>(p, tracks, hits, n_hits);
    }
}
