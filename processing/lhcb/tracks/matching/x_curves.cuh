// Curves through hits of the x layers in one half of the SciFi tracker, and their selection.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/tracks/matching/seeding_hits.cuh"

namespace hlt {

/// A curve with the hits of its pair and those of the steps.
struct x_curve {
    float score;
    float a, b, c;
    uint32_t first, last;
    uint32_t step_hits[n_x_steps];
    uint32_t n_hits;
};

/// True if the first of two curves of one first hit is better, independent of the order in which they are found.
__device__ bool is_better(const x_curve& one, const x_curve& other)
{
    if (one.score != other.score) return one.score < other.score;
    if (one.last != other.last) return one.last < other.last;
    return one.step_hits[0] < other.step_hits[0];
}

/// True if two curves of a first hit also share the last hit and the hit of the second step: one of them is enough.
__device__ bool are_alike(const x_curve& one, const x_curve& other)
{
    return one.last == other.last && one.step_hits[1] == other.step_hits[1] && one.step_hits[1] != no_scifi_hit;
}

/// The best curves of one hit, the better one first; they are not similar.
struct two_curves {
    x_curve curves[2];
    uint32_t n;
};

__device__ void keep_better(two_curves& best, const x_curve& curve)
{
    const bool beats_first = best.n == 0u || is_better(curve, best.curves[0]);
    if (best.n != 0u && are_alike(curve, best.curves[0])) {
        if (beats_first) best.curves[0] = curve;
        return;
    }
    const bool beats_second = best.n < 2u || is_better(curve, best.curves[1]);
    if (!beats_second) return;
    if (beats_first) {
        best.curves[1] = best.curves[0];
        best.curves[0] = curve;
        best.n = min_of(best.n + 1u, 2u);
    } else {
        best.curves[1] = curve;
        best.n = 2u;
    }
}

/// Number of a layer among the x layers (0 to 5).
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

/// Bid of a curve for its hits: upper bits of its score, then its number. The lowest bid owns a hit.
__device__ uint32_t bid_of_curve(float score, uint32_t number)
{
    return (__float_as_uint(score) & 0xffff0000u) | number;
}

/// Drop (hit_count = 0) curves with more than `max_shared` hits that belong to others.
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

/// Move the remaining curves to the front, in their order. Returns their number.
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
