// Stubs of the muon stations alone: straight lines of one hit in each of M2 to M5 (docs/physics/muon.md).
//
// Each hit in M5 is a seed. In M4, then M3, then M2 it takes the hit that is nearest to a line in x and y, inside a
// window: first the line to the origin, then that of the last two hits. Straight lines are fitted to the four hits.
// Of stubs with a common hit the one with the smallest chi2 stays, of equal ones the first.
// In:  muon_hits.{x, y, z, dx, dy, tile}, muon_hits.station_offset.
// Out: muon_stubs.{count [event], hits [stub][4], x, y, tx, ty, chi2_x, chi2_y}, ascending by seed; events.flags.
// One block per event; threads stride over seeds and over hits. Threads share only minima, so the result does not
// depend on their order. On the CPU eight or sixteen hits are compared at once.
// Time: seeds times hits. The cap of muon_hit_offsets on the hits of an event bounds it, as for is_muon.
// Bounds: hits as muon_hits.station_offset; columns are loaded up to muon_hit_padding - 1 places behind the last hit;
// max_muon_stubs, an event with more is flagged and the first ones are kept.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/muon/generated/muon_find_stubs.h"
#include "lhcb/muon/generated/muon_types.h"
#if !HLT_ON_GPU
#include "framework/device/wide_lanes.h"
#endif

namespace hlt {

constexpr float muon_stub_z = 15270.f;      // mm, the middle of M2
constexpr float no_stub_distance2 = 1e30f;  // mm^2
constexpr float largest_stub_chi2 = 1e30f;  // also of chi2 that is no number
constexpr uint32_t no_muon_stub = 0xffffffffu;
constexpr uint32_t last_muon_station = n_muon_stations - 1u;
constexpr uint32_t n_hits_before_seed = n_muon_stations - 1u;

/// A line through the muon stations, and the half sizes of a window around it, mm.
struct muon_road {
    float x, y, tx, ty;  // at z = 0
    float half_x, half_y;
};

/// The hit from `begin` to `end` in the window of a road that is nearest to its line, of equal ones the first;
/// no_muon_hit without one.
__device__ uint32_t nearest_of_road(const float* __restrict__ hit_x, const float* __restrict__ hit_y,
                                    const float* __restrict__ hit_z, uint32_t begin, uint32_t end,
                                    const muon_road& road)
{
    uint32_t best = no_muon_hit;
#if HLT_ON_GPU
    float best_distance2 = no_stub_distance2;
    for (uint32_t i = begin; i < end; ++i) {
        const float to_x = hit_x[i] - (road.x + road.tx * hit_z[i]);
        const float to_y = hit_y[i] - (road.y + road.ty * hit_z[i]);
        if (!(fabsf(to_x) < road.half_x) || !(fabsf(to_y) < road.half_y)) continue;
        const float distance2 = to_x * to_x + to_y * to_y;
        if (!(distance2 < best_distance2)) continue;
        best = i;
        best_distance2 = distance2;
    }
#else
    static_assert(muon_hit_padding >= 8u);
    float best_distance2 = no_stub_distance2;
    const float_wide half_x = float_wide{} + road.half_x, half_y = float_wide{} + road.half_y;
    for (uint32_t i = begin; i < end; i += n_wide) {
        const uint32_t there = first_bits(end - i);
        float_wide at_x, at_y, at_z;
        load_wide_where(at_x, hit_x + i, there);
        load_wide_where(at_y, hit_y + i, there);
        load_wide_where(at_z, hit_z + i, there);
        const float_wide to_x = at_x - (road.x + road.tx * at_z), to_y = at_y - (road.y + road.ty * at_z);
        const auto is_inside = [](const float_wide& to, const float_wide& half) __attribute__((always_inline)) {
            return bits_where<wide_comparison::less>(to, half) & bits_where<wide_comparison::less>(-to, half);
        };
        // Few hits are in the window.
        for (uint32_t left = is_inside(to_x, half_x) & is_inside(to_y, half_y) & there; left != 0u; left &= left - 1u) {
            const uint32_t lane = lowest_bit(left);
            const float distance2 = to_x[lane] * to_x[lane] + to_y[lane] * to_y[lane];
            if (!(distance2 < best_distance2)) continue;
            best = i + lane;
            best_distance2 = distance2;
        }
    }
#endif
    return best;
}

/// A straight line fitted to the four hits of a stub in one view: place (mm) at muon_stub_z, slope, chi2 per degree of
/// freedom.
struct muon_stub_view {
    float at, slope, chi2;

    /// `hits`: of M2 to M5. The error of a hit is twice its half size.
    __device__ muon_stub_view(const float* place, const float* half_size, const float* hit_z, const uint32_t* hits)
    {
        // Places count from that of the first hit: sums of squares of metres would lose the fractions of a millimetre.
        const float from = place[hits[0]];
        float sum = 0.f, z = 0.f, z2 = 0.f, u = 0.f, zu = 0.f;
        for (uint32_t i = 0; i < n_muon_stations; ++i) {
            const float error = 2.f * half_size[hits[i]];
            const float weight = 1.f / (error * error);
            const float to_z = hit_z[hits[i]] - muon_stub_z, to = place[hits[i]] - from;
            sum += weight;
            z += weight * to_z;
            z2 += weight * to_z * to_z;
            u += weight * to;
            zu += weight * to_z * to;
        }
        slope = (sum * zu - z * u) / (sum * z2 - z * z);
        const float offset = (u - slope * z) / sum;
        at = from + offset;
        float square = 0.f;
        for (uint32_t i = 0; i < n_muon_stations; ++i) {
            const float error = 2.f * half_size[hits[i]];
            const float residual = place[hits[i]] - from - offset - slope * (hit_z[hits[i]] - muon_stub_z);
            square += residual * residual / (error * error);
        }
        constexpr float degrees_of_freedom = n_muon_stations - 2u;
        chi2 = square / degrees_of_freedom;
    }
};

}  // namespace hlt

HLT_KERNEL(muon_find_stubs)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t sums[hlt::max_block_size / hlt::warp_size];
    const uint32_t first_hit = p.muon_hits.first(event);
    const uint16_t* const offset = p.muon_hits.station_offset + event * hlt::muon_station_stride;
    const float* const hit_x = p.muon_hits.x + first_hit;
    const float* const hit_y = p.muon_hits.y + first_hit;
    const float* const hit_z = p.muon_hits.z + first_hit;
    const float* const hit_dx = p.muon_hits.dx + first_hit;
    const float* const hit_dy = p.muon_hits.dy + first_hit;
    const uint32_t first_place = p.scratch.first(event);
    uint16_t* const found = p.scratch.stub_hits + hlt::n_hits_before_seed * first_place;
    uint32_t* const chi2_of_seed = p.scratch.stub_chi2 + first_place;
    uint32_t* const least_chi2 = p.scratch.least_chi2 + first_place;
    uint32_t* const first_seed = p.scratch.first_seed + first_place;
    const uint32_t begin = offset[hlt::last_muon_station], end = offset[hlt::n_muon_stations];

    const auto hits_of = [&](uint32_t seed, uint32_t (&hits)[hlt::n_muon_stations]) {
        for (uint32_t i = 0; i < hlt::n_hits_before_seed; ++i) hits[i] = found[hlt::n_hits_before_seed * seed + i];
        hits[hlt::last_muon_station] = seed;
    };

    for (uint32_t i = threadIdx.x; i < end; i += blockDim.x) least_chi2[i] = first_seed[i] = hlt::no_muon_stub;
    hlt::block_barrier();

    for (uint32_t seed = begin + threadIdx.x; seed < end; seed += blockDim.x) {
        chi2_of_seed[seed] = hlt::no_muon_stub;
        const uint32_t region = p.muon_hits.tile[first_hit + seed] >> 14 & (hlt::n_muon_regions - 1u);
        const float half_y = p.half_width_y * static_cast<float>(1u << region);
        const float z = hit_z[seed];
        hlt::muon_road road{0.f, 0.f, hit_x[seed] / z, hit_y[seed] / z, p.half_width_x_m4, 2.f * half_y};
        uint32_t last = seed;
        uint32_t station = hlt::last_muon_station;
        while (station > 0u) {
            const uint32_t hit = hlt::nearest_of_road(hit_x, hit_y, hit_z, offset[station - 1u], offset[station], road);
            if (hit == hlt::no_muon_hit) break;
            --station;
            found[hlt::n_hits_before_seed * seed + station] = static_cast<uint16_t>(hit);
            const float step = hit_z[last] - hit_z[hit];
            road.tx = (hit_x[last] - hit_x[hit]) / step;
            road.ty = (hit_y[last] - hit_y[hit]) / step;
            road.x = hit_x[hit] - road.tx * hit_z[hit];
            road.y = hit_y[hit] - road.ty * hit_z[hit];
            road.half_x = p.half_width_x * static_cast<float>(region + 1u);
            road.half_y = half_y;
            last = hit;
        }
        if (station != 0u) continue;
        uint32_t hits[hlt::n_muon_stations];
        hits_of(seed, hits);
        const hlt::muon_stub_view in_x(hit_x, hit_dx, hit_z, hits), in_y(hit_y, hit_dy, hit_z, hits);
        const float chi2 = in_x.chi2 + in_y.chi2;
        if (!(chi2 < hlt::largest_stub_chi2)) continue;
        // Bits of positive numbers are in the order of the numbers.
        chi2_of_seed[seed] = __float_as_uint(chi2);
        for (const uint32_t hit : hits) atomicMin(&least_chi2[hit], chi2_of_seed[seed]);
    }
    hlt::block_barrier();

    for (uint32_t seed = begin + threadIdx.x; seed < end; seed += blockDim.x) {
        if (chi2_of_seed[seed] == hlt::no_muon_stub) continue;
        uint32_t hits[hlt::n_muon_stations];
        hits_of(seed, hits);
        for (const uint32_t hit : hits)
            if (least_chi2[hit] == chi2_of_seed[seed]) atomicMin(&first_seed[hit], seed);
    }
    hlt::block_barrier();

    uint32_t n_stubs = 0;
    for (uint32_t base = begin; base < end; base += blockDim.x) {
        const uint32_t seed = base + threadIdx.x;
        bool kept = seed < end && chi2_of_seed[seed] != hlt::no_muon_stub;
        uint32_t hits[hlt::n_muon_stations];
        if (kept) {
            hits_of(seed, hits);
            for (const uint32_t hit : hits) kept = kept && first_seed[hit] == seed;
        }
        uint32_t total = 0;
        const uint32_t place = n_stubs + hlt::block_exclusive_count(kept, sums, total);
        n_stubs += total;
        if (!kept || place >= hlt::max_muon_stubs) continue;
        const uint32_t to = p.muon_stubs.first(event) + place;
        const hlt::muon_stub_view in_x(hit_x, hit_dx, hit_z, hits), in_y(hit_y, hit_dy, hit_z, hits);
        for (uint32_t i = 0; i < hlt::n_muon_stations; ++i)
            p.muon_stubs.hits[hlt::n_muon_stations * to + i] = static_cast<uint16_t>(hits[i]);
        p.muon_stubs.x[to] = in_x.at;
        p.muon_stubs.y[to] = in_y.at;
        p.muon_stubs.tx[to] = in_x.slope;
        p.muon_stubs.ty[to] = in_y.slope;
        p.muon_stubs.chi2_x[to] = in_x.chi2;
        p.muon_stubs.chi2_y[to] = in_y.chi2;
    }
    if (threadIdx.x == 0) {
        p.muon_stubs.count[event] = hlt::min_of(n_stubs, hlt::max_muon_stubs);
        if (n_stubs > hlt::max_muon_stubs) p.events.flags[event] |= hlt::overflow;
    }
}
