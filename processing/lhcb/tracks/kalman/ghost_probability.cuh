// The probability of each long track to be a ghost, by a network with one hidden layer
// (docs/physics/ghost-probability.md).
//
// One block per event, one thread per track; on the CPU the hidden nodes are the lanes of a vector register. A NaN in a
// column counts as 0.
// Bounds: tracks of an event as long_tracks.count.
#pragma once

#include "framework/device/math.cuh"
#include "framework/device/platform.cuh"
#include "lhcb/tracks/kalman/generated/ghost_types.h"
#include "lhcb/tracks/kalman/generated/kalman_ghost_probability.h"
#include "lhcb/tracks/long/generated/long_types.h"
#include "lhcb/ut/generated/ut_types.h"

namespace hlt {

/// ln(1 + value), of values from 0 to 10,000.
__device__ __forceinline__ float ghost_logarithm(float value)
{
    constexpr float largest = 1e4f;
    return logarithm(1.f + (value > 0.f ? min_of(value, largest) : 0.f));
}

/// ln(value), of values within limits.
__device__ __forceinline__ float ghost_logarithm(float value, float least, float largest)
{
    return logarithm(value > least ? min_of(value, largest) : least);
}

__device__ __forceinline__ float ghost_size(float value) { return value < 0.f ? -value : value; }

}  // namespace hlt

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
            hlt::ghost_logarithm(p.long_tracks.chi2[track]),
            hlt::ghost_logarithm(p.long_tracks.full_chi2[track]),
            hlt::ghost_logarithm(p.long_tracks.ut_chi2[track]),
            n_ut,
            static_cast<float>(p.velo_tracks.hit_count[first_velo_track + p.long_tracks.velo_track[track]]),
            static_cast<float>(p.long_tracks.hit_count[track]),
            hlt::ghost_logarithm(hlt::ghost_size(qop), 1e-6f, 0.1f),
            hlt::ghost_logarithm(tx * tx + ty * ty, 1e-6f, 1.f),
            hlt::ghost_logarithm(hlt::ghost_size(p.long_tracks.qop[track] - qop) / p.long_tracks.qop_error[track]),
            p.long_tracks.origin[track] == hlt::matched ? 1.f : 0.f,
            hlt::ghost_logarithm(1e3f * hlt::ghost_size(p.long_tracks.end_tx[track] - p.long_tracks.tx[track])),
            hlt::ghost_logarithm(1e3f * hlt::ghost_size(p.long_tracks.end_ty[track] - p.long_tracks.ty[track])),
            hlt::ghost_logarithm(hlt::ghost_size(p.long_tracks.end_y[track] - p.long_tracks.y[track])),
        };
        float hidden[hlt::n_ghost_hidden];
        for (uint32_t node = 0; node < hlt::n_ghost_hidden; ++node) hidden[node] = network.hidden_bias[node];
        for (uint32_t i = 0; i < hlt::n_ghost_inputs; ++i) {
            const float input = (inputs[i] - network.mean[i]) * network.inverse_spread[i];
            for (uint32_t node = 0; node < hlt::n_ghost_hidden; ++node) hidden[node] += input * network.hidden[i][node];
        }
        float u = network.output_bias;
        for (uint32_t node = 0; node < hlt::n_ghost_hidden; ++node)
            u += hlt::max_of(hidden[node], 0.f) * network.output[node];
        p.long_tracks.ghost_probability[track] = 0.5f * (1.f + u / sqrtf(1.f + u * u));
    }
}
