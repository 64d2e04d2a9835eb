// Kalman fit of the VELO part of long tracks with their momentum: the state closest to the beam line
// (docs/physics/long-kalman-filter.md).
//
// One block per event, one thread per track.
//
// From the hit with the largest z towards the beam line (velo_filter.cuh).
// Bounds: tracks of an event as long_tracks.count; at most max_velo_track_hits hits on a track.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/tracks/kalman/generated/kalman_velo_fit.h"
#include "lhcb/tracks/kalman/long_track.cuh"
#include "lhcb/tracks/kalman/velo_filter.cuh"
#include "lhcb/velo/beam_line.cuh"

namespace hlt {

/// Fit the hits of some tracks, `n_hits` of each, and write the states. `p`: the parameters of the kernel.
template <typename Real, typename Parameters, typename Tracks, typename Hits>
__device__ void fit_velo_hits(const Parameters& p, const Tracks& tracks, const Hits& hits, const Real& n_hits)
{
    const velo_field field = *p.velo_field;
    const velo_beam_line beam_line(*p.velo_geometry);
    const Real qop = tracks.of(p.long_tracks.fitted_qop), none{};
    long_fit_state<Real> state;
    long_fit_momentum(state, qop);
    long_fit(hits, field, long_filter_of(p), state);

    const Real dz = beam_line.dz_to_closest(state.x.x, state.y.x, state.z, state.x.t, state.y.t);
    long_fit_end(field, state, dz, p.beam_line_scattering, p.beam_line_position, p.beam_line_both);

    tracks.put(p.long_tracks.beam_x, state.x.x);
    tracks.put(p.long_tracks.beam_y, state.y.x);
    tracks.put(p.long_tracks.beam_z, state.z);
    tracks.put(p.long_tracks.beam_tx, state.x.t);
    tracks.put(p.long_tracks.beam_ty, state.y.t);
    tracks.put(p.long_tracks.beam_qop, qop);
    tracks.put(p.long_tracks.beam_c00, state.x.c00);
    tracks.put(p.long_tracks.beam_c20, state.x.c20);
    tracks.put(p.long_tracks.beam_c22, state.x.c22);
    tracks.put(p.long_tracks.beam_c11, state.y.c00);
    tracks.put(p.long_tracks.beam_c31, state.y.c20);
    tracks.put(p.long_tracks.beam_c33, state.y.c22);
    const Real freedom = 2.f * n_hits - 4.f;
    tracks.put(p.long_tracks.chi2, freedom > 0.f ? state.chi2 / freedom : none);
}

}  // namespace hlt

HLT_KERNEL(kalman_velo_fit)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t first_track = p.long_tracks.first(event), n_tracks = p.long_tracks.count[event];
    for (uint32_t track = first_track + threadIdx.x; track < first_track + n_tracks; track += blockDim.x) {
        const hlt::velo_hits_of_track hits = hlt::velo_hits_of(p, event, track, false);
        hlt::fit_velo_hits<float>(p, hlt::one_long_track{track}, hits, static_cast<float>(hits.rows));
    }
}
