// Hits in the UT on the way from a VELO track to its SciFi seed.
//
// The kick gives the place in each layer; scattering before moves all of them alike. Of the hits around the expected
// places those are taken that have most layers at one displacement.
#pragma once

#include "framework/device/platform.cuh"
#include "lhcb/long_tracks/bend.cuh"
#include "lhcb/long_tracks/generated/long_types.h"
#include "lhcb/matching/seed_fit.cuh"
#include "lhcb/ut/generated/ut_types.h"

namespace hlt {

constexpr uint32_t n_ut_bins = 128;  // of each layer
constexpr uint32_t n_all_ut_bins = n_long_ut_layers * n_ut_bins;
constexpr float ut_bin_width = 14.f;  // mm
constexpr uint32_t max_in_ut_bin = 64;
constexpr uint32_t max_ut_candidates = 16;  // of each layer

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
constexpr uint32_t ut_lanes = 1;
#else
constexpr uint32_t ut_lanes = ut_hit_padding;  // as many are looked at together; those behind the last hit may be read
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

/// Fill order, ordered_x, ordered_z and bin_begin. Hits of a bin ascend; those of bins with more than max_in_ut_bin
/// hits are moved to where no track goes.
__device__ void bin_ut_hits(const binned_ut_hits& hits, uint32_t n, uint32_t* sums)
{
    for (uint32_t bin = threadIdx.x; bin <= n_all_ut_bins; bin += blockDim.x) hits.bin_begin[bin] = 0;
    block_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        atomicAdd(&hits.bin_begin[ut_bin_of(ut_layer_of(hits.z[i]), hits.x[i])], 1u);
    block_barrier();
    // Now the end of each bin; filling it from behind leaves its begin.
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
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        const uint32_t bin = ut_bin_of(ut_layer_of(hits.z[i]), hits.x[i]);
        hits.order[atomicAdd(&hits.bin_begin[bin], 0xffffffffu) - 1u] = static_cast<uint16_t>(i);
    }
    block_barrier();
    for (uint32_t bin = threadIdx.x; bin < n_all_ut_bins; bin += blockDim.x) {
        const uint32_t begin = hits.bin_begin[bin], end = hits.bin_begin[bin + 1u];
        const bool crowded = end - begin > max_in_ut_bin;
        for (uint32_t i = begin + 1u; i < end && !crowded; ++i) {
            const uint16_t hit = hits.order[i];
            uint32_t place = i;
            for (; place > begin && hits.order[place - 1u] > hit; --place) hits.order[place] = hits.order[place - 1u];
            hits.order[place] = hit;
        }
        for (uint32_t i = begin; i < end; ++i) {
            hits.ordered_x[i] = crowded ? 1e6f : hits.x[hits.order[i]];
            hits.ordered_z[i] = hits.z[hits.order[i]];
        }
    }
    block_barrier();
}

/// What the UT says of a track.
struct ut_confirmation {
    uint32_t n_layers;   // with a hit
    uint32_t n_crossed;  // layers that the track crosses where they have sensors
    float chi2;
    uint16_t hits[n_long_ut_layers];
};

/// A hit near the expected place.
struct ut_candidate {
    float displacement;
    uint16_t hit;
};

/// How a displacement before the UT grows through it, relative to its middle.
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
    constexpr float layer_depth = 10.f;    // mm: how far sensors are from the middle of their layer
    const float size = absolute(kick);
    const float error = 0.35f + 6.f * size;
    const float spread = 0.1f + 0.6f * size;  // of the layers around a common displacement
    const float window = 4.f * error;

    ut_confirmation result{0, 0, 0.f, {}};
    ut_candidate candidates[n_long_ut_layers][max_ut_candidates];
    uint32_t n_candidates[n_long_ut_layers];
    for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer) {
        result.hits[layer] = static_cast<uint16_t>(no_ut_hit);
        n_candidates[layer] = 0;
        const float distance = layer_z[layer] - z_velo_end;
        const float x = line.x + line.tx * distance + displacement_of_kick[layer] * kick;
        const float y = line.y + line.ty * distance;
        const bool in_hole = absolute(x) < hole && absolute(y) < hole;
        if (!in_hole && absolute(x) < half_width && absolute(y) < half_height) ++result.n_crossed;
        const float reach = window + layer_depth * absolute(line.tx);
        const float at_strip = x - dx_dy[layer] * y;
        const uint32_t end = hits.bin_begin[ut_bin_of(layer, at_strip + reach) + 1u];
        for (uint32_t i = hits.bin_begin[ut_bin_of(layer, at_strip - reach)]; i < end; i += ut_lanes) {
            float residuals[ut_lanes];
            uint32_t near[ut_lanes];
            uint32_t any = 0;
            for (uint32_t lane = 0; lane < ut_lanes; ++lane) {
                const float to_hit = hits.ordered_z[i + lane] - z_velo_end;
                residuals[lane] = hits.ordered_x[i + lane] + dx_dy[layer] * (line.y + line.ty * to_hit) -
                                  (line.x + line.tx * to_hit) - displacement_of_kick[layer] * kick;
                const float reach_here = window * growth_at(hits.ordered_z[i + lane]);
                near[lane] = static_cast<uint32_t>(residuals[lane] < reach_here) &
                             static_cast<uint32_t>(-residuals[lane] < reach_here);
                any |= near[lane];
            }
            if (any == 0u) continue;
            for (uint32_t lane = 0; lane < min_of(ut_lanes, end - i); ++lane) {
                if (near[lane] == 0u || n_candidates[layer] == max_ut_candidates) continue;
                const uint32_t hit = hits.order[i + lane];
                const float y_hit = line.y + line.ty * (hits.z[hit] - z_velo_end);
                if (y_hit < hits.y_begin[hit] - sensor_overlap || y_hit > hits.y_end[hit] + sensor_overlap) continue;
                candidates[layer][n_candidates[layer]++] = {residuals[lane] / growth_at(hits.z[hit]),
                                                            static_cast<uint16_t>(hit)};
            }
        }
    }
    // Of three layers one is among the first two, of four the first one.
    const float error_weight = 1.f / (error * error), spread_weight = 1.f / (spread * spread);
    for (uint32_t from = 0; from < 2u && result.n_layers < n_long_ut_layers; ++from) {
        for (uint32_t k = 0; k < n_candidates[from]; ++k) {
            const float common = candidates[from][k].displacement;
            float displacements[n_long_ut_layers];
            uint16_t chosen[n_long_ut_layers];
            uint32_t n = 0;
            float sum = 0.f;
            for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer) {
                float nearest = 2.f * spread;
                chosen[layer] = static_cast<uint16_t>(no_ut_hit);
                for (uint32_t j = 0; j < n_candidates[layer]; ++j) {
                    const ut_candidate& other = candidates[layer][j];
                    const float apart = absolute(other.displacement - common);
                    if (apart < nearest) {
                        nearest = apart;
                        chosen[layer] = other.hit;
                        displacements[layer] = other.displacement;
                    }
                }
                if (chosen[layer] == no_ut_hit) continue;
                ++n;
                sum += displacements[layer];
            }
            if (n < result.n_layers) continue;
            const float mean = sum / static_cast<float>(n);
            float chi2 = mean * mean * error_weight;
            for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer) {
                if (chosen[layer] == no_ut_hit) continue;
                const float apart = displacements[layer] - mean;
                chi2 += apart * apart * spread_weight;
            }
            if (n > result.n_layers || (n == result.n_layers && chi2 < result.chi2)) {
                result.n_layers = n;
                result.chi2 = chi2;
                for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer) result.hits[layer] = chosen[layer];
            }
        }
    }
    return result;
}

}  // namespace hlt
