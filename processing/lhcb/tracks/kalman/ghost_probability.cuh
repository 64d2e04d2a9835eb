// The probability of each long track to be a ghost, by a network with one hidden layer
// (docs/physics/ghost-probability.md).
//
// One block per event, one thread per track; on the CPU the hidden nodes are the lanes of a vector register. A NaN in a
// column counts as 0.
// Bounds: tracks of an event as long_tracks.count.
#pragma once

#include "lhcb/networks/one_hidden_layer.cuh"
#include "lhcb/tracks/kalman/generated/ghost_types.h"
#include "lhcb/tracks/kalman/generated/kalman_ghost_probability.h"
#include "lhcb/tracks/long/generated/long_types.h"
#include "lhcb/ut/generated/ut_types.h"

HLT_KERNEL(kalman_ghost_probability)
{
    if (!p.takes(blockIdx.x)) return;

    const hlt::ghost_network& network = *p.ghost_network;
    const uint32_t first_velo_track = p.velo_tracks.first(blockIdx.x);
    const uint32_t first = p.long_tracks.first(blockIdx.x);
    const uint32_t n_tracks = p.long_tracks.count[blockIdx.x];

    for (uint32_t number = threadIdx.x; number < n_tracks; number += blockDim.x) {
        const uint32_t track = first + number;
        float n_ut = 0.f;
        for (uint32_t layer = 0; layer < hlt::n_long_ut_layers; ++layer)
            n_ut += p.long_tracks.ut_hits[track * hlt::n_long_ut_layers + layer] != hlt::no_ut_hit ? 1.f : 0.f;
        const float qop = p.long_tracks.fitted_qop[track];
        const float tx = p.long_tracks.beam_tx[track], ty = p.long_tracks.beam_ty[track];
        const float inputs[hlt::n_ghost_inputs] = {
            hlt::network_logarithm(p.long_tracks.chi2[track]),
            hlt::network_logarithm(p.long_tracks.full_chi2[track]),
            hlt::network_logarithm(p.long_tracks.ut_chi2[track]),
            n_ut,
            static_cast<float>(p.velo_tracks.hit_count[first_velo_track + p.long_tracks.velo_track[track]]),
            static_cast<float>(p.long_tracks.hit_count[track]),
            hlt::network_logarithm(hlt::network_size(qop), 1e-6f, 0.1f),
            hlt::network_logarithm(tx * tx + ty * ty, 1e-6f, 1.f),
            hlt::network_logarithm(hlt::network_size(p.long_tracks.qop[track] - qop) / p.long_tracks.qop_error[track]),
            p.long_tracks.origin[track] == hlt::matched ? 1.f : 0.f,
            hlt::network_logarithm(1e3f * hlt::network_size(p.long_tracks.end_tx[track] - p.long_tracks.tx[track])),
            hlt::network_logarithm(1e3f * hlt::network_size(p.long_tracks.end_ty[track] - p.long_tracks.ty[track])),
            hlt::network_logarithm(hlt::network_size(p.long_tracks.end_y[track] - p.long_tracks.y[track])),
        };
        p.long_tracks.ghost_probability[track] = hlt::network_response(network, inputs);
    }
}
