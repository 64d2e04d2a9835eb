// Muon identification: a long track is a muon if it has hits in its fields of interest in all stations that a muon of
// its momentum reaches (docs/physics/muon.md).
//
// The track is a straight line behind the magnet; a hit is in its field if it is nearer to the line, in x and in y,
// than its half size times field_scale (a + b exp(-c p)), by station and region. M2 and M3 are always required; from
// one_behind_p on also M4 or M5, from two_behind_p on both.
// In:  long_tracks.{qop, x, y, tx, ty, count}, muon_hits.{x, y, z, dx, dy, tile}, muon_hits.station_offset,
//      muon_field_of_interest.
// Out: long_tracks.is_muon, long_tracks.muon_hits [track][4]: the hit of each required station that is nearest to the
//      line in units of its sizes; of equal ones the first.
// One block per event, one thread per track. M3 is searched first: it has a third of the hits of M2, and every muon
// needs it. A CPU compares eight or sixteen hits at once, but one without AVX2: there vectors take three times as long.
// Bounds: tracks as long_tracks.count, hits as muon_hits.station_offset; columns are loaded up to muon_hit_padding - 1
// places behind the last hit.
#pragma once

#include "framework/device/math.cuh"
#include "lhcb/muon/generated/is_muon.h"
#include "lhcb/muon/generated/muon_types.h"
#include "lhcb/muon/track.cuh"
#include "lhcb/tracks/long/generated/long_types.h"
#if !HLT_ON_GPU
#include "framework/device/lowest_lane.h"
#endif

namespace hlt {

/// The hits of a station, and the requirements of a track on them.
struct muon_search {
    const float* __restrict__ hit_x;
    const float* __restrict__ hit_y;
    const float* __restrict__ hit_z;
    const float* __restrict__ hit_dx;
    const float* __restrict__ hit_dy;
    const uint32_t* __restrict__ hit_tile;
    float x, y, tx, ty;                // the line at z = 0
    float field[2u * n_muon_regions];  // half sizes in x of each region, then in y, in those of a hit

    __device__ void set_fields(const muon_field_of_interest& fields, uint32_t station, float momentum, float scale)
    {
#if !HLT_ON_GPU
        constexpr uint32_t all = (1u << 2u * n_muon_regions) - 1u;
        float_wide a, b, c;
        load_wide_where(a, fields.a[station], all);
        load_wide_where(b, fields.b[station], all);
        load_wide_where(c, fields.c[station], all);
        const float_wide wide = scale * (a + b * exp_negative<float_wide>(-1e-3f * c * momentum));
        static_assert(sizeof field <= sizeof wide);
        std::memcpy(field, &wide, sizeof field);
#else
        for (uint32_t i = 0; i < 2u * n_muon_regions; ++i) {
            const float shrink = exp_negative(-1e-3f * fields.c[station][i] * momentum);
            field[i] = scale * (fields.a[station][i] + fields.b[station][i] * shrink);
        }
#endif
    }

    /// The hit from `begin` to `end` that is nearest to the line in its field, or no_muon_hit.
    __device__ uint32_t nearest(uint32_t begin, uint32_t end) const
    {
#if !HLT_ON_GPU
        if constexpr (compares_eight_lanes) return nearest_in_lanes(begin, end);
#endif
        return nearest_one_by_one(begin, end);
    }

  private:
    __device__ uint32_t nearest_one_by_one(uint32_t begin, uint32_t end) const;
#if !HLT_ON_GPU
    uint32_t nearest_in_lanes(uint32_t begin, uint32_t end) const;
#endif
};

/// One of four values; vectors of the CPU are passed by reference.
template <typename Values, typename Mask>
__device__ void take_of_region(Values& value, const Values (&values)[n_muon_regions], const Mask& odd, const Mask& high)
{
    value = odd ? (high ? values[3] : values[1]) : (high ? values[2] : values[0]);
}

__device__ uint32_t muon_search::nearest_one_by_one(uint32_t begin, uint32_t end) const
{
    const float field_x[n_muon_regions] = {field[0], field[1], field[2], field[3]};
    const float field_y[n_muon_regions] = {field[4], field[5], field[6], field[7]};
    uint32_t best = no_muon_hit;
    float best_distance2 = 0.f;
    for (uint32_t i = begin; i < end; ++i) {
        const bool odd = (hit_tile[i] & 1u << 14) != 0u, high = (hit_tile[i] & 1u << 15) != 0u;
        const float to_x = hit_x[i] - (x + tx * hit_z[i]);
        const float to_y = hit_y[i] - (y + ty * hit_z[i]);
        float scale_x, scale_y;
        take_of_region(scale_x, field_x, odd, high);
        take_of_region(scale_y, field_y, odd, high);
        if (!(fabsf(to_x) < hit_dx[i] * scale_x) || !(fabsf(to_y) < hit_dy[i] * scale_y)) continue;
        const float in_x = to_x / hit_dx[i], in_y = to_y / hit_dy[i];
        const float distance2 = in_x * in_x + in_y * in_y;
        if (best != no_muon_hit && !(distance2 < best_distance2)) continue;
        best = i;
        best_distance2 = distance2;
    }
    return best;
}

#if !HLT_ON_GPU

uint32_t muon_search::nearest_in_lanes(uint32_t begin, uint32_t end) const
{
    static_assert(muon_hit_padding >= 8u);
    constexpr uint32_t most_vectors = 32, most_hits = most_vectors * n_wide;
    float_wide field_x[n_muon_regions], field_y[n_muon_regions];
    for (uint32_t region = 0; region < n_muon_regions; ++region) {
        field_x[region] = float_wide{} + field[region];
        field_y[region] = float_wide{} + field[n_muon_regions + region];
    }
    constexpr float beyond_all = 1e30f;
    float_wide best_distance2 = float_wide{} + beyond_all;
    uint_wide best = uint_wide{} + no_muon_hit;
    for (uint32_t first = begin; first < end; first += most_hits) {
        // Vectors with a hit in the field are listed first: a branch for each vector would often be mispredicted.
        uint32_t vectors[most_vectors], inside[most_vectors], n_vectors = 0;
        for (uint32_t i = first; i < min_of(end, first + most_hits); i += n_wide) {
            const uint32_t there = first_bits(end - i);
            float_wide at_x, at_y, at_z, dx, dy;
            uint_wide tile;
            load_wide_where(at_x, hit_x + i, there);
            load_wide_where(at_y, hit_y + i, there);
            load_wide_where(at_z, hit_z + i, there);
            load_wide_where(dx, hit_dx + i, there);
            load_wide_where(dy, hit_dy + i, there);
            load_wide_where(tile, hit_tile + i, there);
            const int_wide odd = (tile & 1u << 14) != 0u, high = (tile & 1u << 15) != 0u;
            const float_wide to_x = at_x - (x + tx * at_z), to_y = at_y - (y + ty * at_z);
            float_wide reach_x, reach_y;
            take_of_region(reach_x, field_x, odd, high);
            take_of_region(reach_y, field_y, odd, high);
            reach_x *= dx;
            reach_y *= dy;
            const auto is_inside = [](const float_wide& to, const float_wide& reach) __attribute__((always_inline)) {
                return bits_where<wide_comparison::less>(to, reach) & bits_where<wide_comparison::less>(-to, reach);
            };
            const uint32_t bits = is_inside(to_x, reach_x) & is_inside(to_y, reach_y) & there;
            vectors[n_vectors] = i;
            inside[n_vectors] = bits;
            n_vectors += bits != 0u ? 1u : 0u;
        }
        for (uint32_t v = 0; v < n_vectors; ++v) {
            const uint32_t i = vectors[v], there = first_bits(end - i);
            float_wide at_x, at_y, at_z, dx, dy;
            load_wide_where(at_x, hit_x + i, there);
            load_wide_where(at_y, hit_y + i, there);
            load_wide_where(at_z, hit_z + i, there);
            load_wide_where(dx, hit_dx + i, there);
            load_wide_where(dy, hit_dy + i, there);
            const float_wide in_x = (at_x - (x + tx * at_z)) / dx, in_y = (at_y - (y + ty * at_z)) / dy;
            const float_wide distance2 = in_x * in_x + in_y * in_y;
            const int_wide better = (distance2 < best_distance2) & ((inside[v] >> wide_numbers & 1u) != 0u);
            best_distance2 = better ? distance2 : best_distance2;
            best = better ? wide_numbers + i : best;
        }
    }
    const float lowest = lowest_wide(best_distance2);
    return lowest_wide(best_distance2 <= lowest ? best : uint_wide{} + no_muon_hit);
}

#endif

}  // namespace hlt

HLT_KERNEL(is_muon)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;

    const uint32_t first = p.long_tracks.first(event);
    const uint32_t n_tracks = p.long_tracks.count[event];
    const uint32_t first_hit = p.muon_hits.first(event);
    const uint16_t* const offset = p.muon_hits.station_offset + event * hlt::muon_station_stride;

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
                                p.long_tracks.x[track] - hlt::z_end_scifi * p.long_tracks.tx[track],
                                p.long_tracks.y[track] - hlt::z_end_scifi * p.long_tracks.ty[track],
                                p.long_tracks.tx[track],
                                p.long_tracks.ty[track],
                                {}};
        const auto look_at = [&](uint32_t station) -> uint32_t {
            if (offset[station] == offset[station + 1u]) return hlt::no_muon_hit;
            search.set_fields(*p.muon_field_of_interest, station, momentum, p.field_scale);
            return search.nearest(offset[station], offset[station + 1u]);
        };
        const uint32_t in_m3 = look_at(1);
        if (in_m3 == hlt::no_muon_hit) continue;
        const uint32_t in_m2 = look_at(0);
        if (in_m2 == hlt::no_muon_hit) continue;
        uint32_t in_m4 = hlt::no_muon_hit, in_m5 = hlt::no_muon_hit;
        if (momentum >= p.one_behind_p) {
            in_m4 = look_at(2);
            in_m5 = look_at(3);
            const uint32_t n = (in_m4 != hlt::no_muon_hit ? 1u : 0u) + (in_m5 != hlt::no_muon_hit ? 1u : 0u);
            if (n < (momentum >= p.two_behind_p ? 2u : 1u)) continue;
        }
        nearest[0] = static_cast<uint16_t>(in_m2);
        nearest[1] = static_cast<uint16_t>(in_m3);
        nearest[2] = static_cast<uint16_t>(in_m4);
        nearest[3] = static_cast<uint16_t>(in_m5);
        p.long_tracks.is_muon[track] = 1;
    }
}
