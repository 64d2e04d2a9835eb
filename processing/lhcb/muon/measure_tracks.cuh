// What tells muons from other long tracks (docs/physics/muon.md): the features of LHCb's trees, for each
// track, and the line through the muon hits, for tracks with hits in their fields of interest.
//
// Features: of the hit of each station that is nearest to the line of the track in x and y. x and y: the line minus the
// hit, divided by sqrt(d^2 / 3 + (scattering l^1.5 / p)^2), with the half size d and the way l from M2.
// Stub: straight lines through the hits of long_tracks.muon_hits in x and in y, each hit with the weight 3 / d^2.
// In:  long_tracks.{qop, x, y, tx, ty, beam_ty, muon_hits, count}, muon_hits.{x, y, z, dx, dy, time, time_y},
//      muon_hits.station_offset.
// Out: long_tracks.muon_features [track][20], long_tracks.muon_stub [track][5].
// One block per event, one thread per track. On the CPU eight or sixteen hits are compared at once.
// Bounds: tracks as long_tracks.count, hits as muon_hits.station_offset; columns are loaded up to muon_hit_padding - 1
// places behind the last hit. A track whose state is no number has no nearest hit.
#pragma once

#include "lhcb/muon/generated/muon_measure_tracks.h"
#include "lhcb/muon/generated/muon_types.h"
#include "lhcb/muon/track.cuh"
#include "lhcb/tracks/long/generated/long_types.h"
#if !HLT_ON_GPU
#include "framework/device/wide_lanes.h"
#endif

namespace hlt {

constexpr float muon_z_m2 = 15270.f;                // mm, the middle of M2
constexpr float muon_scattering_way = 1.32420081f;  // MeV / sqrt(mm): LHCb's average of all material behind M2
constexpr float farthest_muon_hit2 = 1e30f;         // mm^2

/// The hit from `begin` to `end` that is nearest to a line, of equal ones the first; no_muon_hit without hits.
__device__ uint32_t nearest_muon_hit(const float* __restrict__ hit_x, const float* __restrict__ hit_y,
                                     const float* __restrict__ hit_z, uint32_t begin, uint32_t end, float x, float y,
                                     float tx, float ty)
{
    uint32_t best = no_muon_hit;
#if HLT_ON_GPU
    float best_distance2 = farthest_muon_hit2;
    for (uint32_t i = begin; i < end; ++i) {
        const float to_x = x + tx * hit_z[i] - hit_x[i], to_y = y + ty * hit_z[i] - hit_y[i];
        const float distance2 = to_x * to_x + to_y * to_y;
        if (!(distance2 < best_distance2)) continue;
        best = i;
        best_distance2 = distance2;
    }
#else
    float_wide best_distance2 = float_wide{} + farthest_muon_hit2;
    uint_wide best_of_lane = uint_wide{} + no_muon_hit;
    for (uint32_t i = begin; i < end; i += n_wide) {
        const uint32_t there = first_bits(end - i);
        float_wide at_x, at_y, at_z;
        load_wide_where(at_x, hit_x + i, there);
        load_wide_where(at_y, hit_y + i, there);
        load_wide_where(at_z, hit_z + i, there);
        const float_wide to_x = x + tx * at_z - at_x, to_y = y + ty * at_z - at_y;
        const float_wide distance2 = to_x * to_x + to_y * to_y;
        const uint_wide number = wide_numbers + i;
        const int_wide nearer = (distance2 < best_distance2) & (number < end);
        best_distance2 = nearer ? distance2 : best_distance2;
        best_of_lane = nearer ? number : best_of_lane;
    }
    float least = farthest_muon_hit2;
    for (uint32_t lane = 0; lane < n_wide; ++lane) {
        if (!(best_distance2[lane] < least || (best_distance2[lane] == least && best_of_lane[lane] < best))) continue;
        least = best_distance2[lane];
        best = best_of_lane[lane];
    }
#endif
    return best;
}

/// A straight line through some of the hits of the stations: weighted sums, z counts from the middle of M2.
struct muon_line {
    float sum = 0.f, z = 0.f, z2 = 0.f, u = 0.f, zu = 0.f, chi2 = 0.f;

    __device__ void add(float weight, float from_m2, float residual)
    {
        sum += weight;
        z += weight * from_m2;
        z2 += weight * from_m2 * from_m2;
        u += weight * residual;
        zu += weight * from_m2 * residual;
        chi2 += weight * residual * residual;
    }

    /// Of the residuals: the difference of the slopes of hits and track.
    __device__ float slope() const
    {
        const float spread = z2 - z * z / sum;
        return spread > 0.f ? (zu - z * u / sum) / spread : 0.f;
    }
};

}  // namespace hlt

HLT_KERNEL(muon_measure_tracks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;

    const uint32_t first = p.long_tracks.first(event);
    const uint32_t n_tracks = p.long_tracks.count[event];
    const uint32_t first_hit = p.muon_hits.first(event);
    const uint16_t* const offset = p.muon_hits.station_offset + event * hlt::muon_station_stride;
    const float* const hit_x = p.muon_hits.x + first_hit;
    const float* const hit_y = p.muon_hits.y + first_hit;
    const float* const hit_z = p.muon_hits.z + first_hit;
    const float* const hit_dx = p.muon_hits.dx + first_hit;
    const float* const hit_dy = p.muon_hits.dy + first_hit;

    for (uint32_t track = first + threadIdx.x; track < first + n_tracks; track += blockDim.x) {
        const float tx = p.long_tracks.tx[track], ty = p.long_tracks.ty[track];
        const float x = p.long_tracks.x[track] - hlt::z_end_scifi * tx;
        const float y = p.long_tracks.y[track] - hlt::z_end_scifi * ty;
        const float size = fabsf(p.long_tracks.qop[track]);
        // A q/p that is no number, or above 1/MeV, counts as that of 1 MeV.
        const float scattering = hlt::muon_scattering_way * (size < 1.f ? size : 1.f);
        const float way_of_z = sqrtf(1.f + tx * tx + ty * ty);

        float* const feature = p.long_tracks.muon_features + track * hlt::n_muon_features;
        for (uint32_t station = 0; station < hlt::n_muon_stations; ++station) {
            float* const dt = feature + station;
            float* const time = dt + hlt::n_muon_stations;
            float* const crossed = time + hlt::n_muon_stations;
            float* const in_x = crossed + hlt::n_muon_stations;
            float* const in_y = in_x + hlt::n_muon_stations;
            const uint32_t hit =
                hlt::nearest_muon_hit(hit_x, hit_y, hit_z, offset[station], offset[station + 1u], x, y, tx, ty);
            if (hit == hlt::no_muon_hit) {
                *dt = *time = *in_x = *in_y = hlt::missing_muon_feature;
                *crossed = 0.f;
                continue;
            }
            const uint32_t when = p.muon_hits.time[first_hit + hit];
            const uint32_t when_y = p.muon_hits.time_y[first_hit + hit];
            *time = static_cast<float>(when & 0xfu);
            *dt = *time - static_cast<float>(when_y);
            *crossed = (when & hlt::muon_no_crossing) == 0u ? 2.f : 1.f;
            const float way = hlt::max_of(hit_z[hit] - hlt::muon_z_m2, 0.f) * way_of_z;
            const float scattered2 = scattering * scattering * way * way * way;
            *in_x = (x + tx * hit_z[hit] - hit_x[hit]) / sqrtf(hit_dx[hit] * hit_dx[hit] / 3.f + scattered2);
            *in_y = (y + ty * hit_z[hit] - hit_y[hit]) / sqrtf(hit_dy[hit] * hit_dy[hit] / 3.f + scattered2);
        }

        float* const stub = p.long_tracks.muon_stub + track * hlt::n_muon_stub_numbers;
        const uint16_t* const nearest = p.long_tracks.muon_hits + track * hlt::n_muon_stations;
        hlt::muon_line line_x, line_y;
        uint32_t n = 0;
        for (uint32_t station = 0; station < hlt::n_muon_stations; ++station) {
            const uint32_t hit = nearest[station];
            if (hit == hlt::no_muon_hit) continue;
            const float from_m2 = hit_z[hit] - hlt::muon_z_m2;
            line_x.add(3.f / (hit_dx[hit] * hit_dx[hit]), from_m2, hit_x[hit] - (x + tx * hit_z[hit]));
            line_y.add(3.f / (hit_dy[hit] * hit_dy[hit]), from_m2, hit_y[hit] - (y + ty * hit_z[hit]));
            ++n;
        }
        const float slope_y = n == 0u ? 0.f : line_y.slope();
        stub[0] = n == 0u ? 0.f : (line_x.chi2 + line_y.chi2) / static_cast<float>(n);
        stub[1] = n == 0u ? 0.f : line_x.slope();
        stub[2] = slope_y;
        stub[3] = n == 0u ? 0.f : slope_y + ty - p.long_tracks.beam_ty[track];
        stub[4] = n == 0u ? 0.f : static_cast<float>(offset[hlt::n_muon_stations]);
    }
}
