// SparseCCL: super-pixels (bank type 63) to hits by labelling connected components (docs/physics/velo-clustering.md).
//
// A cluster is an 8-connected component of any size and shape. A super-pixel marked as isolated has one or two
// clusters, which follow from its pattern alone. All others go into the hash table of velo_masked_clustering. Every
// super-pixel of the table is one or two nodes of a graph, the components of its pattern. Links with the neighbours to
// the north, north-east, east and south-east unite the trees of nodes. The root of a tree is its node of the lowest
// number. Every node then adds its pixels to the cluster of its root. The centre of a cluster is the mean of its
// pixels; the LHCbID is that of the pixel at the centre, without orientation bits. Words with the same position are
// merged, so the order of words does not matter. In:  the fragments of the VELO rows, velo_geometry,
// velo_clusters.super_pixel_bound. Out: velo_unsorted.{x, y, z, phi, id, module_pair} behind those of retina clusters,
// velo_unsorted.count [event];
//      events.flags; scratch.
// One block per event; threads stride over banks and share their words, then over the occupied places of the table. The
// sums are integers, so the clusters do not depend on the threads.
// Bounds: a component has a candidate of masked clustering, so velo_clusters.super_pixel_bound limits the clusters. The
// table, its bound and its flag are those of velo_masked_clustering. A path to a root is at most as long as the number
// of nodes.
#pragma once

#include "framework/generated/launch_types.h"
#include "lhcb/velo/decoding/generated/velo_sparse_ccl.h"
#include "lhcb/velo/decoding/super_pixel_links.cuh"
#include "lhcb/velo/decoding/super_pixel_table.cuh"

namespace hlt {

/// A tree of nodes, by their numbers; a root is its own parent.
struct node_trees {
    uint32_t* parents;

    /// The parent at this moment: other threads may give it a lower one.
    __device__ uint32_t parent_of(uint32_t node) const { return atomicOr(&parents[node], 0u); }

    __device__ uint32_t find_root(uint32_t node) const
    {
        uint32_t parent = parent_of(node);
        while (parent != node) {
            node = parent;
            parent = parent_of(node);
        }
        return node;
    }

    /// Unite the trees of two nodes, while other threads unite others. A parent only gets lower, and an old parent that
    /// is replaced is united with the new one.
    __device__ void unite(uint32_t a, uint32_t b) const
    {
        a = find_root(a);
        b = find_root(b);
        while (a != b) {
            const uint32_t high = max_of(a, b), low = min_of(a, b);
            const uint32_t before = atomicMin(&parents[high], low);
            if (before == high) return;
            a = before;
            b = low;
        }
    }
};

constexpr uint32_t node_has_cluster = 1u << 31;  // a root has the number of its cluster in place of its parent

/// The super-pixels of the table as nodes.
struct super_pixel_graph {
    super_pixel_table table;
    uint32_t* numbers;  // of the super-pixel at each place of the table
    node_trees trees;

    __device__ uint32_t entry(uint32_t number) const { return table.entries[table.taken[number]]; }

    /// Components of a pattern; the second one is 0 if it has one.
    __device__ static uint32_t component(uint32_t pattern, uint32_t i)
    {
        const uint32_t second = second_cluster(pattern);
        return i == 0u ? pattern & ~second : second;
    }

    /// Unite the nodes of a super-pixel with those of a neighbour.
    template <typename Touches>
    __device__ void link(uint32_t number, uint32_t pattern, uint32_t key, Touches touches) const
    {
        const uint32_t place = table.find_place(key), neighbour = table.entries[place] & 0xffu;
        if (neighbour == 0u) return;
        for (uint32_t i = 0; i < 2u; ++i)
            for (uint32_t j = 0; j < 2u; ++j)
                if (touches(component(pattern, i), component(neighbour, j)))
                    trees.unite(2u * number + i, 2u * numbers[place] + j);
    }

    __device__ void link_with_neighbours(uint32_t number) const
    {
        const uint32_t pattern = entry(number) & 0xffu, key = entry(number) >> 8;
        const super_pixel_position at(key);
        const bool is_last_column = at.column + 1u == n_super_pixel_columns;
        const bool is_last_row = at.row + 1u == n_super_pixel_rows;
        // Lambdas are inlined, addresses of functions are not.
        if (!is_last_row) link(number, pattern, key + 1u, [](uint32_t a, uint32_t b) { return touches_north(a, b); });
        if (is_last_column) return;
        link(number, pattern, key + 64u, [](uint32_t a, uint32_t b) { return touches_east(a, b); });
        if (!is_last_row)
            link(number, pattern, key + 65u, [](uint32_t a, uint32_t b) { return touches_north_east(a, b); });
        if (at.row != 0u)
            link(number, pattern, key + 63u, [](uint32_t a, uint32_t b) { return touches_south_east(a, b); });
    }
};

}  // namespace hlt

HLT_KERNEL(velo_sparse_ccl)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    if (p.velo_clusters.bound[event] == 0u || p.velo_clusters.super_pixel_bound[event] == 0u) return;
    __shared__ uint32_t next_place;
    __shared__ uint32_t full_stretches;
    __shared__ uint32_t n_taken;
    __shared__ uint32_t n_clusters;
    __shared__ hlt::warp_runs<hlt::velo_words> runs[hlt::max_block_size / hlt::warp_size];

    const uint32_t first = p.velo_unsorted.first(event);
    const uint32_t first_cluster = first + p.velo_unsorted.count[event];
    hlt::super_pixel_table table = hlt::table_of_event(p, event, first, &n_taken);
    if (threadIdx.x == 0) n_clusters = 0;
    if (!hlt::fill_table(p, event, table, first_cluster, &next_place, &full_stretches,
                         runs[threadIdx.x / hlt::warp_size]))
        return;

    const hlt::super_pixel_graph graph{table, p.scratch.numbers + 4u * first, {p.scratch.parents + 2u * first}};
    uint32_t* const sums = p.scratch.sums + 3u * first;
    for (uint32_t i = threadIdx.x; i < n_taken; i += blockDim.x) {
        graph.numbers[table.taken[i]] = i;
        for (uint32_t node = 2u * i; node < 2u * i + 2u; ++node) graph.trees.parents[node] = node;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n_taken; i += blockDim.x) graph.link_with_neighbours(i);
    __syncthreads();
    for (uint32_t node = threadIdx.x; node < 2u * n_taken; node += blockDim.x) {
        const uint32_t pixels = graph.component(graph.entry(node / 2u) & 0xffu, node % 2u);
        if (pixels == 0u || graph.trees.parents[node] != node) continue;
        const uint32_t cluster = atomicAdd(&n_clusters, 1u);
        graph.trees.parents[node] = hlt::node_has_cluster | cluster;
        for (uint32_t k = 0; k < 3u; ++k) sums[3u * cluster + k] = 0;
    }
    __syncthreads();
    for (uint32_t node = threadIdx.x; node < 2u * n_taken; node += blockDim.x) {
        const uint32_t entry = graph.entry(node / 2u), pixels = graph.component(entry & 0xffu, node % 2u);
        if (pixels == 0u) continue;
        uint32_t parent = node;
        while ((parent & hlt::node_has_cluster) == 0u) parent = graph.trees.parents[parent];
        const hlt::super_pixel_position at(entry >> 8);
        const hlt::cluster_sums own =
            hlt::sum_pattern(pixels, static_cast<int32_t>(at.column), static_cast<int32_t>(at.row));
        uint32_t* const of_cluster = sums + 3u * (parent & ~hlt::node_has_cluster);
        atomicAdd(&of_cluster[0], static_cast<uint32_t>(own.n));
        atomicAdd(&of_cluster[1], static_cast<uint32_t>(own.column));
        atomicAdd(&of_cluster[2], static_cast<uint32_t>(own.row));
    }
    __syncthreads();
    const uint32_t first_of_table = next_place;
    for (uint32_t node = threadIdx.x; node < 2u * n_taken; node += blockDim.x) {
        const uint32_t parent = graph.trees.parents[node];
        if ((parent & hlt::node_has_cluster) == 0u) continue;
        const uint32_t cluster = parent & ~hlt::node_has_cluster;
        const uint32_t* const of_cluster = sums + 3u * cluster;
        const hlt::cluster_sums of{static_cast<int32_t>(of_cluster[0]), static_cast<int32_t>(of_cluster[1]),
                                   static_cast<int32_t>(of_cluster[2])};
        const hlt::super_pixel_position at(graph.entry(node / 2u) >> 8);
        hlt::store_cluster(p, first_of_table + cluster, at.sensor, of);
    }
    __syncthreads();
    hlt::finish_clusters(p, event, first_cluster, first_of_table + n_clusters);
}
