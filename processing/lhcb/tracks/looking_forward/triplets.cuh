// Triplets of x hits of a VELO-UT track (docs/physics/looking-forward.md): the candidates of each layer, and for each
// middle hit the first and the last hit with the smallest chi2 (equation 6.1 of the thesis).
//
// The threads of a block share one track. A pair of a first and a last hit has a part of chi2 that no middle hit
// changes (equation 6.2): the threads compute it for 16 x 16 hits, then each middle hit goes through this tile.
#pragma once

#include "lhcb/tracks/looking_forward/half_precision.cuh"
#include "lhcb/tracks/looking_forward/prediction.cuh"

namespace hlt {

constexpr uint32_t n_triplet_layers = n_scifi_x_layers - 2u;  // first layers of triplets
constexpr uint32_t n_middle_hits = n_triplet_layers * max_x_hits_of_layer;
constexpr uint32_t tried_words = max_x_hits_tried / 32u;
constexpr uint32_t no_triplet = 0xffu;
constexpr float infinite_chi2 = 3e38f;

/// The window of a track in an x layer, and where a hit in it has a partner in the stereo layer beside it.
struct x_layer_window {
    float z;
    float straight;                                  // x of a track that does not bend, at z
    float expected;                                  // x of the track
    float partner, partner_per_x, partner_distance;  // x of the partner for the expected x; its change; the tolerance
    uint32_t begin, middle, end;                     // hits
};

/// What equation 6.1 needs of a track and three neighbouring layers, the first of which is `k`.
struct triplet_form {
    float ratio;          // dz2 / dz1
    float ratio_of_pair;  // in the product with x0
    float bend_1;         // extrap_1 squared, mm^2
    float bend_2;         // extrap_2, mm
    float origin[3];      // of x, in each layer
    bool half_precision;

    __device__ float operand(float x) const { return half_precision ? rounded_to_half(x) : x; }

    /// Equation 6.2 as the product of a row (1, -x0, x0) and a column (x2, 1, ratio), plus -extrap_2.
    __device__ float of_pair(float x0, float x2) const
    {
        const float first = operand(x0 - origin[0]);
        return operand(x2 - origin[2]) - first + first * ratio_of_pair - bend_2;
    }
};

/// One track in shared memory.
struct x_triplet_search {
    ut_prediction track;
    x_layer_window windows[n_scifi_x_layers];
    uint32_t accepted[n_scifi_x_layers][tried_words];  // one bit for each hit that is tried
    uint32_t n_candidates[n_scifi_x_layers];
    float x[n_scifi_x_layers][max_x_hits_of_layer];
    uint16_t hits[n_scifi_x_layers][max_x_hits_of_layer];
    triplet_form forms[n_triplet_layers];
    float tiles[n_triplet_layers][triplet_tile * triplet_tile];
    float chi2[n_middle_hits];       // of the best triplet of each middle hit
    uint16_t pair[n_middle_hits];    // its first hit, and 32 times its last one
    uint8_t kept[max_hit_triplets];  // middle hits by chi2, then no_triplet
    // Sets of x hits from these triplets: candidates of each layer, or no_triplet.
    uint8_t set_hits[max_hit_triplets][n_scifi_x_layers];
    uint8_t set_size[max_hit_triplets];
    float spread[max_hit_triplets];
};

/// Step 1: the windows of the six x layers, one for each thread.
template <typename Parameters>
__device__ void search_initial_windows(const Parameters& p, const scifi_event& hits, x_triplet_search& search)
{
    const long_track_parameters& parameters = *p.long_track_parameters;
    const ut_prediction& track = search.track;
    const stereo_cuts stereo{p.stereo_margin, 0.f};
    if (threadIdx.x >= n_scifi_x_layers) return;
    // Before the loop: in it, the compiler for GPUs spills registers.
    const bend_in_memory of_track{track_bend(parameters, track.line)};
    const bend_at_kink bend = of_track.at(track.kink());
    for (uint32_t i = threadIdx.x; i < n_scifi_x_layers; i += blockDim.x) {
        const uint32_t layer = x_layer(i), partner = stereo_partner(layer);
        x_layer_window window;
        window.z = z_in_layer(parameters, track, layer);
        window.straight = track.line.x_at(window.z) + track.offset;
        const float lever = bend.lever(window.z), change = bend.kink * lever;
        window.expected = window.straight + change;
        expect_stereo_hit(track.line, bend, track.where, stereo, track.offset, parameters.layer_z[partner],
                          parameters.layer_dx_dy[partner], parameters.layer_dz_dy[partner], window.partner,
                          window.partner_distance);
        window.partner_per_x = bend.lever(z_in_layer(parameters, track, partner)) / lever;
        const float half_width = p.x_window + p.x_window_per_bend * absolute(change);
        const scifi_zone zone(hits, layer, track.half);
        window.begin = zone.from(window.expected - half_width);
        // The order holds for hits that do not ascend, too.
        window.middle = max_of(window.begin, zone.from(window.expected));
        window.end = max_of(window.middle, zone.from(window.expected + half_width));
        search.windows[i] = window;
    }
}

/// The hit that is tried after `turn` others: from the middle outwards, on alternating sides.
__device__ bool hit_of_turn(const x_layer_window& window, uint32_t turn, uint32_t& hit)
{
    const uint32_t away = turn / 2u;
    hit = turn % 2u == 0u ? window.middle + away : window.middle - 1u - away;
    return turn % 2u == 0u ? hit < window.end : away < window.middle - window.begin;
}

__device__ uint32_t n_turns(const x_layer_window& window)
{
    const uint32_t most = max_of(window.end - window.middle, window.middle - window.begin);
    return min_of(2u * most, max_x_hits_tried);
}

/// Step 2: the first max_x_hits_of_layer hits of each layer with a partner in the stereo layer beside it.
__device__ void collect_candidates(const scifi_event& hits, x_triplet_search& search)
{
    for (uint32_t i = threadIdx.x; i < n_scifi_x_layers * tried_words; i += blockDim.x)
        search.accepted[i / tried_words][i % tried_words] = 0;
    block_barrier();
    for (uint32_t k = 0; k < n_scifi_x_layers; ++k) {
        const x_layer_window& window = search.windows[k];
        const uint32_t partner = stereo_partner(x_layer(k)), n = n_turns(window);
        const scifi_zone zone(hits, partner, search.track.half);
        for (uint32_t turn = threadIdx.x; turn < n; turn += blockDim.x) {
            uint32_t hit;
            if (!hit_of_turn(window, turn, hit)) continue;
            const float expected = window.partner + (hits.x[hit] - window.expected) * window.partner_per_x;
            if (may_have_hit(hits, 2u * partner + search.track.half, expected, window.partner_distance) &&
                zone.nearest(expected, window.partner_distance) != no_scifi_hit)
                atomicOr(&search.accepted[k][turn / 32u], 1u << turn % 32u);
        }
    }
    block_barrier();
    for (uint32_t k = 0; k < n_scifi_x_layers; ++k) {
        const x_layer_window& window = search.windows[k];
        for (uint32_t word = threadIdx.x; word < tried_words; word += blockDim.x) {
            uint32_t place = 0;
            for (uint32_t before = 0; before < word; ++before)
                place += static_cast<uint32_t>(__popc(search.accepted[k][before]));
            uint32_t bits = search.accepted[k][word];
            for (; bits != 0u && place < max_x_hits_of_layer; bits &= bits - 1u, ++place) {
                uint32_t hit;
                hit_of_turn(window, 32u * word + static_cast<uint32_t>(__ffs(static_cast<int>(bits))) - 1u, hit);
                search.hits[k][place] = static_cast<uint16_t>(hit);
                search.x[k][place] = hits.x[hit];
            }
            if (word + 1u == tried_words) search.n_candidates[k] = min_of(place, max_x_hits_of_layer);
        }
    }
    block_barrier();
}

/// `form`: 0 single precision, 1 operands of half precision, 2 the same with coordinates relative to the line through
/// the middles of the windows. chi2 does not change if a function linear in z is subtracted from all x.
__device__ triplet_form form_of_triplets(const x_triplet_search& search, uint32_t k, float curvature, uint32_t form)
{
    const x_layer_window* const windows = search.windows + k;
    const float dz1 = windows[1].z - windows[0].z, dz2 = windows[2].z - windows[0].z;
    triplet_form made;
    const float of_track = curvature * search.track.s;
    const float bend_1 = of_track * dz1 * dz1;
    made.half_precision = form != 0u;
    made.ratio = dz2 / dz1;
    made.ratio_of_pair = made.operand(made.ratio);
    made.bend_1 = bend_1 * bend_1;
    made.bend_2 = of_track * dz2 * dz2;
    for (uint32_t i = 0; i < 3u; ++i) made.origin[i] = 0.f;
    if (form == 2u) {
        made.ratio = made.ratio_of_pair;
        made.origin[0] = windows[0].expected;
        made.origin[2] = windows[2].expected;
        made.origin[1] = made.origin[0] + (made.origin[2] - made.origin[0]) / made.ratio;
    }
    return made;
}

/// The smallest chi2 of a middle hit with the pairs of a tile (equation 6.3), and the place of the pair. Of equal pairs
/// the first row, then the first column. Columns are independent, so that a compiler for a CPU puts them in lanes.
__device__ float best_of_tile(const float* tile, uint32_t n_rows, float bend_1, float of_middle, uint32_t& pair)
{
    float smallest[triplet_tile];
    uint32_t rows[triplet_tile];
    for (uint32_t column = 0; column < triplet_tile; ++column) {
        smallest[column] = infinite_chi2;
        rows[column] = 0;
    }
#pragma unroll 1
    for (uint32_t row = 0; row < n_rows; ++row) {
        for (uint32_t column = 0; column < triplet_tile; ++column) {
            const float distance = tile[row * triplet_tile + column] - of_middle;
            const float chi2 = bend_1 + distance * distance;
            const bool is_smaller = chi2 < smallest[column];
            smallest[column] = is_smaller ? chi2 : smallest[column];
            rows[column] = is_smaller ? row : rows[column];
        }
    }
    float best = infinite_chi2;
    uint32_t best_row = 0;
    pair = 0;
    for (uint32_t column = 0; column < triplet_tile; ++column) {
        if (!(smallest[column] < best || (smallest[column] == best && rows[column] < best_row))) continue;
        best = smallest[column];
        best_row = rows[column];
        pair = best_row * triplet_tile + column;
    }
    return best;
}

/// Step 3: for each middle hit the first and last hit with the smallest chi2.
__device__ void seed_triplets(float curvature, uint32_t form, x_triplet_search& search)
{
    for (uint32_t i = threadIdx.x; i < n_middle_hits; i += blockDim.x) search.chi2[i] = infinite_chi2;
    for (uint32_t k = threadIdx.x; k < n_triplet_layers; k += blockDim.x)
        search.forms[k] = form_of_triplets(search, k, curvature, form);
    block_barrier();
    constexpr uint32_t n_tiles = max_x_hits_of_layer / triplet_tile;
#pragma unroll 1
    for (uint32_t tile = 0; tile < n_tiles * n_tiles; ++tile) {
        const uint32_t first = tile / n_tiles * triplet_tile, last = tile % n_tiles * triplet_tile;
#pragma unroll 1
        for (uint32_t k = 0; k < n_triplet_layers; ++k) {
            const uint32_t n_first = search.n_candidates[k], n_last = search.n_candidates[k + 2u];
            if (first >= n_first || last >= n_last || search.n_candidates[k + 1u] == 0u) continue;
            const uint32_t n_rows = min_of(n_first - first, triplet_tile);
            const uint32_t n_columns = min_of(n_last - last, triplet_tile);
            const triplet_form& of = search.forms[k];
            for (uint32_t i = threadIdx.x; i < n_rows * triplet_tile; i += blockDim.x) {
                const uint32_t row = i / triplet_tile, column = i % triplet_tile;
                search.tiles[k][i] = column < n_columns
                                         ? of.of_pair(search.x[k][first + row], search.x[k + 2u][last + column])
                                         : infinite_chi2;
            }
        }
        block_barrier();
        for (uint32_t i = threadIdx.x; i < n_middle_hits; i += blockDim.x) {
            const uint32_t k = i / max_x_hits_of_layer, middle = i % max_x_hits_of_layer;
            const uint32_t n_first = search.n_candidates[k];
            if (middle >= search.n_candidates[k + 1u] || first >= n_first || last >= search.n_candidates[k + 2u])
                continue;
            const triplet_form& of = search.forms[k];
            const float of_middle = (search.x[k + 1u][middle] - of.origin[1]) * of.ratio;
            uint32_t pair;
            const float chi2 =
                best_of_tile(search.tiles[k], min_of(n_first - first, triplet_tile), of.bend_1, of_middle, pair);
            if (!(chi2 < search.chi2[i])) continue;
            search.chi2[i] = chi2;
            search.pair[i] =
                static_cast<uint16_t>(first + pair / triplet_tile + max_x_hits_of_layer * (last + pair % triplet_tile));
        }
        block_barrier();
    }
}

/// Step 4: the n_kept triplets with the smallest chi2 below max_chi2, in this order; of equal ones the first.
__device__ void keep_best_triplets(uint32_t n_kept, float max_chi2, x_triplet_search& search)
{
    for (uint32_t i = threadIdx.x; i < n_kept; i += blockDim.x) search.kept[i] = static_cast<uint8_t>(no_triplet);
    block_barrier();
    for (uint32_t i = threadIdx.x; i < n_middle_hits; i += blockDim.x) {
        const float chi2 = search.chi2[i];
        if (!(chi2 < max_chi2)) continue;
        uint32_t n_before = 0;
        for (uint32_t other = 0; other < n_middle_hits; ++other)
            n_before += search.chi2[other] < chi2 || (search.chi2[other] == chi2 && other < i);
        if (n_before < n_kept) search.kept[n_before] = static_cast<uint8_t>(i);
    }
    block_barrier();
}

}  // namespace hlt
