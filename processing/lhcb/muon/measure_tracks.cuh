// What tells muons from other long tracks (docs/physics/muon.md): the features of LHCb's trees, for each
// track, and the line through the muon hits, for tracks with hits in their fields of interest.
//
// Features: of the hit of each station that is nearest to the line of the track in x and y. x and y: the line minus the
// hit, divided by sqrt(d^2 / 3 + (scattering l^1.5 / p)^2), with the half size d and the way l from M2.
// Stub: straight lines through the hits of long_tracks.muon_hits in x and in y, each hit with the weight 3 / d^2.
// In:  long_tracks.{qop, x, y, tx, ty, beam_ty, muon_hits, count}, muon_hits.{x, y, z, dx, dy, time, time_y},
//      muon_hits.station_offset.
// Out: long_tracks.muon_features [track][20], long_tracks.muon_stub [track][5].
// One block per event, one thread per track. On the CPU the tracks are the lanes of vector registers.
// Bounds: tracks as long_tracks.count, hits as muon_hits.station_offset. A track whose state is no number has no
// nearest hit.
#pragma once

#include "lhcb/muon/generated/muon_measure_tracks.h"
#include "lhcb/muon/generated/muon_types.h"
#include "lhcb/muon/track.cuh"
#include "lhcb/tracks/long/generated/long_types.h"

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
    float best_distance2 = farthest_muon_hit2;
    for (uint32_t i = begin; i < end; ++i) {
        const float to_x = x + tx * hit_z[i] - hit_x[i], to_y = y + ty * hit_z[i] - hit_y[i];
        const float distance2 = to_x * to_x + to_y * to_y;
        if (!(distance2 < best_distance2)) continue;
        best = i;
        best_distance2 = distance2;
    }
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

/// A long track behind the SciFi tracker: its line from z = 0, and what its momentum gives.
struct muon_track_line {
    float x, y, tx, ty;
    float scattering, way_of_z;

    template <typename Tracks>
    __device__ muon_track_line(const Tracks& tracks, uint32_t track)
    {
        tx = tracks.tx[track];
        ty = tracks.ty[track];
        x = tracks.x[track] - z_end_scifi * tx;
        y = tracks.y[track] - z_end_scifi * ty;
        const float size = fabsf(tracks.qop[track]);
        // A q/p that is no number, or above 1/MeV, counts as that of 1 MeV.
        scattering = muon_scattering_way * (size < 1.f ? size : 1.f);
        way_of_z = sqrtf(1.f + tx * tx + ty * ty);
    }
};

/// The muon hits of an event.
struct muon_hits_of_event {
    const float *x, *y, *z, *dx, *dy;
    const uint8_t *time, *time_y;
    const uint16_t* offset;

    template <typename Hits>
    __device__ muon_hits_of_event(const Hits& hits, uint32_t event)
        : x(hits.x + hits.first(event)),
          y(hits.y + hits.first(event)),
          z(hits.z + hits.first(event)),
          dx(hits.dx + hits.first(event)),
          dy(hits.dy + hits.first(event)),
          time(hits.time + hits.first(event)),
          time_y(hits.time_y + hits.first(event)),
          offset(hits.station_offset + event * muon_station_stride)
    {
    }

    /// Store the features of a track in a station, of its nearest hit there.
    __device__ void store_features(const muon_track_line& track, uint32_t hit, uint32_t station, float* feature) const
    {
        float* const dt = feature + station;
        float* const in_time = dt + n_muon_stations;
        float* const crossed = in_time + n_muon_stations;
        float* const in_x = crossed + n_muon_stations;
        float* const in_y = in_x + n_muon_stations;
        if (hit == no_muon_hit) {
            *dt = *in_time = *in_x = *in_y = missing_muon_feature;
            *crossed = 0.f;
            return;
        }
        const uint32_t when = time[hit];
        *in_time = static_cast<float>(when & 0xfu);
        *dt = *in_time - static_cast<float>(time_y[hit]);
        *crossed = (when & muon_no_crossing) == 0u ? 2.f : 1.f;
        const float way = max_of(z[hit] - muon_z_m2, 0.f) * track.way_of_z;
        const float scattered2 = track.scattering * track.scattering * way * way * way;
        *in_x = (track.x + track.tx * z[hit] - x[hit]) / sqrtf(dx[hit] * dx[hit] / 3.f + scattered2);
        *in_y = (track.y + track.ty * z[hit] - y[hit]) / sqrtf(dy[hit] * dy[hit] / 3.f + scattered2);
    }

    /// Store the numbers of the line through the hits of a track in its fields of interest.
    __device__ void store_stub(const muon_track_line& track, const uint16_t* hits, float beam_ty, float* stub) const
    {
        muon_line line_x, line_y;
        uint32_t n = 0;
        for (uint32_t station = 0; station < n_muon_stations; ++station) {
            const uint32_t hit = hits[station];
            if (hit == no_muon_hit) continue;
            const float from_m2 = z[hit] - muon_z_m2;
            line_x.add(3.f / (dx[hit] * dx[hit]), from_m2, x[hit] - (track.x + track.tx * z[hit]));
            line_y.add(3.f / (dy[hit] * dy[hit]), from_m2, y[hit] - (track.y + track.ty * z[hit]));
            ++n;
        }
        const float slope_y = n == 0u ? 0.f : line_y.slope();
        stub[0] = n == 0u ? 0.f : (line_x.chi2 + line_y.chi2) / static_cast<float>(n);
        stub[1] = n == 0u ? 0.f : line_x.slope();
        stub[2] = slope_y;
        stub[3] = n == 0u ? 0.f : slope_y + track.ty - beam_ty;
        stub[4] = n == 0u ? 0.f : static_cast<float>(offset[n_muon_stations]);
    }
};

}  // namespace hlt

HLT_KERNEL(muon_measure_tracks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;

    const uint32_t first = p.long_tracks.first(event);
    const uint32_t n_tracks = p.long_tracks.count[event];
    const hlt::muon_hits_of_event hits(p.muon_hits, event);
    for (uint32_t track = first + threadIdx.x; track < first + n_tracks; track += blockDim.x) {
        const hlt::muon_track_line line(p.long_tracks, track);
        for (uint32_t station = 0; station < hlt::n_muon_stations; ++station) {
            const uint32_t hit = hlt::nearest_muon_hit(hits.x, hits.y, hits.z, hits.offset[station],
                                                       hits.offset[station + 1u], line.x, line.y, line.tx, line.ty);
            hits.store_features(line, hit, station, p.long_tracks.muon_features + track * hlt::n_muon_features);
        }
        hits.store_stub(line, p.long_tracks.muon_hits + track * hlt::n_muon_stations, p.long_tracks.beam_ty[track],
                        p.long_tracks.muon_stub + track * hlt::n_muon_stub_numbers);
    }
}
