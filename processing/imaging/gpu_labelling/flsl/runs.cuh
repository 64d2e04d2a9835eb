// FLSL: rows become lists of runs, and each run has a thread (A. Hennequin, Performance optimization for the LHCb
// experiment, PhD thesis, Sorbonne Universite, 2022, section 4.4.1; F. Lemaitre, A. Hennequin and L. Lacassagne, WPMVP
// 2020, doi:10.1145/3380479.3380481).
//
// The thesis stores the number of edges up to each pixel. Here a chunk of 32 pixels has the mask of its edges and their
// number to the left of it, which give the same numbers from an eighth of the bytes.
#pragma once

#include "framework/generated/launch_types.h"
#include "imaging/gpu_labelling/chunk_masks.cuh"
#include "imaging/gpu_labelling/generated/label_types.h"
#include "imaging/gpu_labelling/label_image.cuh"
#include "imaging/gpu_labelling/run_features.cuh"

namespace hlt {

/// The runs of the rows of an image: run s of row y is columns edges[y * stride + 2 s] to that of 2 s + 1, less 1.
struct row_edges {
    const uint16_t* edges;
    const edge_chunk* chunks;
    const uint32_t* counts;  // edges of each row
    uint32_t stride;         // places for edges of a row
    uint32_t n_chunks;       // of a row

    /// Edges of row y at columns up to x.
    __device__ uint32_t edges_up_to(uint32_t y, uint32_t x) const
    {
        const edge_chunk chunk = chunks[y * n_chunks + x / 32u];
        return chunk.before + static_cast<uint32_t>(__popc(chunk.edges & 0xffffffffu >> (31u - x % 32u)));
    }
};

/// The edges of the image of a part, from the parameters of a kernel.
template <typename Parameters>
__device__ row_edges row_edges_of(const Parameters& p, const labelled_part& part)
{
    return {p.pixels.edge + p.pixels.first(part.event), p.label_chunks.edges + p.label_chunks.first(part.event),
            p.image_rows.edge_count + p.image_rows.first(part.event), part.stride, chunks_of_width(part.shape.width)};
}

/// Find the edges of row y and write them to the columns of the kernel (algorithm 14). All lanes of the warp must call
/// it.
template <typename Parameters>
__device__ void detect_edges(const Parameters& p, const labelled_part& part, uint32_t y)
{
    const uint8_t* const row = part.row(y);
    const bool is_first_lane = threadIdx.x % warp_size == 0u;
    const uint32_t n_chunks = chunks_of_width(part.shape.width);
    uint16_t* const edges = p.pixels.edge + p.pixels.first(part.event) + y * part.stride;
    edge_chunk* const chunks = p.label_chunks.edges + p.label_chunks.first(part.event) + y * n_chunks;
    uint32_t n = 0, last = 0;
    for (uint32_t chunk = 0; chunk < n_chunks; ++chunk) {
        const uint32_t mask = mask_of_warp(row, part.shape, part.threshold, 32u * chunk);
        const uint32_t found = mask ^ __funnelshift_l(last, mask, 1);
        last = mask;
        if (is_first_lane) chunks[chunk] = {found, n};
        for_each_set(found, [&](bool active, uint32_t tx) {
            const uint32_t before = n + static_cast<uint32_t>(__popc(found & ((1u << tx) - 1u)));
            if (active) edges[before] = static_cast<uint16_t>(32u * chunk + tx);
        });
        n += static_cast<uint32_t>(__popc(found));
    }
    if ((n & 1u) != 0u) {
        if (is_first_lane) edges[n] = static_cast<uint16_t>(part.shape.width);
        ++n;
    }
    if (is_first_lane) p.image_rows.edge_count[p.image_rows.first(part.event) + y] = n;
}

/// Join a run with those of the row above that it touches. reach: 1 if corners touch, too.
template <typename Labels>
__device__ void join_run_above(const labelled_part& part, const row_edges& rows, uint32_t y, uint32_t s, uint32_t reach,
                               const Labels& labels)
{
    const uint32_t begin = rows.edges[y * rows.stride + 2u * s], end = rows.edges[y * rows.stride + 2u * s + 1u];
    const uint32_t from = begin - min_of(begin, reach), to = min_of(end - 1u + reach, part.shape.width - 1u);
    // An odd number of edges: the pixel is inside of a run.
    const uint32_t first = rows.edges_up_to(y - 1u, from) / 2u, behind = (rows.edges_up_to(y - 1u, to) + 1u) / 2u;
    for (uint32_t t = first; t < behind; ++t)
        labels.join(y * part.stride + begin, (y - 1u) * part.stride + rows.edges[(y - 1u) * rows.stride + 2u * t]);
}

/// Label the rows of a part: all edges and the own label of each run, then joints inside of the part. All threads of
/// the block must call it.
template <typename Parameters, typename Labels>
__device__ void label_runs_of_part(const Parameters& p, const labelled_part& part, uint32_t reach, const Labels& labels)
{
    const row_edges rows = row_edges_of(p, part);
    const uint32_t warp = warp_of_thread(), n_warps = warps_of_block(), lane = threadIdx.x % warp_size;
    for (uint32_t y = part.rows.first + warp; y < part.rows.last; y += n_warps) {
        detect_edges(p, part, y);
        __syncwarp(warp_lanes());
        const uint16_t* const edges = rows.edges + y * rows.stride;
        for (uint32_t s = lane; 2u * s < rows.counts[y]; s += n_warp_lanes())
            labels.begin(y * part.stride + edges[2u * s], 0, edges[2u * s], y, edges[2u * s + 1u] - edges[2u * s]);
    }
    block_barrier();
    for (uint32_t y = part.rows.first + 1u + warp; y < part.rows.last; y += n_warps)
        for (uint32_t s = lane; 2u * s < rows.counts[y]; s += n_warp_lanes())
            join_run_above(part, rows, y, s, reach, labels);
}

/// Join the runs of the first row of a part with those of the row above, which is in another part.
template <typename Labels>
__device__ void join_runs_of_border(const labelled_part& part, const row_edges& rows, uint32_t reach,
                                    const Labels& labels)
{
    const uint32_t y = part.rows.first;
    if (y == 0u || y == part.rows.last) return;
    for (uint32_t s = threadIdx.x; 2u * s < rows.counts[y]; s += blockDim.x)
        join_run_above(part, rows, y, s, reach, labels);
}

/// Add the features of each run to its component; `columns` are those of `components`.
template <bool detects_conflicts, typename Parameters>
__device__ void measure_runs_of_part(const Parameters& p, uint32_t block)
{
    const labelled_part part = labelled_part_of(p, block, 0);
    const uint32_t* const labels = p.pixels.label + p.pixels.first(part.event);
    const uint32_t n_components = p.components.count[part.event], first = p.components.first(part.event);
    for (uint32_t y = part.rows.first + warp_of_thread(); y < part.rows.last; y += warps_of_block()) {
        const uint8_t* const row = part.row(y);
        const uint16_t* const edges = p.pixels.edge + p.pixels.first(part.event) + y * part.stride;
        const uint32_t n_runs = p.image_rows.edge_count[p.image_rows.first(part.event) + y] / 2u;
        for (uint32_t base = 0; base < n_runs; base += n_warp_lanes()) {
            const uint32_t s = base + threadIdx.x % warp_size;
            uint32_t component = n_components;
            row_features run{};
            if (s < n_runs) component = component_of_label(labels, y * part.stride + edges[2u * s]);
            if (component < n_components) run = features_of_run(row, part.shape, edges[2u * s], edges[2u * s + 1u]);
            vote_for_run<detects_conflicts>(p.components, first, component < n_components, component, y, part.shape,
                                            run);
        }
    }
}

}  // namespace hlt
