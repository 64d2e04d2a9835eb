// Matching of VELO tracks and SciFi seeds.
//
// Forward VELO tracks without a long track are sorted into bins of their y in the SciFi tracker. A seed predicts the
// change of y in the magnet and is compared with the tracks in the bins around its own y. A pair is compared in x at
// the plane where both lines should cross, in y, in the slope in y and in curvature; all errors grow with the kick,
// that is with 1/p. Its score is a log-likelihood ratio: the distance from a true pair, plus a term for the number of
// wrong pairs of its kind, which rises for a large kick, a small angle, and without confirmation by the UT. Each VELO
// track takes the seed with the lowest score. A SciFi hit belongs to the track with the lowest score; a track is
// dropped if too many of its hits belong to others.
// In:  velo_tracks, velo_end, scifi_seeds, ut_hits, long_tracks (those found before). Out: matched_tracks; of an event
//      with seeds the order of UT hits by bins: ut_hits.{bin_begin, bin_order, bin_x, bin_z}.
// One block per event; threads stride over tracks, hits and seeds. Threads share only minima of words that hold score
// and number, so the result does not depend on their order.
// Bounds: max_long_tracks, including tracks found before; more flag the event. A seed with more than max_lines_of_seed
// tracks around it gets no track.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/tracks/matching/generated/matching_match_seeds.h"
#include "lhcb/tracks/matching/pair_score.cuh"
#include "lhcb/tracks/matching/velo_lines.cuh"

namespace hlt {

constexpr uint32_t max_lines_of_seed = 1024;
constexpr uint32_t no_track = 0xffffu;

/// The best pair of a seed.
struct confirmed_pair {
    uint32_t track;
    float score;
    ut_confirmation in_ut;
};

/// The UT hits of a track, and the UT term of its score.
__device__ void store(const ut_confirmation& in_ut, uint16_t* hits, float& score)
{
    score = score_of(in_ut);
    for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer)
        hits[layer] = in_ut.n_layers < 3u ? static_cast<uint16_t>(no_ut_hit) : in_ut.hits[layer];
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
    uint32_t* best = p.velo_tracks_scratch.best + first_track;
    uint16_t* confirmed_track = p.scifi_seeds_scratch.confirmed_track + first_seed;
    uint16_t* confirmed_hits = p.scifi_seeds_scratch.confirmed_hits + first_seed * hlt::n_long_ut_layers;
    float* confirmed_score = p.scifi_seeds_scratch.confirmed_score + first_seed;
    uint32_t* owner = p.scifi_hits_scratch.owner + p.scifi_hits_scratch.first(event);
    __shared__ uint32_t sums[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t track_bins[hlt::n_track_bins + 1u];
    __shared__ uint32_t ut_bins[hlt::n_all_ut_bins + 1u];

    const auto line_of = [&](uint32_t track) -> hlt::velo_line {
        const uint32_t at = first_track + track;
        return {p.velo_end.x[at], p.velo_end.y[at], p.velo_end.tx[at], p.velo_end.ty[at]};
    };
    for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x) {
        busy[i] = p.velo_tracks.backward[first_track + i];
        best[i] = 0xffffffffu;
    }
    for (uint32_t i = threadIdx.x; i < n_scifi_hits; i += blockDim.x) owner[i] = 0xffffffffu;
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n_long; i += blockDim.x) busy[p.long_tracks.velo_track[first_long + i]] = 1;
    hlt::block_barrier();
    const hlt::binned_lines lines{p.velo_tracks_scratch.track + first_track, p.velo_tracks_scratch.x + first_track,
                                  p.velo_tracks_scratch.y + first_track,     p.velo_tracks_scratch.tx + first_track,
                                  p.velo_tracks_scratch.ty + first_track,    track_bins};
    lines.fill(n_tracks, [&](uint32_t track) { return busy[track] == 0u; }, line_of, sums);
    const hlt::binned_ut_hits ut{p.ut_hits.x + first_ut,         p.ut_hits.z + first_ut,
                                 p.ut_hits.y_begin + first_ut,   p.ut_hits.y_end + first_ut,
                                 p.ut_hits.bin_order + first_ut, p.ut_hits.bin_x + first_ut,
                                 p.ut_hits.bin_z + first_ut,     ut_bins};
    // The search for downstream tracks uses the bins too.
    if (n_seeds != 0u) {
        hlt::bin_ut_hits(ut, p.ut_hits.count[event], sums);
        uint32_t* const bin_begin = p.ut_hits.bin_begin + event * (hlt::n_all_ut_bins + 1u);
        for (uint32_t bin = threadIdx.x; bin <= hlt::n_all_ut_bins; bin += blockDim.x) bin_begin[bin] = ut_bins[bin];
    }

    const auto seed_of = [&](uint32_t seed) -> hlt::matching_seed {
        const uint32_t at = first_seed + seed;
        const float ty = p.scifi_seeds.ty[at];
        return {hlt::seed_curve::of_state(p.scifi_seeds.x[at], p.scifi_seeds.tx[at], p.scifi_seeds.curvature[at]),
                p.scifi_seeds.y[at] - ty * (hlt::z_end_scifi - hlt::z_scifi_reference), ty,
                p.scifi_seeds.hit_count[at]};
    };
    const auto try_pair = [&](uint32_t number, const hlt::matching_seed& seed, uint32_t i,
                              hlt::confirmed_pair& of_seed) {
        const hlt::velo_line line = lines.line(i);
        const float kick = seed.curve.b - line.tx;
        float score = hlt::score_of(hlt::compare(seed, line), line, kick, seed.n_hits);
        uint32_t* const best_of_track = best + lines.track[i];
        // A pair that loses without the UT term also loses with it.
        if (!(score < p.max_score) || hlt::bid_of_pair(score, number) >= *best_of_track) return;
        const hlt::ut_confirmation in_ut = hlt::confirm_in_ut(ut, line, kick);
        score += hlt::score_of(in_ut);
        if (!(score < p.max_score)) return;
        atomicMin(best_of_track, hlt::bid_of_pair(score, number));
        if (score < of_seed.score) of_seed = {lines.track[i], score, in_ut};
    };
    for (uint32_t number = threadIdx.x; number < n_seeds; number += blockDim.x) {
        const hlt::matching_seed seed = seed_of(number);
        const hlt::kick_estimate kick = hlt::kick_of(seed.curve);
        // The slope in y before the magnet follows from y: both are proportional.
        const float lever = hlt::z_scifi_reference + hlt::magnet_y(kick.size, kick.before);
        const float y = seed.y * hlt::z_scifi_reference / lever;
        const float size = hlt::absolute(kick.size);
        const float window = 20.f + 210.f * size;
        const uint32_t begin = track_bins[hlt::track_bin_of(y - window)];
        const uint32_t end = track_bins[hlt::track_bin_of(y + window) + 1u];
        if (end - begin > hlt::max_lines_of_seed) continue;
        hlt::confirmed_pair of_seed{hlt::no_track, p.max_score, {0, 0, 0.f, {}}};
        for (uint32_t i = begin; i < end; i += hlt::line_lanes) {
            uint32_t near[hlt::line_lanes];
            uint32_t any = 0;
            for (uint32_t lane = 0; lane < hlt::line_lanes; ++lane) {
                near[lane] = static_cast<uint32_t>(hlt::compare(seed, lines.line(i + lane)).sum() < p.max_chi2);
                any |= near[lane];
            }
            for (uint32_t lane = 0; any != 0u && lane < hlt::min_of(hlt::line_lanes, end - i); ++lane)
                if (near[lane] != 0u) try_pair(number, seed, i + lane, of_seed);
        }
        confirmed_track[number] = static_cast<uint16_t>(of_seed.track);
        hlt::store(of_seed.in_ut, confirmed_hits + number * hlt::n_long_ut_layers, confirmed_score[number]);
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
        // The UT term is known for one pair of each seed.
        uint16_t* const ut_hits = p.matched_tracks.ut_hits + to * hlt::n_long_ut_layers;
        float ut_score = confirmed_score[seed_number];
        if (confirmed_track[seed_number] == track) {
            for (uint32_t layer = 0; layer < hlt::n_long_ut_layers; ++layer)
                ut_hits[layer] = confirmed_hits[seed_number * hlt::n_long_ut_layers + layer];
        } else {
            hlt::store(hlt::confirm_in_ut(ut, line, kick), ut_hits, ut_score);
        }
        p.matched_tracks.velo_track[to] = static_cast<uint16_t>(track);
        p.matched_tracks.seed[to] = static_cast<uint16_t>(seed_number);
        p.matched_tracks.qop[to] =
            hlt::qop_of(p.scifi_seeds.tx[first_seed + seed_number], line, p.seeding_tables->polarity);
        p.matched_tracks.quality[to] = hlt::score_of(hlt::compare(seed, line), line, kick, seed.n_hits) + ut_score;
    }
    if (threadIdx.x == 0) {
        const uint32_t room = hlt::max_long_tracks - hlt::min_of(n_long, hlt::max_long_tracks);
        p.matched_tracks.count[event] = hlt::min_of(n_matched, room);
        if (n_matched > room) p.events.flags[event] |= hlt::overflow;
    }
}
