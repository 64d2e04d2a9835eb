// HA4: labels of the chunks of runs (A. Hennequin, I. Masliah and L. Lacassagne, DASIP 2018,
// doi:10.1109/DASIP.2018.8596835; A. Hennequin, Performance optimization for the LHCb experiment, PhD thesis, Sorbonne
// Universite, 2022, section 4.3). 4-connected.
//
// Only the first pixel of a run, or of the part of a run that lies in a chunk, has a label. A warp moves along a row
// and remembers how long the run at the left edge of its chunk already is, so no vertical borders remain to be merged.
#pragma once

#include "framework/generated/launch_types.h"
#include "imaging/gpu_labelling/chunk_masks.cuh"
#include "imaging/gpu_labelling/label_image.cuh"
#include "imaging/gpu_labelling/run_features.cuh"

namespace hlt {

/// Pixels at which a run touches one of the row above for the first time: either of them begins there.
template <typename Mask>
__device__ Mask first_contacts(Mask own, bool own_continued, Mask above, bool above_continued)
{
    return own & above & (starts_of_runs(own, own_continued) | starts_of_runs(above, above_continued));
}

/// Label the rows of a part strip by strip (algorithm 8): a strip has one row for each warp of the block. Warps
/// exchange masks, not pixels, through shared memory. All threads of the block must call it.
template <typename Mask, typename Labels>
__device__ void label_strips(const labelled_part& part, bool interleaved, const Labels& labels)
{
    __shared__ Mask masks[max_block_size / warp_size];
    const uint32_t warp = warp_of_thread(), n_warps = warps_of_block();
    for (uint32_t base = part.rows.first; base < part.rows.last; base += n_warps) {
        const uint32_t y = base + warp;
        const uint8_t* const row = part.row_or_none(y);
        // Lengths of the runs of this row and of the row above that touch the left edge of the chunk.
        uint32_t length = 0, length_above = 0;
        for (uint32_t x = 0; x < part.shape.width; x += chunk_pixels<Mask>) {
            const uint32_t k = y * part.stride + x;
            const Mask own = chunk_of_row<Mask>(row, part.shape, part.threshold, x, interleaved);
            for_each_set(starts_of_runs(own, false), [&](bool active, uint32_t tx) {
                if (active) labels.begin(k + tx, tx == 0u ? length : 0u, x + tx, y, end_distance(own, tx));
            });
            Mask above = 0;
            if (n_warps > 1u) {
                __syncthreads();  // all warps have read the masks of the last chunk
                if (threadIdx.x % warp_size == 0u) masks[warp] = own;
                __syncthreads();
                if (warp > 0u) above = masks[warp - 1u];
            } else {
                __syncwarp(warp_lanes());  // labels of this chunk, before lanes of the next one follow them
            }
            for_each_set(first_contacts(own, length != 0u, above, length_above != 0u), [&](bool active, uint32_t tx) {
                if (!active) return;
                const uint32_t before = tx == 0u ? length : start_distance(own, tx);
                const uint32_t before_above = tx == 0u ? length_above : start_distance(above, tx);
                labels.join(k + tx - before, k + tx - part.stride - before_above);
            });
            length = length_at_right_edge(own, length);
            length_above = length_at_right_edge(above, length_above);
        }
    }
}

/// Merge the first row of each strip with the row above (algorithm 9). At the left edge of each chunk both runs count
/// as new ones, so a pair of long runs is merged once for a chunk.
template <typename Mask, typename Labels>
__device__ void merge_strips(const labelled_part& part, uint32_t strip_rows, bool interleaved, const Labels& labels)
{
    for (uint32_t y = part.rows.first + warp_of_thread() * strip_rows; y < part.rows.last;
         y += warps_of_block() * strip_rows) {
        if (y == 0u) continue;
        const uint8_t* const row = part.row(y);
        const uint8_t* const row_above = part.row(y - 1u);
        if (row == nullptr || row_above == nullptr) continue;
        for (uint32_t x = 0; x < part.shape.width; x += chunk_pixels<Mask>) {
            const uint32_t k = y * part.stride + x;
            const two_chunks<Mask> chunks =
                chunks_of_rows<Mask>(row, row_above, part.shape, part.threshold, x, interleaved);
            for_each_set(first_contacts(chunks.own, false, chunks.above, false), [&](bool active, uint32_t tx) {
                if (!active) return;
                labels.join(k + tx - start_distance(chunks.own, tx),
                            k + tx - part.stride - start_distance(chunks.above, tx));
            });
        }
    }
}

/// Add the features of each run of a chunk to its component (algorithm 11); `columns` are those of `components`.
template <typename Mask, bool detects_conflicts, typename Columns>
__device__ void measure_chunks(const labelled_part& part, const uint32_t* labels, const Columns& columns,
                               uint32_t first, uint32_t n_components)
{
    for (uint32_t y = part.rows.first + warp_of_thread(); y < part.rows.last; y += warps_of_block()) {
        const uint8_t* const row = part.row(y);
        for (uint32_t x = 0; row != nullptr && x < part.shape.width; x += chunk_pixels<Mask>) {
            const Mask own = chunk_of_row<Mask>(row, part.shape, part.threshold, x, false);
            for_each_set(starts_of_runs(own, false), [&](bool active, uint32_t tx) {
                uint32_t component = n_components;
                row_features run{};
                if (active) component = component_of_label(labels, y * part.stride + x + tx);
                if (component < n_components)
                    run = features_of_run(row, part.shape, x + tx, x + tx + end_distance(own, tx));
                vote_for_run<detects_conflicts>(columns, first, component < n_components, component, y, part.shape,
                                                run);
            });
        }
    }
}

}  // namespace hlt
