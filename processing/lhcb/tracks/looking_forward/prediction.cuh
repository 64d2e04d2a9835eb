// What a VELO-UT track predicts for its hits in the SciFi: kink, offset in x, shift in y, and the half of the detector
// (docs/physics/looking-forward.md). The effect of the scattering behind the VELO is that of the forward search.
#pragma once

#include "lhcb/tracks/forward/track.cuh"
#include "lhcb/tracks/looking_forward/generated/looking_forward_types.h"
#include "lhcb/ut/generated/ut_types.h"

namespace hlt {

/// Number of the x layer before or behind which a stereo layer lies at once.
__device__ uint32_t stereo_partner(uint32_t layer) { return layer % 4u == 0u ? layer + 1u : layer - 1u; }

struct ut_prediction {
    velo_line line;
    ut_residuals ut;
    forward_hypothesis where;  // low and high are the kink of the VELO-UT track
    float s;                   // polarity q/p, c/GeV
    float offset;              // mm, for this kink
    uint32_t half;

    __device__ float kink() const { return where.low; }
};

/// The prediction of the VELO-UT track `number` of an event, for the VELO track in `slot`.
template <typename Parameters>
__device__ ut_prediction predict_from_ut(const Parameters& p, uint32_t event, uint32_t number, uint32_t slot)
{
    const long_track_parameters& parameters = *p.long_track_parameters;
    const uint32_t track = p.ut_tracks.first(event) + number, velo_track = p.velo_end.first(event) + slot;
    const uint32_t first_hit = p.ut_hits.first(event);
    ut_prediction made;
    made.line = {p.velo_end.x[velo_track], p.velo_end.y[velo_track], p.velo_end.tx[velo_track],
                 p.velo_end.ty[velo_track]};
    const auto hit_of = [&](uint32_t layer) -> ut_hit {
        const uint32_t hit = p.ut_tracks.hits[n_ut_layers * track + layer];
        if (hit == no_ut_hit) return {0.f, 0.f, 0.f};
        return {p.ut_hits.x[first_hit + hit], p.ut_hits.z[first_hit + hit], p.ut_hits.weight[first_hit + hit]};
    };
    made.s = parameters.polarity * p.ut_tracks.qop[track] / c_per_gev_to_mev;
    const float sign = made.s < 0.f ? -1.f : 1.f, kink = kink_of(parameters, made.line, made.s);
    made.ut = fit_ut_residuals(parameters, made.line, hit_of);
    set_bend_in_ut(parameters, made.line, sign * max_of(sign * made.s, smallest_probed_s), made.ut);
    made.where.low = made.where.high = kink;
    made.where.offset = p.offset_of_ut * made.ut.a;
    made.where.offset_per_kink = -p.offset_of_ut * made.ut.a_per_kink;
    made.where.shift = p.shift_of_ut * made.ut.c;
    made.where.sigma_offset = {0.f, 0.f};
    made.where.sigma_shift = {p.sigma_shift, p.sigma_shift_per_kink};
    made.offset = made.where.offset + made.where.offset_per_kink * kink;
    made.half = made.line.y_at(z_scifi_reference) + made.where.shift >= 0.f ? 1u : 0u;
    return made;
}

/// z of an x layer where the track crosses it; the change of y in the magnet has no effect on it.
__device__ float z_in_layer(const long_track_parameters& parameters, const ut_prediction& track, uint32_t layer)
{
    const float z = parameters.layer_z[layer];
    return z + parameters.layer_dz_dy[layer] * (track.line.y_at(z) + track.where.shift);
}

/// Kink and offset of a set of x hits, and the functions of the magnet at this kink.
struct scifi_curve {
    bend_at_kink bend;
    float offset;  // mm

    __device__ float x_at(const velo_line& line, float z) const
    {
        return line.x_at(z) + bend.kink * bend.lever(z) + offset;
    }
};

/// The kink of a first and a last hit: their difference in x, minus that of the line of the VELO, over the difference
/// of the levers. The levers depend little on the kink, so two steps from that of the VELO-UT track are enough.
__device__ scifi_curve scifi_curve_through(const bend_in_memory& bend, const ut_prediction& track, float x_first,
                                           float z_first, float x_last, float z_last)
{
    const float rise = x_last - x_first - track.line.tx * (z_last - z_first);
    scifi_curve curve;
    curve.bend = bend.at(track.kink());
    for (uint32_t step = 0; step < 2u; ++step)
        curve.bend = bend.at(rise / (curve.bend.lever(z_last) - curve.bend.lever(z_first)));
    curve.offset = x_first - track.line.x_at(z_first) - curve.bend.kink * curve.bend.lever(z_first);
    return curve;
}

}  // namespace hlt
