// Clusters of a slice by row, by bin of the grid, then by z, y and number in the event (D. Rohr, diploma thesis,
// Heidelberg, 2010, sections 2.2.3 and 2.4.1).
//
// In:  the banks of the slice, x of the rows. Out: tpc_slices.row_counts and boxes, tpc_clusters.places, inputs and
// charges, tpc_bins.begin, flags. One block per slice; threads stride over the clusters of a bank, three times: count,
// count by bins, store. Coordinates stay the 16-bit numbers of the banks, which are exact; the thesis makes such
// numbers from its floats. A cluster of no row, or beyond the borders of its slice, is not used: one of them would
// widen all bins of its chamber. Bounds: a row of n clusters has at most n bins; a row of more than 65,535 is empty, so
// that 16 bits hold its numbers. The order of clusters with equal places is that of the input; all others do not depend
// on it.
#pragma once

#include "alice/tpc/clusters/cluster_banks.cuh"
#include "alice/tpc/clusters/generated/tpc_sort_clusters.h"
#include "alice/tpc/clusters/row_grid.cuh"
#include "alice/tpc/generated/tpc_flags.h"
#include "framework/device/between_blocks.cuh"

namespace hlt {

/// Calls `take(cluster, number of the cluster in the event)` for each cluster of a slice; threads stride over those of
/// a bank.
template <typename Take>
__device__ void for_clusters(const raw_banks& banks, const tpc_slice_input& slice, uint32_t index, const Take& take)
{
    uint32_t first = slice.first_cluster;
    for (uint32_t i = slice.first_row; i < slice.first_row + slice.n_rows; ++i) {
        const mfp_row row = banks.mfp_rows[i];
        const fragment_view bank = fragment_of(banks, row, index);
        const uint32_t n = clusters_of_bank(bank, row);
        for (uint32_t k = threadIdx.x; k < n; k += blockDim.x)
            take(load_cluster(bank.data + tpc_cluster_bytes * k), first + k);
        first += n;
    }
}

/// Largest |y| of a cluster of a row at x, in units of banks.
__device__ uint32_t y_reach(float x)
{
    return static_cast<uint32_t>((x * tpc_half_width_over_x + tpc_border_tolerance) / tpc_y_step);
}

/// Whether a cluster has a row, and y inside of its slice. reaches: y_reach of each row.
__device__ bool is_in_slice(const tpc_cluster& cluster, const uint32_t* reaches)
{
    if (cluster.row >= tpc_rows) return false;
    const uint32_t reach = reaches[cluster.row];
    // Smaller than 0 is larger than all other numbers.
    return (cluster.place & 0xFFFFu) + reach - tpc_y_offset <= 2u * reach;
}

/// Add 1 to a 16-bit word of an array that begins at a multiple of 4 bytes; returns the old value. Atomic functions
/// have 32 bits. The word must stay below 65,536.
__device__ uint32_t count_in(uint16_t* words, uint32_t i)
{
    const uint32_t shift = 16u * (i % 2u);
    return atomicAdd(reinterpret_cast<uint32_t*>(words + i - i % 2u), 1u << shift) >> shift & 0xFFFFu;
}

/// Sort n places with the numbers of their clusters. Shell's method, with gaps of one more than three times the next
/// (D. Knuth, The Art of Computer Programming, vol. 3, section 5.2.1): bins have few clusters, but may have all.
__device__ void sort_places(uint32_t* places, uint32_t* inputs, uint32_t n)
{
    uint32_t gap = 1;
    while (gap < n / 3u) gap = 3u * gap + 1u;
    for (; gap > 0u; gap /= 3u) {
        for (uint32_t i = gap; i < n; ++i) {
            const uint32_t place = places[i], input = inputs[i];
            uint32_t k = i;
            for (; k >= gap; k -= gap) {
                const uint32_t other = places[k - gap];
                if (other < place || (other == place && inputs[k - gap] < input)) break;
                places[k] = other;
                inputs[k] = inputs[k - gap];
            }
            places[k] = place;
            inputs[k] = input;
        }
    }
}

}  // namespace hlt

HLT_KERNEL(tpc_sort_clusters)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ hlt::tpc_row rows[hlt::tpc_rows];
    __shared__ uint32_t counts[hlt::tpc_rows];
    __shared__ uint32_t reaches[hlt::tpc_rows];
    __shared__ uint32_t limits[4u * hlt::tpc_chambers];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t flags;

    const uint32_t event = p.event_of(blockIdx.x);
    const uint32_t index = p.raw_banks.event_rows[event].index;
    const hlt::tpc_slice_input slice = p.tpc_slices.input[blockIdx.x];
    uint16_t* const row_counts = p.tpc_slices.row_counts + blockIdx.x * hlt::tpc_rows;
    hlt::tpc_box* const boxes = p.tpc_slices.boxes + blockIdx.x * hlt::tpc_chambers;
    for (uint32_t i = threadIdx.x; i < hlt::tpc_rows; i += blockDim.x) {
        counts[i] = 0;
        reaches[i] = hlt::y_reach(p.tpc.geometry[i]);
    }
    for (uint32_t i = threadIdx.x; i < 4u * hlt::tpc_chambers; i += blockDim.x) limits[i] = i % 2u == 0u ? 0xFFFFu : 0u;
    if (threadIdx.x == 0) flags = 0;
    hlt::block_barrier();

    hlt::for_clusters(p.raw_banks, slice, index, [&](const hlt::tpc_cluster& cluster, uint32_t) {
        if (!hlt::is_in_slice(cluster, reaches)) {
            atomicOr(&flags, uint32_t{hlt::bad_cluster});
            return;
        }
        uint32_t* const box = limits + 4u * hlt::chamber_of_row(cluster.row);
        atomicAdd(&counts[cluster.row], 1u);
        atomicMin(&box[0], cluster.place & 0xFFFFu);
        atomicMax(&box[1], cluster.place & 0xFFFFu);
        atomicMin(&box[2], cluster.place >> 16);
        atomicMax(&box[3], cluster.place >> 16);
    });
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < hlt::tpc_rows; i += blockDim.x) {
        if (counts[i] > 0xFFFFu) {
            atomicOr(&flags, uint32_t{hlt::row_too_full});
            counts[i] = 0;
        }
        row_counts[i] = static_cast<uint16_t>(counts[i]);
    }
    for (uint32_t i = threadIdx.x; i < hlt::tpc_chambers; i += blockDim.x) {
        const uint32_t* const box = limits + 4u * i;
        boxes[i] = {static_cast<uint16_t>(box[0]), static_cast<uint16_t>(box[1]), static_cast<uint16_t>(box[2]),
                    static_cast<uint16_t>(box[3])};
    }
    hlt::block_barrier();
    hlt::tabulate_rows(row_counts, boxes, rows, scratch);

    // The word of a bin counts its clusters in the place behind it. It then has the place of its next cluster, and at
    // the end that of the first cluster of the bin behind it.
    uint16_t* const begins = p.tpc_bins.begin + p.tpc_bins.first(blockIdx.x);
    const uint32_t n_sorted = hlt::clusters_of_rows(rows);
    for (uint32_t i = threadIdx.x; i < n_sorted + hlt::tpc_rows; i += blockDim.x) begins[i] = 0;
    hlt::block_barrier();
    hlt::for_clusters(p.raw_banks, slice, index, [&](const hlt::tpc_cluster& cluster, uint32_t) {
        if (!hlt::is_in_slice(cluster, reaches) || rows[cluster.row].n_clusters == 0u) return;
        const hlt::tpc_row& row = rows[cluster.row];
        hlt::count_in(begins, row.bin + hlt::bin_of(row, cluster.place) + 1u);
    });
    hlt::block_barrier();
    for (uint32_t r = threadIdx.x; r < hlt::tpc_rows; r += blockDim.x) {
        const hlt::tpc_row& row = rows[r];
        if (row.n_clusters == 0u) continue;
        uint32_t running = 0;
        for (uint32_t bin = row.bin + 1u; bin <= row.bin + row.n_y * row.n_z; ++bin) {
            const uint32_t n = begins[bin];
            begins[bin] = static_cast<uint16_t>(running);
            running += n;
        }
    }
    hlt::block_barrier();
    uint32_t* const places = p.tpc_clusters.places + p.tpc_clusters.first(blockIdx.x);
    uint32_t* const inputs = p.tpc_clusters.inputs + p.tpc_clusters.first(blockIdx.x);
    uint16_t* const charges = p.tpc_clusters.charges + p.tpc_clusters.first(blockIdx.x);
    hlt::for_clusters(p.raw_banks, slice, index, [&](const hlt::tpc_cluster& cluster, uint32_t input) {
        charges[input - slice.first_cluster] = static_cast<uint16_t>(cluster.charge);
        if (!hlt::is_in_slice(cluster, reaches) || rows[cluster.row].n_clusters == 0u) return;
        const hlt::tpc_row& row = rows[cluster.row];
        const uint32_t i = row.first + hlt::count_in(begins, row.bin + hlt::bin_of(row, cluster.place) + 1u);
        places[i] = cluster.place;
        inputs[i] = input;
    });
    hlt::block_barrier();
    for (uint32_t r = 0; r < hlt::tpc_rows; ++r) {
        const hlt::tpc_row& row = rows[r];
        if (row.n_clusters == 0u) continue;
        for (uint32_t bin = row.bin + threadIdx.x; bin < row.bin + row.n_y * row.n_z; bin += blockDim.x) {
            const uint32_t first = begins[bin], n = begins[bin + 1u] - first;
            hlt::sort_places(places + row.first + first, inputs + row.first + first, n);
        }
    }
    if (threadIdx.x == 0 && flags != 0u) hlt::set_bits_between_blocks(&p.events.flags[event], flags);
}
