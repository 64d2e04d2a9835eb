// The fit of long tracks on the CPU: the common kernel, with tracks in the lanes of vector registers.
#pragma once

#include "lhcb/tracks/kalman/full_fit.cuh"
#include "lhcb/tracks/kalman/long_tracks_cpu.h"

HLT_CPU_FORM(kalman_full_fit)
{
    if (!p.takes(event)) return;
    const uint32_t first_track = p.long_tracks.first(event), n_tracks = p.long_tracks.count[event];
    for (uint32_t group = 0; group < n_tracks; group += hlt::n_wide) {
        const hlt::long_tracks_in_lanes tracks{first_track + group, hlt::min_of(hlt::n_wide, n_tracks - group)};
        hlt::fit_long_tracks<hlt::float_wide>(p, event, tracks, hlt::velo_hits_in_lanes(p, event, tracks, true));
    }
}
