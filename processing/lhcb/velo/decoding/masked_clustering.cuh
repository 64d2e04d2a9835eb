// Masked clustering of super-pixels (bank type 63) to hits (docs/physics/velo-clustering.md).
//
// A super-pixel marked as isolated has one or two clusters, which follow from its pattern alone. All others go into a
// hash table of the event, by sensor and position. Then each candidate pixel grows its cluster inside a window of 3 x 4
// super-pixels. If a cluster has several candidates, the one furthest east, then north, reports it. The kernel tests
// this precedence on the cluster, not on the map. Words with the same position are merged, so the order of words does
// not matter. The centre of a cluster is the mean of its pixels; the LHCbID is that of the pixel at the centre, without
// orientation bits.
// In:  the fragments of the VELO rows, velo_geometry, velo_clusters.super_pixel_bound.
// Out: velo_unsorted.{x, y, z, phi, id, module_pair} behind those of retina clusters, velo_unsorted.count [event];
//      events.flags; scratch.super_pixel_table, scratch.super_pixel_places.
// One block per event; threads stride over banks and share their words, then over the occupied places of the table.
// Bounds: an event has at most velo_clusters.super_pixel_bound clusters of super-pixels, since every word has at most
// the candidates of its own pattern and merged words at most two. Its part of the table has four places for each
// cluster. The table uses the largest power of two that fits, so it is at most half full. A search of the table passes
// at most two stretches of table_stretch places. No physics event fills a whole stretch: an event that does is flagged
// and gives no hits.
#pragma once

#include "framework/device/warp_queue.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/velo/decoding/generated/velo_masked_clustering.h"
#include "lhcb/velo/decoding/super_pixel_table.cuh"

namespace hlt {

/// A super-pixel of the table with candidates. Small, because it may be queued until other lanes have one too.
struct candidate_super_pixel {
    uint32_t entry;   // of the table
    uint32_t around;  // patterns in the north, north-east, east and south-east, low byte first
    uint32_t south_and_candidates;

    __device__ uint32_t own() const { return entry & 0xffu; }
    __device__ uint32_t north() const { return around & 0xffu; }
    __device__ uint32_t north_east() const { return around >> 8 & 0xffu; }
    __device__ uint32_t east() const { return around >> 16 & 0xffu; }
    __device__ uint32_t south_east() const { return around >> 24; }
    __device__ uint32_t south() const { return south_and_candidates & 0xffu; }
    __device__ uint32_t candidates() const { return south_and_candidates >> 8; }
};

/// The surroundings of an entry of the table, and its candidates.
__device__ candidate_super_pixel find_candidates_of(const super_pixel_table& table, uint32_t entry)
{
    const super_pixel_position position(entry >> 8);
    const super_pixel_surroundings around{
        entry & 0xffu,
        position.pattern_at(table, 0, 1),
        position.pattern_at(table, 1, 1),
        position.pattern_at(table, 1, 0),
        position.pattern_at(table, 1, -1),
        position.pattern_at(table, 0, -1),
    };
    return {entry, around.north | around.north_east << 8 | around.east << 16 | around.south_east << 24,
            around.south | find_candidates(around) << 8};
}

/// Grow the clusters of a super-pixel and store the clusters that it reports.
__device__ void cluster_super_pixel(const velo_masked_clustering_parameters& p, const super_pixel_table& table,
                                    const candidate_super_pixel& own, uint32_t* next_place)
{
    const super_pixel_position position(own.entry >> 8);
    // [west, middle, east][south of the southern neighbours, southern, own, northern row]
    uint32_t patterns[3][4] = {
        {0, position.pattern_at(table, -1, -1), position.pattern_at(table, -1, 0), position.pattern_at(table, -1, 1)},
        {0, own.south(), own.own(), own.north()},
        {0, own.south_east(), own.east(), own.north_east()}};
    if ((patterns[0][1] | own.south() | own.south_east()) != 0u)  // otherwise no cluster reaches it
        for (int32_t i = 0; i < 3; ++i) patterns[i][0] = position.pattern_at(table, i - 1, -2);
    uint64_t pixels[6] = {};  // by column
    for (uint32_t i = 0; i < 3u; ++i) {
        for (uint32_t j = 0; j < 4u; ++j) {
            pixels[2u * i] |= (patterns[i][j] & 15u) << (4u * j);
            pixels[2u * i + 1u] |= (patterns[i][j] >> 4) << (4u * j);
        }
    }
    const cluster_window lit{pixels[0] | pixels[1] << 16 | pixels[2] << 32,
                             pixels[3] | pixels[4] << 16 | pixels[5] << 32};
    const int32_t column = static_cast<int32_t>(position.column), row = static_cast<int32_t>(position.row);
    for (uint32_t candidates = own.candidates(); candidates != 0u; candidates &= candidates - 1u) {
        const uint32_t bit = static_cast<uint32_t>(__ffs(static_cast<int>(candidates))) - 1u;
        cluster_window cluster;
        if (!grow_cluster(lit, bit >> 2, bit & 3u, cluster)) continue;
        store_cluster(p, atomicAdd(next_place, 1u), position.sensor, sum_window(cluster, column, row));
    }
}

}  // namespace hlt

HLT_KERNEL(velo_masked_clustering)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    if (p.velo_clusters.bound[event] == 0u || p.velo_clusters.super_pixel_bound[event] == 0u) return;
    __shared__ uint32_t next_place;
    __shared__ uint32_t full_stretches;
    __shared__ uint32_t n_taken;
    __shared__ hlt::warp_runs<hlt::velo_words> runs[hlt::max_block_size / hlt::warp_size];
    __shared__ hlt::candidate_super_pixel queues[hlt::max_block_size / hlt::warp_size][hlt::warp_queue_items];

    const uint32_t first = p.velo_unsorted.first(event);
    const uint32_t first_cluster = first + p.velo_unsorted.count[event];
    hlt::super_pixel_table table = hlt::table_of_event(p, event, first, &n_taken);
    if (!hlt::fill_table(p, event, table, first_cluster, &next_place, &full_stretches,
                         runs[threadIdx.x / hlt::warp_size]))
        return;
    // Not every entry has candidates: entries with candidates are queued until each lane of a warp has one.
    hlt::warp_queue<hlt::candidate_super_pixel> queue{queues[threadIdx.x / hlt::warp_size], 0u};
    const auto cluster = [&](const hlt::candidate_super_pixel& own) {
        hlt::cluster_super_pixel(p, table, own, &next_place);
    };
    for (uint32_t i = threadIdx.x; i - threadIdx.x % hlt::warp_size < n_taken; i += blockDim.x) {
        hlt::candidate_super_pixel own{};
        if (i < n_taken) own = hlt::find_candidates_of(table, table.entries[table.taken[i]]);
        queue.offer(own.candidates() != 0u, own, cluster);
    }
    queue.finish(cluster);
    __syncthreads();

    hlt::finish_clusters(p, event, first_cluster, next_place);
}
