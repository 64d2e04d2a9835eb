// Impact parameters on the CPU: the common kernel on a full vector of tracks at once. The nearest vertex of each track
// is kept by value, so that no lane needs a gather.
#pragma once

#include "lhcb/primary_vertices/impact_parameter.cuh"

namespace hlt {

constexpr uint32_t ip_tracks_at_once = 16;

}  // namespace hlt

HLT_CPU_FORM(velo_impact_parameter)
{
    if (!p.takes(event)) return;
    constexpr uint32_t width = hlt::ip_tracks_at_once;
    const uint32_t first = p.velo_tracks.first(event);
    const uint32_t n_tracks = p.velo_tracks.count[event];
    const uint32_t n_pvs = p.pvs.count[event];
    const hlt::primary_vertex* const pvs = p.pvs.vertex + p.pvs.first(event);
    const float* __restrict__ columns[] = {p.velo_beamline.x,   p.velo_beamline.y,  p.velo_beamline.z,
                                           p.velo_beamline.tx,  p.velo_beamline.ty, p.velo_beamline.c00,
                                           p.velo_beamline.c20, p.velo_beamline.c22};

    for (uint32_t base = 0; base < n_tracks; base += width) {
        const uint32_t n = hlt::min_of(n_tracks - base, width);
        float state[8][width] = {};
        for (uint32_t c = 0; c < 8u; ++c) {
            if (n == width)
                std::memcpy(state[c], columns[c] + first + base, sizeof state[c]);
            else
                std::memcpy(state[c], columns[c] + first + base, n * sizeof(float));
        }
        const auto& [x, y, z, tx, ty, c00, c20, c22] = state;
        float distance2[width] = {}, chi2[width] = {};
        uint32_t nearest[width];
        for (uint32_t t = 0; t < width; ++t) nearest[t] = hlt::no_pv;
        for (uint32_t i = 0; i < n_pvs; ++i) {
            const hlt::primary_vertex pv = pvs[i];
            for (uint32_t t = 0; t < width; ++t) {
                const float dz = pv.z - z[t];
                const float dx = x[t] + dz * tx[t] - pv.x;
                const float dy = y[t] + dz * ty[t] - pv.y;
                const float d2 = dx * dx + dy * dy;
                const float of_track = c00[t] + dz * (2.f * c20[t] + dz * c22[t]);
                const float own = hlt::ip_chi2(pv, dx, dy, tx[t], ty[t], of_track, of_track);
                const bool is_nearest = (i == 0u) | (d2 < distance2[t]);
                distance2[t] = is_nearest ? d2 : distance2[t];
                chi2[t] = is_nearest ? own : chi2[t];
                nearest[t] = is_nearest ? i : nearest[t];
            }
        }
        float ip[width];
        uint8_t pv[width];
        for (uint32_t t = 0; t < width; ++t) {
            ip[t] = sqrtf(distance2[t] / (1.f + tx[t] * tx[t] + ty[t] * ty[t]));
            pv[t] = static_cast<uint8_t>(nearest[t]);
        }
        std::memcpy(p.velo_tracks.ip + first + base, ip, n * sizeof *ip);
        std::memcpy(p.velo_tracks.ip_chi2 + first + base, chi2, n * sizeof *chi2);
        std::memcpy(p.velo_tracks.pv + first + base, pv, n);
    }
}
