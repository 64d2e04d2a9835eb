// The primary vertex of every long track (the one with the smallest IP chi2), and the impact parameter to it
// (docs/physics/long-kalman-filter.md).
//
// One block per event, one thread per track; on the CPU a thread takes a vector of tracks at once. Without a vertex in
// the event, or if the chi2 of the track is NaN, IP and IP chi2 are 0 and the vertex is no_pv.
// Bounds: tracks of an event as long_tracks.count, vertices as pvs.count.
#pragma once

#include "lhcb/primary_vertices/ip_chi2.cuh"
#include "lhcb/tracks/kalman/generated/kalman_impact_parameter.h"

HLT_KERNEL(kalman_impact_parameter)
{
    if (!p.takes(blockIdx.x)) return;
    constexpr uint32_t width = HLT_ON_GPU ? 1u : 16u;
    constexpr float largest = 3.4e38f;

    const uint32_t first = p.long_tracks.first(blockIdx.x);
    const uint32_t n_tracks = p.long_tracks.count[blockIdx.x];
    const uint32_t n_pvs = p.pvs.count[blockIdx.x];
    const hlt::primary_vertex* pvs = p.pvs.vertex + p.pvs.first(blockIdx.x);

    for (uint32_t group = threadIdx.x * width; group < n_tracks; group += blockDim.x * width) {
        const uint32_t n_here = hlt::min_of(width, n_tracks - group);
        float x[width], y[width], z[width], tx[width], ty[width];
        float c00[width], c20[width], c22[width], c11[width], c31[width], c33[width];
        float smallest[width], distance2[width];
        uint32_t nearest[width];
        for (uint32_t i = 0; i < width; ++i) {
            const uint32_t track = first + group + hlt::min_of(i, n_here - 1);
            x[i] = p.long_tracks.beam_x[track];
            y[i] = p.long_tracks.beam_y[track];
            z[i] = p.long_tracks.beam_z[track];
            tx[i] = p.long_tracks.beam_tx[track];
            ty[i] = p.long_tracks.beam_ty[track];
            c00[i] = p.long_tracks.beam_c00[track];
            c20[i] = p.long_tracks.beam_c20[track];
            c22[i] = p.long_tracks.beam_c22[track];
            c11[i] = p.long_tracks.beam_c11[track];
            c31[i] = p.long_tracks.beam_c31[track];
            c33[i] = p.long_tracks.beam_c33[track];
            smallest[i] = largest;
            distance2[i] = 0.f;
            nearest[i] = hlt::no_pv;
        }
        for (uint32_t v = 0; v < n_pvs; ++v) {
            const hlt::primary_vertex pv = pvs[v];
            for (uint32_t i = 0; i < width; ++i) {
                const float dz = pv.z - z[i];
                const float dx = x[i] + dz * tx[i] - pv.x;
                const float dy = y[i] + dz * ty[i] - pv.y;
                const float var_x = c00[i] + dz * (2.f * c20[i] + dz * c22[i]);
                const float var_y = c11[i] + dz * (2.f * c31[i] + dz * c33[i]);
                const float chi2 = hlt::ip_chi2(pv, dx, dy, tx[i], ty[i], var_x, var_y);
                const bool nearer = chi2 < smallest[i];
                smallest[i] = nearer ? chi2 : smallest[i];
                distance2[i] = nearer ? dx * dx + dy * dy : distance2[i];
                nearest[i] = nearer ? v : nearest[i];
            }
        }
        for (uint32_t i = 0; i < n_here; ++i) {
            const uint32_t track = first + group + i;
            p.long_tracks.ip[track] = sqrtf(distance2[i] / (1.f + tx[i] * tx[i] + ty[i] * ty[i]));
            p.long_tracks.ip_chi2[track] = nearest[i] == hlt::no_pv ? 0.f : smallest[i];
            p.long_tracks.pv[track] = static_cast<uint8_t>(nearest[i]);
        }
    }
}
