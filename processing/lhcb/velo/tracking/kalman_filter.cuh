// Straight-line Kalman fit of the VELO tracks: one state at the beam line, one at the end of the VELO
// (docs/physics/kalman-filter.md).
//
// One block per event, one thread per track. The form for the CPU takes a group of tracks at once, one per lane of a
// vector register; a lane computes exactly what a thread computes here.
//
// 1. Least-squares line through all hits, equal weights: slopes for the noise, direction of flight.
// 2. Filter from large to small z, and from small to large z. A forward track gets its beam-line state from the first,
//    its end-of-VELO state from the second; for a backward track the two are exchanged.
// 3. Move to the closest approach to the beam line, and to z = 770 mm.
//
// x and y are filtered independently with the same hit error, noise and start, so their covariances are equal:
// c11 = c00, c31 = c20, c33 = c22. They are computed and stored once.
// Bounds: tracks of an event as velo_tracks.count; at most max_velo_track_hits hits on a track.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/velo/beam_line.cuh"
#include "lhcb/velo/generated/velo_types.h"
#include "lhcb/velo/tracking/generated/velo_kalman_filter.h"

namespace hlt {

constexpr float velo_hit_variance = 1.f / 6400.f;  // mm^2: 12.5 um
constexpr float velo_noise_constant = 1e-8f;       // multiple scattering in one layer, variance of a slope
constexpr float velo_noise_per_slope_squared = 7e-6f;
constexpr float velo_start_slope_variance = 1.f;
constexpr float velo_end_z = 770.f;  // mm

struct kalman_hit {
    float x, y, z;
};

// `Hits`: the hits of a group of `width` tracks. `rows` is the largest `count`, `has(k, t)` tells whether track t has a
// hit k, and `at(k, t)` is that hit.

/// Hits of one track, at least one. Each is read at its use, because an array would lie in local memory.
struct kalman_track_hits {
    static constexpr uint32_t width = 1;

    uint32_t rows;
    uint32_t count[width];
    const uint16_t* indices;
    const float* x;
    const float* y;
    const float* z;

    __device__ bool has(uint32_t, uint32_t) const { return true; }  // each row is a hit of this track
    __device__ kalman_hit at(uint32_t k, uint32_t) const
    {
        const uint32_t hit = indices[k];
        return {x[hit], y[hit], z[hit]};
    }
};

template <uint32_t width>
struct kalman_line {
    float tx[width];
    float ty[width];
    float noise[width];
    bool backward[width];
};

template <uint32_t width>
struct kalman_state {
    float x[width];
    float y[width];
    float z[width];
    float tx[width];
    float ty[width];
    float c00[width];
    float c20[width];
    float c22[width];
};

template <typename Hits>
__device__ void kalman_fit_line(const Hits& hits, kalman_line<Hits::width>& line)
{
    constexpr uint32_t width = Hits::width;
    float sz[width] = {}, szz[width] = {}, sx[width] = {}, sxz[width] = {};
    float sy[width] = {}, syz[width] = {};
#pragma unroll 2
    for (uint32_t k = 1; k < hits.rows; ++k) {  // relative to the first hit: small numbers, and hit 0 contributes 0
        for (uint32_t t = 0; t < width; ++t) {
            const bool there = hits.has(k, t);
            const kalman_hit first = hits.at(0, t), hit = hits.at(k, t);
            const float dz = there ? hit.z - first.z : 0.f;
            const float dx = there ? hit.x - first.x : 0.f;
            const float dy = there ? hit.y - first.y : 0.f;
            sz[t] += dz;
            szz[t] += dz * dz;
            sx[t] += dx;
            sxz[t] += dx * dz;
            sy[t] += dy;
            syz[t] += dy * dz;
        }
    }
    for (uint32_t t = 0; t < width; ++t) {
        const float n = static_cast<float>(hits.count[t]);
        const float determinant = n * szz[t] - sz[t] * sz[t];
        const float scale = determinant > 0.f ? 1.f / determinant : 0.f;
        const float tx = (n * sxz[t] - sx[t] * sz[t]) * scale;
        const float ty = (n * syz[t] - sy[t] * sz[t]) * scale;
        const float slope2 = tx * tx + ty * ty;
        const float n_inverse = n > 0.f ? 1.f / n : 0.f;
        // The line at the z of the first hit, from there to the closest approach to the z axis.
        const kalman_hit first = hits.at(0, t);
        const float x = first.x + (sx[t] - tx * sz[t]) * n_inverse;
        const float y = first.y + (sy[t] - ty * sz[t]) * n_inverse;
        line.tx[t] = tx;
        line.ty[t] = ty;
        line.noise[t] = velo_noise_constant + velo_noise_per_slope_squared * slope2;
        line.backward[t] = -(x * tx + y * ty) > 0.f;  // z of the closest approach beyond the first hit
    }
}

/// Predict to the hit and update, if `there` is true. The covariance update never subtracts nearly equal numbers.
template <uint32_t width>
__device__ void kalman_update(kalman_state<width>& state, const kalman_line<width>& line, kalman_hit hit, uint32_t t,
                              bool there)
{
    const float dz = hit.z - state.z[t];
    const float c00 = state.c00[t], c20 = state.c20[t], c22 = state.c22[t] + line.noise[t];
    const float predicted_x = state.x[t] + dz * state.tx[t];
    const float predicted_y = state.y[t] + dz * state.ty[t];
    const float predicted_c20 = c20 + dz * c22;
    const float predicted_c00 = c00 + dz * (c20 + predicted_c20);
    const float inverse = 1.f / (velo_hit_variance + predicted_c00);
    const float gain = predicted_c00 * inverse;
    const float slope_gain = predicted_c20 * inverse;
    const float residual_x = hit.x - predicted_x;
    const float residual_y = hit.y - predicted_y;
    state.x[t] = there ? predicted_x + gain * residual_x : state.x[t];
    state.y[t] = there ? predicted_y + gain * residual_y : state.y[t];
    state.z[t] = there ? hit.z : state.z[t];
    state.tx[t] = there ? state.tx[t] + slope_gain * residual_x : state.tx[t];
    state.ty[t] = there ? state.ty[t] + slope_gain * residual_y : state.ty[t];
    state.c00[t] = there ? velo_hit_variance * gain : c00;
    state.c20[t] = there ? velo_hit_variance * slope_gain : c20;
    state.c22[t] = there ? inverse * (c22 * (velo_hit_variance + c00) - c20 * c20) : state.c22[t];
}

template <uint32_t width>
__device__ void kalman_start(kalman_state<width>& state, const kalman_line<width>& line, kalman_hit hit, uint32_t t)
{
    state.x[t] = hit.x;
    state.y[t] = hit.y;
    state.z[t] = hit.z;
    state.tx[t] = line.tx[t];
    state.ty[t] = line.ty[t];
    state.c00[t] = velo_hit_variance;
    state.c20[t] = 0.f;
    state.c22[t] = velo_start_slope_variance;
}

/// Both filters in the same steps: they do not depend on each other, so a processor can overlap them.
template <typename Hits>
__device__ void kalman_filter(const Hits& hits, const kalman_line<Hits::width>& line,
                              kalman_state<Hits::width>& to_small_z, kalman_state<Hits::width>& to_large_z)
{
    constexpr uint32_t width = Hits::width;
    for (uint32_t t = 0; t < width; ++t) {
        kalman_start(to_small_z, line, hits.at(0, t), t);
        kalman_start(to_large_z, line, hits.at(hits.count[t] > 0 ? hits.count[t] - 1 : 0, t), t);
    }
    for (uint32_t k = 1; k < hits.rows; ++k) {
        const uint32_t other = hits.rows - 1 - k;
        for (uint32_t t = 0; t < width; ++t) {
            kalman_update(to_small_z, line, hits.at(k, t), t, hits.has(k, t));
            kalman_update(to_large_z, line, hits.at(other, t), t, hits.has(other + 1, t));
        }
    }
    for (uint32_t t = 0; t < width; ++t) {
        to_small_z.c22[t] += line.noise[t];
        to_large_z.c22[t] += line.noise[t];
    }
}

template <uint32_t width>
__device__ void kalman_move(kalman_state<width>& state, uint32_t t, float dz)
{
    const float moved_c20 = state.c20[t] + dz * state.c22[t];
    state.x[t] += dz * state.tx[t];
    state.y[t] += dz * state.ty[t];
    state.z[t] += dz;
    state.c00[t] += dz * (state.c20[t] + moved_c20);
    state.c20[t] = moved_c20;
}

/// The tracks of a group: their line, and the states at the beam line and at the end of the VELO.
template <uint32_t width>
struct kalman_group {
    kalman_line<width> line;
    kalman_state<width> beam, end;
};

template <typename Hits>
__device__ void kalman_fit(const Hits& hits, const velo_beam_line& beam_line, kalman_group<Hits::width>& group)
{
    constexpr uint32_t width = Hits::width;
    kalman_line<width>& line = group.line;
    kalman_state<width>&beam = group.beam, &end = group.end;
    kalman_fit_line(hits, line);
    kalman_state<width> upstream, downstream;  // after the filter that ended there
    kalman_filter(hits, line, upstream, downstream);

    for (uint32_t t = 0; t < width; ++t) {
        const bool backward = line.backward[t];
        beam.x[t] = backward ? downstream.x[t] : upstream.x[t];
        beam.y[t] = backward ? downstream.y[t] : upstream.y[t];
        beam.z[t] = backward ? downstream.z[t] : upstream.z[t];
        beam.tx[t] = backward ? downstream.tx[t] : upstream.tx[t];
        beam.ty[t] = backward ? downstream.ty[t] : upstream.ty[t];
        beam.c00[t] = backward ? downstream.c00[t] : upstream.c00[t];
        beam.c20[t] = backward ? downstream.c20[t] : upstream.c20[t];
        beam.c22[t] = backward ? downstream.c22[t] : upstream.c22[t];
        end.x[t] = backward ? upstream.x[t] : downstream.x[t];
        end.y[t] = backward ? upstream.y[t] : downstream.y[t];
        end.z[t] = backward ? upstream.z[t] : downstream.z[t];
        end.tx[t] = backward ? upstream.tx[t] : downstream.tx[t];
        end.ty[t] = backward ? upstream.ty[t] : downstream.ty[t];
        end.c00[t] = backward ? upstream.c00[t] : downstream.c00[t];
        end.c20[t] = backward ? upstream.c20[t] : downstream.c20[t];
        end.c22[t] = backward ? upstream.c22[t] : downstream.c22[t];
    }
    for (uint32_t t = 0; t < width; ++t) {
        kalman_move(beam, t, beam_line.dz_to_closest(beam.x[t], beam.y[t], beam.z[t], beam.tx[t], beam.ty[t]));
        kalman_move(end, t, velo_end_z - end.z[t]);
    }
}

/// Write the states of lane t of a group as those of a track.
template <uint32_t width, typename Parameters>
__device__ void kalman_write(const Parameters& p, uint32_t track, const kalman_group<width>& group, uint32_t t)
{
    const kalman_state<width>&beam = group.beam, &end = group.end;
    p.velo_tracks.backward[track] = group.line.backward[t] ? 1 : 0;
    p.velo_beamline.x[track] = beam.x[t];
    p.velo_beamline.y[track] = beam.y[t];
    p.velo_beamline.z[track] = beam.z[t];
    p.velo_beamline.tx[track] = beam.tx[t];
    p.velo_beamline.ty[track] = beam.ty[t];
    p.velo_beamline.c00[track] = beam.c00[t];
    p.velo_beamline.c20[track] = beam.c20[t];
    p.velo_beamline.c22[track] = beam.c22[t];
    p.velo_end.x[track] = end.x[t];
    p.velo_end.y[track] = end.y[t];
    p.velo_end.tx[track] = end.tx[t];
    p.velo_end.ty[track] = end.ty[t];
    p.velo_end.c00[track] = end.c00[t];
    p.velo_end.c20[track] = end.c20[t];
    p.velo_end.c22[track] = end.c22[t];
}

}  // namespace hlt

HLT_KERNEL(velo_kalman_filter)
{
    if (!p.takes(blockIdx.x)) return;

    const uint32_t first_hit = p.velo_hits.first(blockIdx.x);
    const uint32_t first_track = p.velo_tracks.first(blockIdx.x);
    const uint32_t n_tracks = p.velo_tracks.count[blockIdx.x];
    const float* hit_x = p.velo_hits.x + first_hit;
    const float* hit_y = p.velo_hits.y + first_hit;
    const float* hit_z = p.velo_hits.z + first_hit;
    const hlt::velo_beam_line beam_line(*p.velo_geometry);

    for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x) {
        const uint32_t track = first_track + i, n_hits = p.velo_tracks.hit_count[track];
        const hlt::kalman_track_hits hits{n_hits, {n_hits}, p.velo_tracks.hits + track * hlt::max_velo_track_hits,
                                          hit_x,  hit_y,    hit_z};
        hlt::kalman_group<1> found;
        hlt::kalman_fit(hits, beam_line, found);
        hlt::kalman_write(p, track, found, 0);
    }
}
