// Muon identification: a long track is a muon if it has hits in its fields of interest in as many stations as a muon of
// its momentum reaches (docs/physics/muon.md).
//
// The track is a straight line behind the magnet; a hit is in its field if it is nearer to the line, in x and in y,
// than its half size times field_scale (a + b exp(-c p)), by station and region. M2 and M3 are always asked for, from
// one_behind_p on also M4 or M5, from two_behind_p on both.
// In:  long_tracks.{qop, x, y, tx, ty, count}, muon_hits.{x, y, z, dx, dy, tile}, muon_hits.station_offset,
//      muon_field_of_interest. Out: long_tracks.is_muon, long_tracks.muon_hits [track][4]: the hit of each station
//      asked for that is nearest to the line in units of its sizes; of equal ones the first.
// One block per event, one thread per track. Stations are looked at by falling power to reject: M3 has a third of the
// hits of M2.
// Bounds: tracks as long_tracks.count, hits as muon_hits.station_offset.
#pragma once

#include "framework/device/math.cuh"
#include "lhcb/long_tracks/generated/long_types.h"
#include "lhcb/muon/generated/is_muon.h"
#include "lhcb/muon/generated/muon_types.h"
#include "lhcb/muon/track.cuh"

namespace hlt {

/// The hits of a station and what a track asks of them.
struct muon_search {
    const float* __restrict__ hit_x;
    const float* __restrict__ hit_y;
    const float* __restrict__ hit_z;
    const float* __restrict__ hit_dx;
    const float* __restrict__ hit_dy;
    const uint32_t* __restrict__ hit_tile;
    uint32_t begin, end;
    float x, y, tx, ty;                                      // the line at z = 0
    float field_x[n_muon_regions], field_y[n_muon_regions];  // half sizes, in those of a hit

    /// Distances to the line in half sizes of a field: below 1 inside.
    __device__ bool inside(uint32_t i) const
    {
        const uint32_t region = hit_tile[i] >> 14 & 3u;
        const float scale_x = (region & 2u) != 0u ? ((region & 1u) != 0u ? field_x[3] : field_x[2])
                                                  : ((region & 1u) != 0u ? field_x[1] : field_x[0]);
        const float scale_y = (region & 2u) != 0u ? ((region & 1u) != 0u ? field_y[3] : field_y[2])
                                                  : ((region & 1u) != 0u ? field_y[1] : field_y[0]);
        const float distance_x = hit_x[i] - (x + tx * hit_z[i]);
        const float distance_y = hit_y[i] - (y + ty * hit_z[i]);
        return (fabsf(distance_x) < hit_dx[i] * scale_x) & (fabsf(distance_y) < hit_dy[i] * scale_y);
    }

    __device__ bool any_inside() const
    {
        uint32_t n = 0;
        for (uint32_t i = begin; i < end; ++i) n += inside(i) ? 1u : 0u;
        return n > 0u;
    }

    __device__ uint32_t nearest() const
    {
        uint32_t best = no_muon_hit;
        float best_distance2 = 0.f;
        for (uint32_t i = begin; i < end; ++i) {
            if (!inside(i)) continue;
            const float distance_x = (hit_x[i] - (x + tx * hit_z[i])) / hit_dx[i];
            const float distance_y = (hit_y[i] - (y + ty * hit_z[i])) / hit_dy[i];
            const float distance2 = distance_x * distance_x + distance_y * distance_y;
            if (best != no_muon_hit && !(distance2 < best_distance2)) continue;
            best = i;
            best_distance2 = distance2;
        }
        return best;
    }
};

}  // namespace hlt

HLT_KERNEL(is_muon)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;

    const uint32_t first = p.long_tracks.first(event);
    const uint32_t n_tracks = p.long_tracks.count[event];
    const uint32_t first_hit = p.muon_hits.first(event);
    const uint16_t* const offset = p.muon_hits.station_offset + event * hlt::muon_station_stride;
    const hlt::muon_field_of_interest& fields = *p.muon_field_of_interest;

    for (uint32_t track = first + threadIdx.x; track < first + n_tracks; track += blockDim.x) {
        uint16_t* const nearest = p.long_tracks.muon_hits + track * hlt::n_muon_stations;
        for (uint32_t i = 0; i < hlt::n_muon_stations; ++i) nearest[i] = hlt::no_muon_hit;
        p.long_tracks.is_muon[track] = 0;

        const float momentum = hlt::muon_momentum(p.long_tracks.qop[track]);
        if (!(momentum >= p.min_p)) continue;
        hlt::muon_search search{p.muon_hits.x + first_hit,
                                p.muon_hits.y + first_hit,
                                p.muon_hits.z + first_hit,
                                p.muon_hits.dx + first_hit,
                                p.muon_hits.dy + first_hit,
                                p.muon_hits.tile + first_hit,
                                0,
                                0,
                                p.long_tracks.x[track] - hlt::z_end_scifi * p.long_tracks.tx[track],
                                p.long_tracks.y[track] - hlt::z_end_scifi * p.long_tracks.ty[track],
                                p.long_tracks.tx[track],
                                p.long_tracks.ty[track],
                                {},
                                {}};
        const auto look_at = [&](uint32_t station) {
            search.begin = offset[station];
            search.end = offset[station + 1u];
            for (uint32_t region = 0; region < hlt::n_muon_regions; ++region) {
                const float shrink_x = hlt::exp_negative(-1e-3f * fields.cx[station][region] * momentum);
                const float shrink_y = hlt::exp_negative(-1e-3f * fields.cy[station][region] * momentum);
                search.field_x[region] =
                    p.field_scale * (fields.ax[station][region] + fields.bx[station][region] * shrink_x);
                search.field_y[region] =
                    p.field_scale * (fields.ay[station][region] + fields.by[station][region] * shrink_y);
            }
        };
        const auto has_hit = [&](uint32_t station) {
            if (offset[station] == offset[station + 1u]) return false;
            look_at(station);
            return search.any_inside();
        };
        if (!has_hit(1) || !has_hit(0)) continue;
        if (momentum >= p.two_behind_p) {
            if (!has_hit(2) || !has_hit(3)) continue;
        } else if (momentum >= p.one_behind_p) {
            if (!has_hit(2) && !has_hit(3)) continue;
        }
        const uint32_t n_asked = momentum >= p.one_behind_p ? hlt::n_muon_stations : 2u;
        for (uint32_t station = 0; station < n_asked; ++station) {
            look_at(station);
            nearest[station] = static_cast<uint16_t>(search.nearest());
        }
        p.long_tracks.is_muon[track] = 1;
    }
}
