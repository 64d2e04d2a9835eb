// Curves x(z) through the hits of the x layers of the SciFi tracker, in each half of it.
//
// A pair of hits in the two x layers of one station gives place and slope. The tangent meets z = 0 at a distance x0
// that is about proportional to q/p for what comes from the collisions, so x0 foretells the curvature. The pair is
// followed into the four other x layers, as a Kalman filter does: what a hit changes is a gain of the tables. One layer
// may have no hit. A first search begins with pairs of the last station; a second one, with pairs of the first, finds
// the curves that lack a hit in the last station. Of all curves on a hit the one with the smallest score owns it; a
// curve of which too many hits belong to others is dropped.
// In:  seeding_hits. Out: x_seeds.
// One block per event. Threads stride over the first hits of pairs, each keeps the two best curves of its hit; a prefix
// sum gives places, so their order is that of hits, whatever the number of threads.
// Bounds: max_x_seeds for each event, more flag it. A half with more than max_zone_hits hits in one zone has no curves,
// and flags it too. A hit has at most max_tries partners and max_triplets triplets, a window at most max_in_window
// hits, and at most max_around are around pairs that are looked at together: real events are far below.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/matching/generated/matching_seed_in_x.h"
#include "lhcb/matching/seeding_hits.cuh"

namespace hlt {

/// A curve while its hits are gathered; hits by step.
struct x_curve {
    float score;
    float a, b, c;
    uint32_t first, last;
    uint32_t step_hits[n_x_steps];
    uint32_t n_hits;
};

/// The best curves of one hit, the better one first.
struct two_curves {
    x_curve curves[2];
    uint32_t n;
};

__device__ void keep_better(two_curves& best, const x_curve& curve)
{
    if (best.n == 0u || curve.score < best.curves[0].score) {
        best.curves[1] = best.curves[0];
        best.curves[0] = curve;
    } else if (best.n == 1u || curve.score < best.curves[1].score) {
        best.curves[1] = curve;
    } else {
        return;
    }
    if (best.n < 2u) ++best.n;
}

/// A pair of hits while it is followed: the places expected in the layers of the steps, and the curve.
struct followed_pair {
    float places[n_x_steps];
    float a, b, c;
    float chi2;
    uint32_t pattern;

    __device__ void add(const x_step& step, uint32_t i, float residual)
    {
        for (uint32_t k = 0; k < n_x_steps; ++k) places[k] += step.gain[k] * residual;
        a += step.gain[n_x_steps] * residual;
        b += step.gain[n_x_steps + 1u] * residual;
        c += step.gain[n_x_steps + 2u] * residual;
        chi2 += residual * residual * step.inverse_variance;
        pattern |= 1u << i;
    }
};

struct x_search_cuts {
    float max_x0;
    float max_magnet_x;
    float max_chi2;
    float missing_hit_penalty;
};

/// What the search for partners of one hit knows.
class x_pair_search {
  public:
    __device__ x_pair_search(const x_search& search, const seeding_hit_view& hits, uint32_t half,
                             const x_search_cuts& cuts)
        : search_(search), hits_(hits), x_(hits.x), half_(half), cuts_(cuts)
    {
    }

    /// The two best curves that begin with hit `first`. Pairs of which `taken` has both hits are left out; `strict`:
    /// the first two steps must find a hit.
    __device__ void run(uint32_t first, const uint8_t* taken, bool strict, two_curves& best) const
    {
        const layer_hits partners = hits_of_layer(hits_, search_.last_layer, half_);
        const layer_hits next = layer_of_step(0), after = layer_of_step(1);
        const float x_first = x_[first];
        const float from_origin = x_first + x_first * search_.scale, by_x0 = cuts_.max_x0 * search_.scale;
        const float from_magnet = x_first + x_first * search_.magnet_scale;
        const float by_magnet = cuts_.max_magnet_x * search_.magnet_scale;
        const float low = max_of(from_origin - by_x0, from_magnet - by_magnet);
        const float high = min_of(from_origin + by_x0, from_magnet + by_magnet);
        const bool skips = strict && taken[first] != 0u;
        uint32_t n_triplets = 0;
        const uint32_t begin = first_hit_at(x_, partners, low);
        const uint32_t end = min_of(partners.end, begin + max_tries);
        for (uint32_t base = begin; base < end && x_[base] <= high; base += pair_lanes) {
            pair_block pairs;
            pairs.n = min_of(pair_lanes, end - base);
            while (x_[base + pairs.n - 1u] > high) --pairs.n;
            for (uint32_t lane = 0; lane < pair_lanes; ++lane) {
                const float slope = (x_[base + lane] - x_first) * search_.inverse_step;
                const float curvature = search_.curvature * (x_first - slope * search_.z);
                pairs.slope[lane] = slope;
                pairs.curvature[lane] = curvature;
                pairs.first_places[lane] = x_first + slope * search_.lever[0] + curvature * search_.bend[0];
                pairs.second_places[lane] = x_first + slope * search_.lever[1] + curvature * search_.bend[1];
                pairs.near[lane] = 0;
            }
            look_around(pairs, pairs.first_places, next, search_.steps[0][0].tolerance, 1u);
            if (!strict) look_around(pairs, pairs.second_places, after, search_.steps[0][1].tolerance, 2u);
            for (uint32_t lane = 0; lane < pairs.n && n_triplets < max_triplets; ++lane) {
                const uint32_t partner = base + lane;
                if (pairs.near[lane] == 0u || (skips && taken[partner] != 0u)) continue;
                n_triplets += follow_pair(first, partner, follow(x_first, pairs.slope[lane], pairs.curvature[lane]),
                                          strict, best);
            }
        }
    }

  private:
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    static constexpr uint32_t pair_lanes = 1;
#else
    static constexpr uint32_t pair_lanes = 8;  // scifi_hit_padding: hits behind the last one may be read
#endif
    static constexpr uint32_t max_tries = 128;
    static constexpr uint32_t max_triplets = 96;
    static constexpr uint32_t max_around = 128;
    static constexpr uint32_t max_in_window = 16;
    static constexpr uint32_t max_tried = 4;

    /// Up to max_in_window hits from the first one that is no further below `where` than `tolerance`.
    __device__ layer_hits window(const layer_hits& hits, float where, float tolerance) const
    {
        const uint32_t begin = first_hit_at(x_, hits, where - tolerance);
        return {begin, min_of(hits.end, begin + max_in_window), hits.bins};
    }

    __device__ layer_hits layer_of_step(uint32_t i) const { return hits_of_layer(hits_, search_.layers[i], half_); }

    /// Pairs of one first hit that are looked at together: vector registers of a CPU.
    struct pair_block {
        uint32_t n;
        float slope[pair_lanes];
        float curvature[pair_lanes];
        float first_places[pair_lanes];
        float second_places[pair_lanes];
        uint32_t near[pair_lanes];
    };

    /// Set `bit` for the pairs that have a hit around their place. Places follow the partners, up or down.
    __device__ void look_around(pair_block& pairs, const float* places, const layer_hits& hits, float tolerance,
                                uint32_t bit) const
    {
        const float one = places[0], other = places[pairs.n - 1u];
        const float high = max_of(one, other) + tolerance;
        float at[pair_lanes];
        uint32_t found[pair_lanes];
        for (uint32_t lane = 0; lane < pair_lanes; ++lane) {
            at[lane] = places[lane];
            found[lane] = 0;
        }
        const uint32_t begin = first_hit_at(x_, hits, min_of(one, other) - tolerance);
        const uint32_t end = min_of(hits.end, begin + max_around);
        for (uint32_t hit = begin; hit < end; ++hit) {
            const float x = x_[hit];
            if (x > high) break;
            for (uint32_t lane = 0; lane < pair_lanes; ++lane) {
                const float distance = x - at[lane];
                found[lane] |=
                    static_cast<uint32_t>(distance <= tolerance) & static_cast<uint32_t>(-distance <= tolerance);
            }
        }
        for (uint32_t lane = 0; lane < pair_lanes; ++lane) pairs.near[lane] |= found[lane] * bit;
    }

    /// The curves through a pair and hits around its places. Returns how many hits they are.
    __device__ uint32_t follow_pair(uint32_t first, uint32_t partner, const followed_pair& pair, bool strict,
                                    two_curves& best) const
    {
        const x_step& step = search_.steps[0][0];
        uint32_t tried[max_tried];
        uint32_t n_tried = 0, n_triplets = 0;
        const layer_hits near = window(layer_of_step(0), pair.places[0], step.tolerance);
        for (uint32_t hit = near.first; hit < near.end && x_[hit] - pair.places[0] <= step.tolerance; ++hit) {
            ++n_triplets;
            followed_pair with_hit = pair;
            with_hit.add(step, 0, x_[hit] - pair.places[0]);
            x_curve curve{};
            curve.step_hits[0] = hit;
            if (!finish(first, partner, with_hit, 1u, strict, curve, best)) continue;
            if (n_tried < max_tried && curve.step_hits[1] != no_scifi_hit) tried[n_tried++] = curve.step_hits[1];
        }
        if (strict) return n_triplets;
        const x_step& second = search_.steps[0][1];
        const layer_hits beside = window(layer_of_step(1), pair.places[1], second.tolerance);
        for (uint32_t hit = beside.first; hit < beside.end && x_[hit] - pair.places[1] <= second.tolerance; ++hit) {
            bool known = false;
            for (uint32_t k = 0; k < n_tried; ++k) known = known || tried[k] == hit;
            if (known) continue;
            ++n_triplets;
            followed_pair with_hit = pair;
            with_hit.add(second, 1, x_[hit] - pair.places[1]);
            x_curve curve{};
            curve.step_hits[0] = no_scifi_hit;
            curve.step_hits[1] = hit;
            finish(first, partner, with_hit, 2u, strict, curve, best);
        }
        return n_triplets;
    }

    /// The line and expected curve through a pair.
    __device__ followed_pair follow(float x_first, float slope, float curvature) const
    {
        followed_pair pair;
        for (uint32_t k = 0; k < n_x_steps; ++k)
            pair.places[k] = x_first + slope * search_.lever[k] + curvature * search_.bend[k];
        pair.a = x_first + slope * search_.lever[n_x_steps] + curvature * search_.bend[n_x_steps];
        pair.b = slope + curvature * search_.slope_bend;
        pair.c = curvature;
        pair.chi2 = 0.f;
        pair.pattern = 0;
        return pair;
    }

    /// The steps from `begin` on, each with the closest hit; one step in all may be without, none of the first two if
    /// `strict`. Returns whether there are enough hits, and keeps the curve if its chi2 is small enough.
    __device__ bool finish(uint32_t first, uint32_t partner, followed_pair& pair, uint32_t begin, bool strict,
                           x_curve& curve, two_curves& best) const
    {
        uint32_t n_missing = begin - 1u;
        for (uint32_t i = begin; i < n_x_steps; ++i) {
            const x_step& step = search_.steps[pair.pattern][i];
            const close_hit found = nearest_hit(x_, layer_of_step(i), pair.places[i], step.tolerance);
            curve.step_hits[i] = found.hit;
            if (found.hit != no_scifi_hit) {
                pair.add(step, i, found.residual);
            } else if (++n_missing > 1u || (strict && i < 2u)) {
                return false;
            }
        }
        if (pair.chi2 < cuts_.max_chi2) {
            curve.score = pair.chi2 + static_cast<float>(n_missing) * cuts_.missing_hit_penalty;
            curve.a = pair.a;
            curve.b = pair.b;
            curve.c = pair.c;
            curve.first = first;
            curve.last = partner;
            curve.n_hits = n_x_layers - n_missing;
            keep_better(best, curve);
        }
        return true;
    }

    const x_search& search_;
    seeding_hit_view hits_;
    const float* x_;
    uint32_t half_;
    x_search_cuts cuts_;
};

/// The x layer (0 to 5) of a layer.
__device__ uint32_t x_layer_of(uint32_t layer) { return layer / 4u * 2u + (layer % 4u == 0u ? 0u : 1u); }

/// The columns of the x seeds of one event.
struct x_seed_columns {
    float *a, *b, *c, *score;
    uint8_t* hit_count;
    uint16_t* hits;
};

__device__ void store(const x_seed_columns& to, uint32_t place, const x_curve& curve, const x_search& search)
{
    to.a[place] = curve.a;
    to.b[place] = curve.b;
    to.c[place] = curve.c;
    to.score[place] = curve.score;
    to.hit_count[place] = static_cast<uint8_t>(curve.n_hits);
    uint16_t* hits = to.hits + place * n_x_layers;
    hits[x_layer_of(search.first_layer)] = static_cast<uint16_t>(curve.first);
    hits[x_layer_of(search.last_layer)] = static_cast<uint16_t>(curve.last);
    for (uint32_t i = 0; i < n_x_steps; ++i)
        hits[x_layer_of(search.layers[i])] = static_cast<uint16_t>(curve.step_hits[i]);
}

/// What a curve bids for its hits: its score, coarsely, then its number. The lowest bid owns a hit.
__device__ uint32_t bid_of_curve(float score, uint32_t number)
{
    return (__float_as_uint(score) & 0xffff0000u) | number;
}

/// Drop (hit_count = 0) the curves of which more than `max_shared` hits belong to others.
__device__ void drop_clones(const x_seed_columns& seeds, uint32_t n, uint32_t* owner, uint32_t n_hits,
                            uint32_t max_shared)
{
    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) owner[i] = 0xffffffffu;
    block_barrier();
    for (uint32_t seed = threadIdx.x; seed < n; seed += blockDim.x) {
        if (seeds.hit_count[seed] == 0u) continue;
        for (uint32_t k = 0; k < n_x_layers; ++k) {
            const uint32_t hit = seeds.hits[seed * n_x_layers + k];
            if (hit != no_scifi_hit) atomicMin(&owner[hit], bid_of_curve(seeds.score[seed], seed));
        }
    }
    block_barrier();
    for (uint32_t seed = threadIdx.x; seed < n; seed += blockDim.x) {
        if (seeds.hit_count[seed] == 0u) continue;
        uint32_t n_shared = 0;
        for (uint32_t k = 0; k < n_x_layers; ++k) {
            const uint32_t hit = seeds.hits[seed * n_x_layers + k];
            if (hit != no_scifi_hit && owner[hit] != bid_of_curve(seeds.score[seed], seed)) ++n_shared;
        }
        if (n_shared > max_shared) seeds.hit_count[seed] = 0;
    }
    block_barrier();
}

/// Move the curves that are left to the front, in their order. Returns how many they are.
__device__ uint32_t close_gaps(const x_seed_columns& seeds, uint32_t n, uint32_t* sums)
{
    uint32_t n_left = 0;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t from = base + threadIdx.x;
        const bool stays = from < n && seeds.hit_count[from] != 0u;
        float a = 0.f, b = 0.f, c = 0.f, score = 0.f;
        uint32_t hit_count = 0;
        uint16_t hits[n_x_layers] = {};
        if (stays) {
            a = seeds.a[from];
            b = seeds.b[from];
            c = seeds.c[from];
            score = seeds.score[from];
            hit_count = seeds.hit_count[from];
            for (uint32_t k = 0; k < n_x_layers; ++k) hits[k] = seeds.hits[from * n_x_layers + k];
        }
        uint32_t total = 0;
        const uint32_t place = n_left + block_exclusive_count(stays, sums, total);
        block_barrier();  // all have read before others write
        if (stays) {
            seeds.a[place] = a;
            seeds.b[place] = b;
            seeds.c[place] = c;
            seeds.score[place] = score;
            seeds.hit_count[place] = static_cast<uint8_t>(hit_count);
            for (uint32_t k = 0; k < n_x_layers; ++k) seeds.hits[place * n_x_layers + k] = hits[k];
        }
        n_left += total;
    }
    return n_left;
}

}  // namespace hlt

HLT_KERNEL(matching_seed_in_x)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t first = p.seeding_hits.first(event);
    const uint32_t first_seed = p.x_seeds.first(event);
    const uint16_t* zone_offset = p.seeding_hits.zone_offset + event * hlt::scifi_zone_stride;
    const hlt::seeding_hit_view hits{p.seeding_hits.x + first, zone_offset,
                                     p.seeding_hits.bins + event * hlt::seeding_bin_stride};
    uint32_t* owner = p.scratch.owner + first;
    uint8_t* taken = p.scratch.taken + first;
    const hlt::x_seed_columns seeds{p.x_seeds.a + first_seed,         p.x_seeds.b + first_seed,
                                    p.x_seeds.c + first_seed,         p.x_seeds.score + first_seed,
                                    p.x_seeds.hit_count + first_seed, p.x_seeds.hits + first_seed * hlt::n_x_layers};
    __shared__ uint32_t sums[hlt::max_block_size / hlt::warp_size];

    const uint32_t n_hits = zone_offset[hlt::n_scifi_zones];
    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) taken[i] = 0;
    hlt::block_barrier();
    bool crowded[2] = {false, false};
    for (uint32_t zone = 0; zone < hlt::n_scifi_zones; ++zone) {
        const uint32_t n_in_zone = zone_offset[zone + 1u] - zone_offset[zone];
        crowded[zone % 2u] = crowded[zone % 2u] || n_in_zone > p.max_zone_hits;
    }
    uint32_t n = 0;
    bool overflows = crowded[0] || crowded[1];
    for (uint32_t number = 0; number < hlt::n_x_searches; ++number) {
        const hlt::x_search& search = p.seeding_tables->searches[number];
        const uint32_t begin = zone_offset[2u * search.first_layer];
        const uint32_t middle = zone_offset[2u * search.first_layer + 1u];
        const uint32_t end = zone_offset[2u * search.first_layer + 2u];
        for (uint32_t base = begin; base < end; base += blockDim.x) {
            const uint32_t hit = base + threadIdx.x;
            hlt::two_curves best;
            best.n = 0;
            if (hit < end && !crowded[hit < middle ? 0u : 1u]) {
                const hlt::x_pair_search pairs(search, hits, hit < middle ? 0u : 1u,
                                               {p.max_x0, p.max_magnet_x, p.max_chi2, p.missing_hit_penalty});
                pairs.run(hit, taken, number != 0u, best);
            }
            uint32_t total = 0;
            const uint32_t place = n + hlt::block_exclusive_sum(best.n, sums, total);
            for (uint32_t k = 0; k < best.n && place + k < hlt::max_x_seeds; ++k)
                hlt::store(seeds, place + k, best.curves[k], search);
            n += total;
            if (n > hlt::max_x_seeds) {
                n = hlt::max_x_seeds;
                overflows = true;
            }
        }
        hlt::block_barrier();
        hlt::drop_clones(seeds, n, owner, n_hits, p.max_shared_hits);
        for (uint32_t k = threadIdx.x; number == 0u && k < n * hlt::n_x_layers; k += blockDim.x)
            if (seeds.hit_count[k / hlt::n_x_layers] != 0u && seeds.hits[k] != hlt::no_scifi_hit)
                taken[seeds.hits[k]] = 1;
        hlt::block_barrier();
    }
    n = hlt::close_gaps(seeds, n, sums);
    if (threadIdx.x == 0) {
        p.x_seeds.count[event] = n;
        if (overflows) p.events.flags[event] |= hlt::overflow;
    }
}
