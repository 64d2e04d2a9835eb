// Kalman fit of the VELO part of long tracks with their momentum: the state closest to the beam line
// (docs/physics/long-kalman-filter.md).
//
// One block per event, one thread per track; on the CPU a thread takes `kalman_width` tracks at once, one per lane of a
// vector register. A lane computes exactly what a thread of a GPU computes.
//
// From the hit with the largest z towards the beam line (velo_filter.cuh).
// Bounds: tracks of an event as long_tracks.count; at most max_velo_track_hits hits on a track.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/kalman/generated/kalman_velo_fit.h"
#include "lhcb/kalman/velo_filter.cuh"

HLT_KERNEL(kalman_velo_fit)
{
    if (!p.takes(blockIdx.x)) return;
    constexpr uint32_t width = hlt::kalman_width;

    const uint32_t first_hit = p.velo_hits.first(blockIdx.x);
    const uint32_t first_velo_track = p.velo_tracks.first(blockIdx.x);
    const uint32_t first_track = p.long_tracks.first(blockIdx.x);
    const uint32_t n_tracks = p.long_tracks.count[blockIdx.x];
    const float* hit_x = p.velo_hits.x + first_hit;
    const float* hit_y = p.velo_hits.y + first_hit;
    const float* hit_z = p.velo_hits.z + first_hit;
    const float beamline_x = p.velo_geometry->beamline_x;
    const float beamline_y = p.velo_geometry->beamline_y;
    const hlt::velo_field field = *p.velo_field;
    const hlt::long_filter filter = hlt::long_filter_of(p);

    for (uint32_t group = threadIdx.x * width; group < n_tracks; group += blockDim.x * width) {
        const uint32_t n_here = hlt::min_of(width, n_tracks - group);
        uint32_t velo_track[width];
        hlt::kalman_hits hits;
        hlt::long_fit_state state;
        hits.rows = 1;
        for (uint32_t i = 0; i < width; ++i) {
            const uint32_t track = first_track + group + hlt::min_of(i, n_here - 1);
            velo_track[i] = first_velo_track + p.long_tracks.velo_track[track];
            hits.count[i] = i < n_here ? p.velo_tracks.hit_count[velo_track[i]] : 0;
            hits.rows = hlt::max_of(hits.rows, hits.count[i]);
            hlt::long_fit_momentum(state, i, p.long_tracks.fitted_qop[track]);
        }
        for (uint32_t i = 0; i < width; ++i)
            hlt::kalman_read(hits, i, p.velo_tracks.hits + velo_track[i] * hlt::max_velo_track_hits, hit_x, hit_y,
                             hit_z);
        hlt::long_fit(hits, field, filter, state);

        for (uint32_t i = 0; i < width; ++i) {
            const float tx = state.x.t[i], ty = state.y.t[i];
            const float slope2 = tx * tx + ty * ty;
            const float towards = tx * (beamline_x - state.x.x[i]) + ty * (beamline_y - state.y.x[i]);
            const float dz = slope2 > 0.f ? towards / slope2 : 0.f;
            hlt::long_fit_end(field, state, i, dz, p.beam_line_scattering, p.beam_line_position, p.beam_line_both);
        }

        for (uint32_t i = 0; i < n_here; ++i) {
            const uint32_t track = first_track + group + i;
            p.long_tracks.beam_x[track] = state.x.x[i];
            p.long_tracks.beam_y[track] = state.y.x[i];
            p.long_tracks.beam_z[track] = state.z[i];
            p.long_tracks.beam_tx[track] = state.x.t[i];
            p.long_tracks.beam_ty[track] = state.y.t[i];
            p.long_tracks.beam_qop[track] = p.long_tracks.fitted_qop[track];
            p.long_tracks.beam_c00[track] = state.x.c00[i];
            p.long_tracks.beam_c20[track] = state.x.c20[i];
            p.long_tracks.beam_c22[track] = state.x.c22[i];
            p.long_tracks.beam_c11[track] = state.y.c00[i];
            p.long_tracks.beam_c31[track] = state.y.c20[i];
            p.long_tracks.beam_c33[track] = state.y.c22[i];
            const float freedom = 2.f * static_cast<float>(hits.count[i]) - 4.f;
            p.long_tracks.chi2[track] = freedom > 0.f ? state.chi2[i] / freedom : 0.f;
        }
    }
}
