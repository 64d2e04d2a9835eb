// Hits of the x layers near a track: pairs in a first and a last layer, and the nearest hits in the other four
// (docs/physics/long-tracks.md).
//
// A pair fixes kink and offset of the track, and with them its place in every other layer. Parabolas give the search
// window in a layer from the distances of the pair. They are computed once for a track, from the exact functions at
// three kinks.
#pragma once

#include "lhcb/tracks/forward/hypothesis.cuh"
#include "lhcb/tracks/long/layers.cuh"
#include "lhcb/tracks/long/scifi_zones.cuh"

namespace hlt {

// `Real`: float for one VELO track, or a vector of floats with one track in each lane.

template <typename Real>
struct parabola_of {
    Real a0, a1, a2;

    template <typename Lanes>
    __device__ Lanes operator()(const Lanes& x) const
    {
        return a0 + x * (a1 + x * a2);
    }
};

template <typename Real>
__device__ parabola_of<Real> parabola_through(const Real (&x)[3], const Real (&y)[3])
{
    const Real first = (y[1] - y[0]) / (x[1] - x[0]), second = (y[2] - y[1]) / (x[2] - x[1]);
    const Real a2 = (second - first) / (x[2] - x[0]);
    const Real a1 = first - a2 * (x[0] + x[1]);
    return {y[0] - x[0] * (a1 + x[0] * a2), a1, a2};
}

struct forward_cuts {
    float n_sigma;
    kink_error x_window;
};

/// Remaining limits of the search for a track.
struct forward_budget {
    uint32_t pairs;
    uint32_t candidates;
};

/// A candidate from a pair and hits of other layers: the hit of each layer, or no_scifi_hit.
struct x_candidate {
    uint16_t hits[n_scifi_layers];
    uint32_t n_hits;
    float kink;
    float offset;  // mm, of x from the parametrisation, at any z
};

/// The x layers of a seed: a first and a last one, those between them and those beside them.
struct layer_seed {
    uint8_t first, last, others[4];
};

constexpr uint32_t n_seeds = 2;

__device__ layer_seed seed_layers(uint32_t seed)
{
    return seed == 0u ? layer_seed{0, 8, {4, 7, 3, 11}} : layer_seed{3, 11, {4, 7, 0, 8}};
}

constexpr uint32_t n_other_x_layers = 4;

/// Windows for the x hits of a track with a hypothesis, from a pair of hits in the first and the last layer of a seed.
template <typename Real>
struct x_seed_of {
    layer_seed layers;
    Real z_first;
    Real begin, end;                     // of x in the first layer
    Real straight_first, straight_last;  // x of a track that does not bend
    parabola_of<Real> ratio;  // its additional bend in the last layer, as a function of the distance in the first
    Real to_tolerance, per_dx;
    parabola_of<Real> kink_per_rise;  // rise: from the first to the last layer, minus that of the straight track
    Real straight[n_other_x_layers];
    parabola_of<Real> share[n_other_x_layers];  // of the rise, up to the layer; of the rise

    template <typename Bend>
    __device__ x_seed_of(uint32_t seed, const long_track_parameters& parameters, const velo_line_of<Real>& line,
                         const Bend& bend, const forward_hypothesis_of<Real>& where, const forward_cuts& cuts)
        : layers(seed_layers(seed))
    {
        const auto z_of = [&](uint32_t layer) -> Real {
            const Real z = Real{} + parameters.layer_z[layer];
            return z + parameters.layer_dz_dy[layer] * (line.y_at(z) + where.shift);
        };
        const bend_functions<Real> nodes[3] = {bend.at(where.low), bend.at(Real(0.5f * (where.low + where.high))),
                                               bend.at(where.high)};
        z_first = z_of(layers.first);
        const Real z_last = z_of(layers.last);
        Real lever[3], difference[3], dx_at[3], rise_at[3], y[3];
        for (uint32_t i = 0; i < 3u; ++i) {
            lever[i] = nodes[i].lever(z_first) + where.offset_per_kink;
            difference[i] = nodes[i].lever(z_last) - nodes[i].lever(z_first);
            dx_at[i] = nodes[i].kink * lever[i];
            rise_at[i] = nodes[i].kink * difference[i];
            y[i] = (lever[i] + difference[i]) / lever[i];
        }
        ratio = parabola_through(dx_at, y);
        for (uint32_t i = 0; i < 3u; ++i) y[i] = 1.f / difference[i];
        kink_per_rise = parabola_through(rise_at, y);
#pragma unroll 1
        for (uint32_t k = 0; k < n_other_x_layers; ++k) {
            const Real z = z_of(layers.others[k]);
            straight[k] = line.x_at(z) + where.offset;
            for (uint32_t i = 0; i < 3u; ++i) y[i] = (nodes[i].lever(z) - nodes[i].lever(z_first)) / difference[i];
            share[k] = parabola_through(rise_at, y);
        }
        straight_first = line.x_at(z_first) + where.offset;
        straight_last = line.x_at(z_last) + where.offset;
        to_tolerance = cuts.n_sigma * difference[1] / lever[1];
        per_dx = where.sigma_offset.per_kink / lever[1];
        begin = straight_first + dx_at[0] - cuts.n_sigma * where.sigma_offset(where.low);
        end = straight_first + dx_at[2] + cuts.n_sigma * where.sigma_offset(where.high);
    }

    /// Expected place of the track of a pair in the k-th of the other layers.
    template <typename Pair>
    __device__ Real place(uint32_t k, const Pair& at) const
    {
        return straight[k] + at.dx + at.rise * share[k](at.rise);
    }
};

using x_seed = x_seed_of<float>;

/// Call `examine(first, last)` for each pair of a hit in the first and one in the last layer of a seed, until it
/// returns false. The window of the last hits ascends with the first hit.
template <typename Examine>
__device__ void find_pairs(const scifi_event& hits, const x_seed& seed, const forward_hypothesis& where, uint32_t half,
                           const Examine& examine)
{
    const scifi_zone first_zone(hits, seed.layers.first, half), last_zone(hits, seed.layers.last, half);
    const uint32_t begin = first_zone.from(seed.begin), first_end = first_zone.from(seed.end), end = last_zone.end();
    uint32_t last = end;
    for (uint32_t first = begin; first < first_end; ++first) {
        const float dx = hits.x[first] - seed.straight_first;
        const float expected = seed.straight_last + dx * seed.ratio(dx);
        const float tolerance = seed.to_tolerance * (where.sigma_offset.constant + seed.per_dx * absolute(dx));
        const float low = expected - tolerance, high = expected + tolerance;
        if (first == begin) last = last_zone.from(low);
        while (last < end && hits.x[last] < low) ++last;
        for (uint32_t j = last; j < end && hits.x[j] < high; ++j)
            if (!examine(first, j)) return;
    }
}

/// A pair of hits that begins a track.
struct x_pair {
    float dx;    // mm, of the first hit from the straight track
    float rise;  // mm
    float kink;

    __device__ x_pair(const scifi_event& hits, const x_seed& seed, uint32_t first, uint32_t last)
        : dx(hits.x[first] - seed.straight_first),
          rise(hits.x[last] - seed.straight_last - dx),
          kink(rise * seed.kink_per_rise(rise))
    {
    }
};

/// Find the x hits of a track with a hypothesis and call `complete(candidate)` for each set of at least four layers.
/// `n_stereo(kink, offset)`: number of stereo layers that may have hits; with the x hits they must reach `min_hits`.
template <typename CountStereo, typename Complete>
__device__ void find_x_hits(const x_seed& seed, const scifi_event& hits, const bend_in_memory& bend,
                            const forward_hypothesis& where, uint32_t half, const forward_cuts& cuts, uint32_t min_hits,
                            forward_budget& left, const CountStereo& n_stereo, const Complete& complete)
{
    const layer_seed layers = seed.layers;
    // False if the track may not examine more pairs.
    find_pairs(hits, seed, where, half, [&](uint32_t first, uint32_t last) {
        if (left.pairs == 0u) return false;
        --left.pairs;
        // 1. The other x layers must be able to have enough hits, and one of the layers between is needed.
        const x_pair at(hits, seed, first, last);
        const float most = cuts.x_window(at.kink);
        uint32_t n_layers = 2, n_between = 0;
#pragma unroll 1
        for (uint32_t k = 0; k < n_other_x_layers; ++k) {
            n_layers += may_have_hit(hits, 2u * layers.others[k] + half, seed.place(k, at), most) ? 1u : 0u;
            if (k == 1u) n_between = n_layers - 2u;
        }
        if (n_between == 0u || n_layers < 4u || !(where.low <= at.kink) || !(at.kink <= where.high))
            return left.pairs != 0u;
        // 2. So must the stereo layers.
        const float offset = at.dx - at.kink * bend.at(at.kink).lever(seed.z_first) + where.offset;
        if (n_layers + n_stereo(at.kink, offset) < min_hits) return left.pairs != 0u;
        // 3. Hits of the other x layers.
        if (left.candidates == 0u) return false;
        --left.candidates;
        uint32_t found[n_other_x_layers];
        uint32_t n_hits = 2;
#pragma unroll 1
        for (uint32_t k = 0; k < n_other_x_layers; ++k) {
            found[k] = scifi_zone(hits, layers.others[k], half).nearest(seed.place(k, at), most);
            n_hits += found[k] != no_scifi_hit;
        }
        // The second seed finds the candidates of the first one again.
        if (n_hits < 4u || (found[0] == no_scifi_hit && found[1] == no_scifi_hit) ||
            (layers.first != 0u && found[2] != no_scifi_hit && found[3] != no_scifi_hit))
            return left.pairs != 0u;
        x_candidate candidate;
        for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) candidate.hits[layer] = no_scifi_hit;
        candidate.hits[layers.first] = static_cast<uint16_t>(first);
        candidate.hits[layers.last] = static_cast<uint16_t>(last);
        for (uint32_t k = 0; k < n_other_x_layers; ++k)
            candidate.hits[layers.others[k]] = static_cast<uint16_t>(found[k]);
        candidate.n_hits = n_hits;
        candidate.kink = at.kink;
        candidate.offset = offset;
        complete(candidate);
        return left.pairs != 0u;
    });
}

}  // namespace hlt
