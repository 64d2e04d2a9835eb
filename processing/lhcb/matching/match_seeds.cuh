// VELO tracks and SciFi seeds that belong together.
//
// Forward VELO tracks without a long track are put into bins of the y that they reach in the SciFi tracker; a seed,
// which foretells how much of it the magnet has changed, looks into the bins around its own y. A pair is compared at
// the plane where both lines in x should cross, in y, in the slope in y and in curvature; all errors grow with the
// kick, that is with 1/p. Its score is a log-likelihood ratio: how far it is from a true pair, plus how many wrong
// pairs there are of its kind: those of large kick and of small angle, and those that the UT does not confirm. Each
// VELO track takes the seed of lowest score; of tracks on one SciFi hit the one of lowest score owns it, and a track is
// dropped if too many of its hits belong to others.
// In:  velo_tracks, velo_end, scifi_seeds, ut_hits, long_tracks (those found before). Out: matched_tracks.
// One block per event; threads stride over tracks, hits and seeds. What several threads write is the smallest of words
// that hold score and number: the result depends on no order.
// Bounds: max_long_tracks with those found before, more flag the event. Bins with more than max_in_track_bin tracks are
// not looked at.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/matching/generated/matching_match_seeds.h"
#include "lhcb/matching/seed_fit.cuh"
#include "lhcb/matching/ut_confirmation.cuh"

namespace hlt {

/// ln(x) for x > 0, absolute error below 2e-5.
__device__ float log_approximate(float x)
{
    const uint32_t word = __float_as_uint(x);
    const float exponent = static_cast<float>(static_cast<int32_t>(word >> 23) - 127);
    const float mantissa = __uint_as_float((word & 0x007fffffu) | 0x3f800000u);
    const float s = (mantissa - 1.f) / (mantissa + 1.f);
    const float s2 = s * s;
    return 0.69314718f * exponent + 2.f * s * (1.f + s2 * (1.f / 3.f + s2 * (1.f / 5.f + s2 * (1.f / 7.f + s2 / 9.f))));
}

constexpr uint32_t n_track_bins = 128;
constexpr float track_bin_width = 40.f;  // mm
constexpr uint32_t max_in_track_bin = 1024;

__device__ uint32_t track_bin_of(float y)
{
    const float bin = (y + 0.5f * track_bin_width * static_cast<float>(n_track_bins)) * (1.f / track_bin_width);
    const float last = static_cast<float>(n_track_bins - 1u);
    return bin > 0.f ? static_cast<uint32_t>(min_of(bin, last)) : 0u;
}

/// A seed as matching sees it: curve, and line in y at the reference plane.
struct matching_seed {
    seed_curve curve;
    float y, ty;
    uint32_t n_hits;
};

/// y that the magnet adds up to the reference plane, over the slope in y of the VELO.
__device__ float magnet_y(float kick, float tx) { return 1e3f * kick * (6.66f * tx - 0.34f * kick); }

/// Variance of y at the reference plane around what is expected, mm^2.
__device__ float variance_of_y(float kick) { return 6.25f + 1764.f * kick * kick; }

struct pair_chi2 {
    float x, y, ty, curvature;
    __device__ float sum() const { return x + y + ty + curvature; }
};

__device__ pair_chi2 compare(const matching_seed& seed, const velo_line& line)
{
    const float kick = seed.curve.b - line.tx;
    const float kick2 = kick * kick;
    const float tx2 = line.tx * line.tx, ty2 = line.ty * line.ty;
    const float plane =
        5185.26f + 141.68f * absolute(kick) + 247.6f * kick2 + 8.35f * tx2 - 1284.6f * ty2 + 523.05f * kick * line.tx;
    const float dx =
        seed.curve.a + seed.curve.b * (plane - z_scifi_reference) - (line.x + line.tx * (plane - z_velo_end));
    const float dy = seed.y - (line.y + line.ty * (z_scifi_reference - z_velo_end)) - line.ty * magnet_y(kick, line.tx);
    const float dty = seed.ty - line.ty - line.ty * kick * (1.158f * line.tx - 0.588f * kick);
    const float dc = seed.curve.c - kick * (2.213e-5f - 4.33e-4f * ty2 - 4.5e-5f * line.tx * seed.curve.b);
    const float dc_scaled = 1e6f * dc;
    return {dx * dx / (1.44f + 900.f * kick2), dy * dy / variance_of_y(kick), dty * dty / (1.69e-6f + 8.1e-5f * kick2),
            dc_scaled * dc_scaled / (0.0625f + 2.89f * kick2)};
}

/// Whether chi2 of y, most of which is of wrong pairs, is small enough.
__device__ bool near_in_y(const matching_seed& seed, const velo_line& line, float max_chi2)
{
    const float kick = seed.curve.b - line.tx;
    const float dy = seed.y - (line.y + line.ty * (z_scifi_reference - z_velo_end)) - line.ty * magnet_y(kick, line.tx);
    return dy * dy < max_chi2 * variance_of_y(kick);
}

/// Log-likelihood ratio of a pair, in units of chi2: the lower the better. First without the UT, which only adds to it.
__device__ float score_of(const pair_chi2& chi2, const velo_line& line, float kick, uint32_t n_hits)
{
    constexpr float of_place = 0.5f, of_slopes = 0.1f;
    constexpr float of_kick = 3.6f, of_angle = 2.4f, of_hits = 1.f, offset = -4.26f;
    float score = of_place * (chi2.x + chi2.y) + of_slopes * (chi2.ty + chi2.curvature) + offset;
    score += of_kick * log_approximate(absolute(kick) + 0.01f);
    score -= of_angle * log_approximate(line.tx * line.tx + line.ty * line.ty + 1e-6f);
    return score - of_hits * static_cast<float>(n_hits);
}

/// What the UT adds: nothing where the track crosses too few of its layers.
__device__ float score_of(const ut_confirmation& ut)
{
    constexpr float unconfirmed = 6.f, three_layers = 2.f, of_chi2 = 0.4f, max_chi2 = 30.f;
    if (ut.n_crossed < 3u) return 0.f;
    if (ut.n_layers < 3u) return unconfirmed;
    return of_chi2 * min_of(ut.chi2, max_chi2) + (ut.n_layers == 3u ? three_layers : 0.f);
}

constexpr float score_offset = 64.f, score_scale = 512.f;

/// What a pair bids: its score, in steps of 1 / 512, then a number.
__device__ uint32_t bid_of_pair(float score, uint32_t number)
{
    const float scaled = (score + score_offset) * score_scale;
    return (scaled > 0.f ? static_cast<uint32_t>(min_of(scaled, 65534.f)) : 0u) << 16 | number;
}

/// q/p in 1/MeV, from the slopes in x at the end of the SciFi tracker and before the magnet (Allen 2023).
__device__ float qop_of(float tx_end, const velo_line& line, float polarity)
{
    const float t2 = tx_end * tx_end, ty2 = line.ty * line.ty;
    const float kick = tx_end - line.tx;
    const float power = 1239.40737f + t2 * (486.056641f + 6.71587015f * t2) + 632.728379f * tx_end * line.tx +
                        ty2 * (2358.57581f - 9256.27946f * ty2) + 241.460104f * line.tx * line.tx;
    const float p_over_q = power + (kick < 0.f ? -42.0485955f : 42.0485955f) * kick;
    return -polarity * kick / p_over_q;
}

}  // namespace hlt

HLT_KERNEL(matching_match_seeds)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t first_track = p.velo_tracks.first(event);
    const uint32_t first_seed = p.scifi_seeds.first(event);
    const uint32_t first_ut = p.ut_hits.first(event);
    const uint32_t first_long = p.long_tracks.first(event);
    const uint32_t first_matched = p.matched_tracks.first(event);
    const uint32_t n_tracks = p.velo_tracks.count[event];
    const uint32_t n_seeds = p.scifi_seeds.count[event];
    const uint32_t n_scifi_hits = p.scifi_hits.count[event];
    const uint32_t n_long = p.long_tracks.count[event];
    uint8_t* busy = p.velo_tracks_scratch.busy + first_track;
    uint16_t* track_order = p.velo_tracks_scratch.track_order + first_track;
    uint32_t* best = p.velo_tracks_scratch.best + first_track;
    uint32_t* owner = p.scifi_hits_scratch.owner + p.scifi_hits_scratch.first(event);
    __shared__ uint32_t sums[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t track_bins[hlt::n_track_bins + 1u];
    __shared__ uint32_t ut_bins[hlt::n_all_ut_bins + 1u];

    const hlt::binned_ut_hits ut{p.ut_hits.x + first_ut,
                                 p.ut_hits.z + first_ut,
                                 p.ut_hits.y_begin + first_ut,
                                 p.ut_hits.y_end + first_ut,
                                 p.ut_hits_scratch.ut_order + first_ut,
                                 p.ut_hits_scratch.ut_x + first_ut,
                                 p.ut_hits_scratch.ut_z + first_ut,
                                 ut_bins};
    hlt::bin_ut_hits(ut, p.ut_hits.count[event], sums);

    const auto line_of = [&](uint32_t track) -> hlt::velo_line {
        const uint32_t at = first_track + track;
        return {p.velo_end.x[at], p.velo_end.y[at], p.velo_end.tx[at], p.velo_end.ty[at]};
    };
    const auto y_at_seeds = [&](const hlt::velo_line& line) {
        return line.y + line.ty * (hlt::z_scifi_reference - hlt::z_velo_end);
    };
    for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x) {
        busy[i] = p.velo_tracks.backward[first_track + i];
        best[i] = 0xffffffffu;
    }
    for (uint32_t i = threadIdx.x; i < n_scifi_hits; i += blockDim.x) owner[i] = 0xffffffffu;
    for (uint32_t bin = threadIdx.x; bin <= hlt::n_track_bins; bin += blockDim.x) track_bins[bin] = 0;
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n_long; i += blockDim.x) busy[p.long_tracks.velo_track[first_long + i]] = 1;
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x)
        if (busy[i] == 0u) atomicAdd(&track_bins[hlt::track_bin_of(y_at_seeds(line_of(i)))], 1u);
    hlt::block_barrier();
    uint32_t n_free = 0;
    for (uint32_t base = 0; base < hlt::n_track_bins; base += blockDim.x) {
        const uint32_t bin = base + threadIdx.x;
        const uint32_t count = bin < hlt::n_track_bins ? track_bins[bin] : 0u;
        uint32_t total = 0;
        const uint32_t before = hlt::block_exclusive_sum(count, sums, total);
        if (bin < hlt::n_track_bins) track_bins[bin] = n_free + before + count;
        n_free += total;
    }
    if (threadIdx.x == 0) track_bins[hlt::n_track_bins] = n_free;
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x) {
        if (busy[i] != 0u) continue;
        const uint32_t bin = hlt::track_bin_of(y_at_seeds(line_of(i)));
        track_order[atomicAdd(&track_bins[bin], 0xffffffffu) - 1u] = static_cast<uint16_t>(i);
    }
    hlt::block_barrier();

    const auto seed_of = [&](uint32_t seed) -> hlt::matching_seed {
        const uint32_t at = first_seed + seed;
        const float ty = p.scifi_seeds.ty[at];
        return {hlt::seed_curve::of_state(p.scifi_seeds.x[at], p.scifi_seeds.tx[at], p.scifi_seeds.curvature[at]),
                p.scifi_seeds.y[at] - ty * (hlt::z_end_scifi - hlt::z_scifi_reference), ty,
                p.scifi_seeds.hit_count[at]};
    };
    for (uint32_t number = threadIdx.x; number < n_seeds; number += blockDim.x) {
        const hlt::matching_seed seed = seed_of(number);
        const hlt::kick_estimate kick = hlt::kick_of(seed.curve);
        // The slope in y before the magnet follows from y: both are proportional.
        const float lever = hlt::z_scifi_reference + hlt::magnet_y(kick.size, kick.before);
        const float y = seed.y * hlt::z_scifi_reference / lever;
        const float size = hlt::absolute(kick.size);
        const float window = 20.f + 210.f * size;
        const uint32_t last_bin = hlt::track_bin_of(y + window);
        for (uint32_t bin = hlt::track_bin_of(y - window); bin <= last_bin; ++bin) {
            const uint32_t end = track_bins[bin + 1u];
            if (end - track_bins[bin] > hlt::max_in_track_bin) continue;
            for (uint32_t i = track_bins[bin]; i < end; ++i) {
                const uint32_t track = track_order[i];
                const hlt::velo_line line = line_of(track);
                if (!hlt::near_in_y(seed, line, p.max_chi2)) continue;
                const hlt::pair_chi2 chi2 = hlt::compare(seed, line);
                if (!(chi2.sum() < p.max_chi2)) continue;
                const float pair_kick = seed.curve.b - line.tx;
                float score = hlt::score_of(chi2, line, pair_kick, seed.n_hits);
                // A pair that loses without the UT loses with it.
                if (!(score < p.max_score) || hlt::bid_of_pair(score, number) >= best[track]) continue;
                score += hlt::score_of(hlt::confirm_in_ut(ut, line, pair_kick));
                if (score < p.max_score) atomicMin(&best[track], hlt::bid_of_pair(score, number));
            }
        }
    }
    hlt::block_barrier();

    const auto for_hits = [&](uint32_t seed, auto work) {
        const uint16_t* hits = p.scifi_seeds.hits + (first_seed + seed) * hlt::max_scifi_track_hits;
        for (uint32_t k = 0; k < hlt::max_scifi_track_hits; ++k)
            if (hits[k] != hlt::no_scifi_hit) work(hits[k]);
    };
    for (uint32_t track = threadIdx.x; track < n_tracks; track += blockDim.x) {
        if (best[track] == 0xffffffffu) continue;
        const uint32_t bid = (best[track] & 0xffff0000u) | track;
        for_hits(best[track] & 0xffffu, [&](uint32_t hit) { atomicMin(&owner[hit], bid); });
    }
    hlt::block_barrier();
    uint32_t n_matched = 0;
    for (uint32_t base = 0; base < n_tracks; base += blockDim.x) {
        const uint32_t track = base + threadIdx.x;
        bool found = track < n_tracks && best[track] != 0xffffffffu;
        const uint32_t seed_number = found ? best[track] & 0xffffu : 0u;
        if (found) {
            const uint32_t bid = (best[track] & 0xffff0000u) | track;
            uint32_t n_shared = 0;
            for_hits(seed_number, [&](uint32_t hit) { n_shared += owner[hit] != bid ? 1u : 0u; });
            found = n_shared <= p.max_shared_hits;
        }
        uint32_t total = 0;
        const uint32_t place = n_matched + hlt::block_exclusive_count(found, sums, total);
        n_matched += total;
        if (!found || place + n_long >= hlt::max_long_tracks) continue;
        const uint32_t to = first_matched + place;
        const hlt::velo_line line = line_of(track);
        const hlt::matching_seed seed = seed_of(seed_number);
        const float kick = seed.curve.b - line.tx;
        const hlt::ut_confirmation in_ut = hlt::confirm_in_ut(ut, line, kick);
        p.matched_tracks.velo_track[to] = static_cast<uint16_t>(track);
        p.matched_tracks.seed[to] = static_cast<uint16_t>(seed_number);
        p.matched_tracks.qop[to] =
            hlt::qop_of(p.scifi_seeds.tx[first_seed + seed_number], line, p.seeding_tables->polarity);
        p.matched_tracks.quality[to] =
            hlt::score_of(hlt::compare(seed, line), line, kick, seed.n_hits) + hlt::score_of(in_ut);
        for (uint32_t layer = 0; layer < hlt::n_long_ut_layers; ++layer)
            p.matched_tracks.ut_hits[to * hlt::n_long_ut_layers + layer] =
                in_ut.n_layers < 3u ? static_cast<uint16_t>(hlt::no_ut_hit) : in_ut.hits[layer];
    }
    if (threadIdx.x == 0) {
        const uint32_t room = hlt::max_long_tracks - hlt::min_of(n_long, hlt::max_long_tracks);
        p.matched_tracks.count[event] = hlt::min_of(n_matched, room);
        if (n_matched > room) p.events.flags[event] |= hlt::overflow;
    }
}
