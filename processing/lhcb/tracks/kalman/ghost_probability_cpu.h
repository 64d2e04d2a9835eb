// The network of the ghost probability on the CPU: tracks are the lanes of vector registers. The logarithms, most of
// the work of the common kernel, are computed for `width` tracks at once.
#pragma once

#include "lhcb/networks/one_hidden_layer_cpu.h"
#include "lhcb/tracks/kalman/ghost_probability.cuh"

HLT_CPU_FORM(kalman_ghost_probability)
{
    if (!p.takes(event)) return;
    constexpr uint32_t width = 16;
    const hlt::ghost_network& network = *p.ghost_network;
    const uint32_t first_velo_track = p.velo_tracks.first(event);
    const uint32_t first = p.long_tracks.first(event);
    const uint32_t n_tracks = p.long_tracks.count[event];

    for (uint32_t group = 0; group < n_tracks; group += width) {
        const uint32_t n = hlt::min_of(width, n_tracks - group);
        float inputs[hlt::n_ghost_inputs][width];
        for (uint32_t i = 0; i < width; ++i) {
            const uint32_t track = first + group + hlt::min_of(i, n - 1u);
            float n_ut = 0.f;
            for (uint32_t layer = 0; layer < hlt::n_long_ut_layers; ++layer)
                n_ut += p.long_tracks.ut_hits[track * hlt::n_long_ut_layers + layer] != hlt::no_ut_hit ? 1.f : 0.f;
            const float qop = p.long_tracks.fitted_qop[track];
            const float tx = p.long_tracks.beam_tx[track], ty = p.long_tracks.beam_ty[track];
            inputs[0][i] = p.long_tracks.chi2[track];
            inputs[1][i] = p.long_tracks.full_chi2[track];
            inputs[2][i] = p.long_tracks.ut_chi2[track];
            inputs[3][i] = n_ut;
            inputs[4][i] =
                static_cast<float>(p.velo_tracks.hit_count[first_velo_track + p.long_tracks.velo_track[track]]);
            inputs[5][i] = static_cast<float>(p.long_tracks.hit_count[track]);
            inputs[6][i] = hlt::network_size(qop);
            inputs[7][i] = tx * tx + ty * ty;
            inputs[8][i] = hlt::network_size(p.long_tracks.qop[track] - qop) / p.long_tracks.qop_error[track];
            inputs[9][i] = p.long_tracks.origin[track] == hlt::matched ? 1.f : 0.f;
            inputs[10][i] = 1e3f * hlt::network_size(p.long_tracks.end_tx[track] - p.long_tracks.tx[track]);
            inputs[11][i] = 1e3f * hlt::network_size(p.long_tracks.end_ty[track] - p.long_tracks.ty[track]);
            inputs[12][i] = hlt::network_size(p.long_tracks.end_y[track] - p.long_tracks.y[track]);
        }
        for (const uint32_t number : {0u, 1u, 2u, 8u, 10u, 11u, 12u})
            for (uint32_t i = 0; i < width; ++i) inputs[number][i] = hlt::network_logarithm(inputs[number][i]);
        for (uint32_t i = 0; i < width; ++i) inputs[6][i] = hlt::network_logarithm(inputs[6][i], 1e-6f, 0.1f);
        for (uint32_t i = 0; i < width; ++i) inputs[7][i] = hlt::network_logarithm(inputs[7][i], 1e-6f, 1.f);

        float u[width];
        hlt::network_responses(network, inputs, u);
        std::memcpy(p.long_tracks.ghost_probability + first + group, u, n * sizeof *u);
    }
}
