// Features of runs, and how they are added to components: one by one, or first summed up in a warp.
#pragma once

#include "framework/device/between_blocks.cuh"
#include "imaging/components/generated/component_types.h"
#include "imaging/images/strip.cuh"

namespace hlt {

/// Features of some pixels of one row. A row has at most 16384 pixels, so only the last sum needs 64 bits.
struct row_features {
    uint32_t area, sum_x, left, right, intensity;
    uint64_t weighted_x;
};

/// Features of pixels `begin` to `end` - 1 of a row: those of their positions from the bounds alone (A. Hennequin,
/// Performance optimization for the LHCb experiment, PhD thesis, Sorbonne Universite, 2022, algorithm 11).
__device__ row_features features_of_run(const uint8_t* row, const image_shape& shape, uint32_t begin, uint32_t end)
{
    const uint32_t area = end - begin, sum_x = (begin + end - 1u) * area / 2u;
    row_features found{area, sum_x, begin, end - 1u, area, sum_x};
    if (shape.bits != 8u) return found;
    found.intensity = 0;
    found.weighted_x = 0;
    for (uint32_t x = begin; x < end; ++x) {
        found.intensity += row[x];
        found.weighted_x += x * row[x];
    }
    return found;
}

/// Add to a sum of 64 bits that is stored as its low and its high word.
__device__ void add_to_sum(uint32_t* words, uint32_t i, uint64_t value)
{
    add_between_blocks(reinterpret_cast<uint64_t*>(words) + i, value);
}

/// Set such a sum.
__device__ void store_sum(uint32_t* words, uint32_t i, uint64_t value)
{
    words[2u * i] = static_cast<uint32_t>(value);
    words[2u * i + 1u] = static_cast<uint32_t>(value >> 32);
}

/// Add to the intensities of a component; `columns` are those of the collection `components`.
template <typename Columns>
__device__ void add_intensities(const Columns& columns, uint32_t i, uint32_t y, const row_features& run)
{
    add_to_sum(columns.intensity, i, run.intensity);
    add_to_sum(columns.weighted_x, i, run.weighted_x);
    add_to_sum(columns.weighted_y, i, static_cast<uint64_t>(y) * run.intensity);
}

/// Add the pixels of row y to a component.
template <typename Columns>
__device__ void add_run(const Columns& columns, uint32_t i, uint32_t y, const row_features& run)
{
    add_between_blocks(&columns.area[i], run.area);
    add_to_sum(columns.sum_x, i, run.sum_x);
    add_to_sum(columns.sum_y, i, static_cast<uint64_t>(y) * run.area);
    lower_between_blocks(&columns.box[i].left, run.left);
    lower_between_blocks(&columns.box[i].top, y);
    raise_between_blocks(&columns.box[i].right, run.right);
    raise_between_blocks(&columns.box[i].bottom, y);
    add_intensities(columns, i, y, run);
}

/// Sum up the features of the lanes of a warp that have pixels of the same component, all in one row; the first lane of
/// each component gets the sum and returns true (Hennequin, algorithm 16, with the source lane ffs - 1). Five rounds at
/// most, each of which absorbs the odd ones among the lanes of a component. All lanes of the warp must call it.
__device__ bool sum_in_warp(bool active, uint32_t component, const image_shape& shape, row_features& run)
{
    const uint32_t lanes = warp_lanes(), lane = threadIdx.x % warp_size;
    uint32_t peers = __match_any_sync(lanes, active ? component : 0xffffffffu);
    uint32_t rank = static_cast<uint32_t>(__popc(peers & lanes_before()));
    const bool leads = active && rank == 0u;
    peers = active ? peers & ~(lanes_before() << 1 | 1u) : 0u;
    while (__ballot_sync(lanes, peers != 0u) != 0u) {
        const uint32_t next = static_cast<uint32_t>(__ffs(static_cast<int>(peers)));
        const uint32_t source = next != 0u ? next - 1u : lane;
        const uint32_t area = __shfl_sync(lanes, run.area, source), sum_x = __shfl_sync(lanes, run.sum_x, source);
        const uint32_t left = __shfl_sync(lanes, run.left, source), right = __shfl_sync(lanes, run.right, source);
        uint32_t intensity = area;
        uint64_t weighted_x = sum_x;
        if (shape.bits == 8u) {
            intensity = __shfl_sync(lanes, run.intensity, source);
            weighted_x = __shfl_sync(lanes, static_cast<uint32_t>(run.weighted_x), source);
            weighted_x |= static_cast<uint64_t>(__shfl_sync(lanes, static_cast<uint32_t>(run.weighted_x >> 32), source))
                          << 32;
        }
        if (next != 0u)
            run = {run.area + area,          run.sum_x + sum_x,         min_of(run.left, left),
                   max_of(run.right, right), run.intensity + intensity, run.weighted_x + weighted_x};
        peers &= __ballot_sync(lanes, (rank & 1u) == 0u);
        rank >>= 1;
    }
    return leads;
}

/// Add the run of each active lane to its component. detects_conflicts: lanes of one component are summed up before.
/// All lanes of the warp must call it for the same row.
template <bool detects_conflicts, typename Columns>
__device__ void vote_for_run(const Columns& columns, uint32_t first, bool active, uint32_t component, uint32_t y,
                             const image_shape& shape, row_features run)
{
    if constexpr (detects_conflicts) active = sum_in_warp(active, component, shape, run);
    if (active) add_run(columns, first + component, y, run);
}

}  // namespace hlt
