// UT hits between a VELO track and its SciFi seed.
//
// The kick gives the place in each layer; scattering before the UT moves all places alike. Of the hits around the
// expected places, the set with most layers at a common displacement is taken.
#pragma once

#include "framework/device/platform.cuh"
#include "lhcb/tracks/long/bend.cuh"
#include "lhcb/tracks/long/generated/long_types.h"
#include "lhcb/tracks/matching/seed_fit.cuh"
#include "lhcb/ut/generated/ut_types.h"

namespace hlt {

static_assert(n_all_ut_bins == n_long_ut_layers * n_ut_bins);
constexpr float ut_bin_width = 7.f;  // mm
constexpr uint32_t max_in_ut_bin = 64;
constexpr uint32_t max_ut_candidates = 16;  // of each layer
constexpr uint32_t max_near_in_ut = 64;     // hits of a layer whose y is compared

#if HLT_ON_GPU
constexpr uint32_t ut_lanes = 1;
#else
constexpr uint32_t ut_lanes =
    ut_hit_padding;  // number of hits compared at once; hits behind the last one may be loaded
#endif

/// The layer of a hit, from its z.
__device__ uint32_t ut_layer_of(float z) { return z < 2350.f ? 0u : z < 2485.f ? 1u : z < 2620.f ? 2u : 3u; }

__device__ uint32_t ut_bin_of(uint32_t layer, float x)
{
    const float bin = (x + 0.5f * ut_bin_width * static_cast<float>(n_ut_bins)) * (1.f / ut_bin_width);
    const float last = static_cast<float>(n_ut_bins - 1u);
    return layer * n_ut_bins + (bin > 0.f ? static_cast<uint32_t>(min_of(bin, last)) : 0u);
}

/// The UT hits of one event, and their order by bins of x at y = 0.
struct binned_ut_hits {
    const float *x, *z, *y_begin, *y_end;
    uint16_t* order;
    float *ordered_x, *ordered_z;
    uint32_t* bin_begin;  // n_all_ut_bins + 1
};

/// Fill order, ordered_x, ordered_z and bin_begin. Hits of a bin ascend; hits of bins with more than max_in_ut_bin hits
/// are moved out of reach of every track.
__device__ void bin_ut_hits(const binned_ut_hits& hits, uint32_t n, uint32_t* sums)
{
    for (uint32_t bin = threadIdx.x; bin <= n_all_ut_bins; bin += blockDim.x) hits.bin_begin[bin] = 0;
    block_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        atomicAdd(&hits.bin_begin[ut_bin_of(ut_layer_of(hits.z[i]), hits.x[i])], 1u);
    block_barrier();
    // The value is now the end of each bin; filling the bin from behind turns it into the start.
    uint32_t before = 0;
    for (uint32_t base = 0; base < n_all_ut_bins; base += blockDim.x) {
        const uint32_t bin = base + threadIdx.x;
        const uint32_t count = bin < n_all_ut_bins ? hits.bin_begin[bin] : 0u;
        uint32_t total = 0;
        const uint32_t first = block_exclusive_sum(count, sums, total);
        if (bin < n_all_ut_bins) hits.bin_begin[bin] = before + first + count;
        before += total;
    }
    if (threadIdx.x == 0) hits.bin_begin[n_all_ut_bins] = n;
    block_barrier();
    // From the last hit on, so that a single thread keeps them in order.
    for (uint32_t behind = threadIdx.x; behind < n; behind += blockDim.x) {
        const uint32_t i = n - 1u - behind;
        const uint32_t bin = ut_bin_of(ut_layer_of(hits.z[i]), hits.x[i]);
        hits.order[atomicAdd(&hits.bin_begin[bin], 0xffffffffu) - 1u] = static_cast<uint16_t>(i);
    }
    block_barrier();
    // Several threads fill a bin in any order.
    for (uint32_t bin = threadIdx.x; bin < n_all_ut_bins && blockDim.x > 1u; bin += blockDim.x) {
        const uint32_t begin = hits.bin_begin[bin], end = hits.bin_begin[bin + 1u];
        if (end - begin > max_in_ut_bin) continue;
        for (uint32_t i = begin + 1u; i < end; ++i) {
            const uint16_t hit = hits.order[i];
            uint32_t place = i;
            for (; place > begin && hits.order[place - 1u] > hit; --place) hits.order[place] = hits.order[place - 1u];
            hits.order[place] = hit;
        }
    }
    block_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        hits.ordered_x[i] = hits.x[hits.order[i]];
        hits.ordered_z[i] = hits.z[hits.order[i]];
    }
    block_barrier();
    for (uint32_t bin = threadIdx.x; bin < n_all_ut_bins; bin += blockDim.x) {
        const uint32_t begin = hits.bin_begin[bin], end = hits.bin_begin[bin + 1u];
        for (uint32_t i = begin; i < end && end - begin > max_in_ut_bin; ++i) hits.ordered_x[i] = 1e6f;
    }
    block_barrier();
}

/// UT hits of a track.
struct ut_confirmation {
    uint32_t n_layers;   // with a hit
    uint32_t n_crossed;  // layers that the track crosses inside their sensors
    float chi2;
    uint16_t hits[n_long_ut_layers];
};

/// The hits of a layer near the expected place, with room for one more vector of hits.
struct ut_candidates {
    float displacement[max_ut_candidates + ut_lanes];
    uint16_t hit[max_ut_candidates + ut_lanes];
    uint32_t n;
};

/// Growth of a displacement before the UT through its layers, relative to its middle.
__device__ float growth_at(float z)
{
    constexpr float middle_z = 2485.f, growth = 0.065f / 150.f;  // 1/mm
    return 1.f + growth * (z - middle_z);
}

__device__ ut_confirmation confirm_in_ut(const binned_ut_hits& hits, const velo_line& line, float kick)
{
    // z in mm, displacement in mm of a track per kick (median of real tracks), and the stereo angles.
    constexpr float layer_z[n_long_ut_layers] = {2327.5f, 2372.5f, 2597.5f, 2642.5f};
    constexpr float displacement_of_kick[n_long_ut_layers] = {13.08f, 13.82f, 19.10f, 20.34f};
    constexpr float dx_dy[n_long_ut_layers] = {0.f, 0.0874887f, -0.0874887f, 0.f};
    constexpr float hole = 36.f, half_width = 760.f, half_height = 660.f;
    constexpr float sensor_overlap = 2.f;  // mm in y
    constexpr float layer_depth = 10.f;    // mm: distance of sensors from the middle of their layer
    const float size = absolute(kick);
    const float error = 0.35f + 6.f * size;
    const float spread = 0.1f + 0.6f * size;  // of the layers around a common displacement
    const float window = 4.f * error;

    ut_confirmation result{0, 0, 0.f, {}};
    ut_candidates candidates[n_long_ut_layers];
    for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer) {
        ut_candidates& of_layer = candidates[layer];
        of_layer.n = 0;
        result.hits[layer] = static_cast<uint16_t>(no_ut_hit);
        const float distance = layer_z[layer] - z_velo_end;
        const float of_kick = displacement_of_kick[layer] * kick, angle = dx_dy[layer];
        const float x = line.x + line.tx * distance + of_kick;
        const float y = line.y + line.ty * distance;
        const bool in_hole = absolute(x) < hole && absolute(y) < hole;
        if (!in_hole && absolute(x) < half_width && absolute(y) < half_height) ++result.n_crossed;
        const float reach = window + layer_depth * absolute(line.tx);
        const float at_strip = x - angle * y;
        const uint32_t end = hits.bin_begin[ut_bin_of(layer, at_strip + reach) + 1u];
        uint32_t near[max_near_in_ut + ut_lanes];
        uint32_t n_near = 0;
        for (uint32_t i = hits.bin_begin[ut_bin_of(layer, at_strip - reach)]; i < end; i += ut_lanes) {
            uint32_t is_near[ut_lanes];
            for (uint32_t lane = 0; lane < ut_lanes; ++lane) {
                const float to_hit = hits.ordered_z[i + lane] - z_velo_end;
                const float residual = hits.ordered_x[i + lane] + angle * (line.y + line.ty * to_hit) -
                                       (line.x + line.tx * to_hit) - of_kick;
                is_near[lane] =
                    static_cast<uint32_t>(absolute(residual) < window * growth_at(hits.ordered_z[i + lane])) &
                    static_cast<uint32_t>(i + lane < end);
            }
            for (uint32_t lane = 0; lane < ut_lanes; ++lane) {
                near[n_near] = i + lane;
                n_near += is_near[lane];
            }
            if (n_near >= max_near_in_ut) break;
        }
        n_near = min_of(n_near, max_near_in_ut);
        for (uint32_t k = 0; k < n_near; ++k) {
            const uint32_t hit = hits.order[near[k]];
            const float to_hit = hits.z[hit] - z_velo_end, y_hit = line.y + line.ty * to_hit;
            const float residual = hits.x[hit] + angle * y_hit - (line.x + line.tx * to_hit) - of_kick;
            of_layer.displacement[of_layer.n] = residual / growth_at(hits.z[hit]);
            of_layer.hit[of_layer.n] = static_cast<uint16_t>(hit);
            const uint32_t covers = static_cast<uint32_t>(y_hit >= hits.y_begin[hit] - sensor_overlap) &
                                    static_cast<uint32_t>(y_hit <= hits.y_end[hit] + sensor_overlap);
            of_layer.n += covers & static_cast<uint32_t>(of_layer.n < max_ut_candidates);
        }
    }
    // Three layers include one of the first two; four layers include the first. Several candidates are tried together.
    const float error_weight = 1.f / (error * error), spread_weight = 1.f / (spread * spread);
    for (uint32_t from = 0; from < 2u && result.n_layers < n_long_ut_layers; ++from) {
        for (uint32_t first = 0; first < candidates[from].n; first += ut_lanes) {
            float common[ut_lanes], sum[ut_lanes], chi2[ut_lanes];
            float displacements[n_long_ut_layers][ut_lanes];
            uint32_t chosen[n_long_ut_layers][ut_lanes], n[ut_lanes];
            for (uint32_t lane = 0; lane < ut_lanes; ++lane) {
                common[lane] = candidates[from].displacement[first + lane];
                n[lane] = 0;
                sum[lane] = 0.f;
            }
            for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer) {
                float nearest[ut_lanes];
                for (uint32_t lane = 0; lane < ut_lanes; ++lane) {
                    nearest[lane] = 2.f * spread;
                    chosen[layer][lane] = no_ut_hit;
                    displacements[layer][lane] = 0.f;
                }
                for (uint32_t j = 0; j < candidates[layer].n; ++j) {
                    const float other = candidates[layer].displacement[j];
                    for (uint32_t lane = 0; lane < ut_lanes; ++lane) {
                        const float apart = absolute(other - common[lane]);
                        const bool is_nearer = apart < nearest[lane];
                        nearest[lane] = is_nearer ? apart : nearest[lane];
                        chosen[layer][lane] = is_nearer ? j : chosen[layer][lane];
                        displacements[layer][lane] = is_nearer ? other : displacements[layer][lane];
                    }
                }
                for (uint32_t lane = 0; lane < ut_lanes; ++lane) {
                    n[lane] += chosen[layer][lane] != no_ut_hit ? 1u : 0u;
                    sum[lane] += displacements[layer][lane];
                }
            }
            for (uint32_t lane = 0; lane < ut_lanes; ++lane) {
                const float mean = sum[lane] / static_cast<float>(static_cast<int32_t>(n[lane]));
                chi2[lane] = mean * mean * error_weight;
                for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer) {
                    const float apart = chosen[layer][lane] != no_ut_hit ? displacements[layer][lane] - mean : 0.f;
                    chi2[lane] += apart * apart * spread_weight;
                }
            }
            for (uint32_t lane = 0; lane < min_of(ut_lanes, candidates[from].n - first); ++lane) {
                if (n[lane] < result.n_layers || (n[lane] == result.n_layers && !(chi2[lane] < result.chi2))) continue;
                result.n_layers = n[lane];
                result.chi2 = chi2[lane];
                for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer) {
                    const uint32_t j = chosen[layer][lane];
                    result.hits[layer] = j == no_ut_hit ? static_cast<uint16_t>(no_ut_hit) : candidates[layer].hit[j];
                }
            }
        }
    }
    return result;
}

}  // namespace hlt
