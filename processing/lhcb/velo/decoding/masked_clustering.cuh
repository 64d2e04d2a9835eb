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
#include "framework/device/warp_runs.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/velo/decoding/bank.cuh"
#include "lhcb/velo/decoding/generated/velo_masked_clustering.h"
#include "lhcb/velo/decoding/super_pixel.cuh"
#include "lhcb/velo/hit.cuh"

namespace hlt {

/// Places in a stretch of the table. A stretch begins at a multiple of this number. The densest simulated events fill
/// 19 of 32 places. The order of insertions does not change the set of occupied places, nor whether a stretch is full.
/// A search that passes 2 table_stretch occupied places has passed a full stretch.
constexpr uint32_t table_stretch = 32;

/// Super-pixels by sensor and position. An entry is position + 1 above 8 bits of pattern, 0 where free.
struct super_pixel_table {
    uint32_t* entries;
    uint32_t bits;      // the table has 2^bits entries
    uint32_t* taken;    // occupied places, in any order
    uint32_t* n_taken;  // in shared memory

    __device__ static uint32_t key_of(uint32_t sensor, uint32_t column, uint32_t row)
    {
        return (sensor << 15 | column << 6 | row) + 1u;
    }
    __device__ uint32_t size() const { return 1u << bits; }
    __device__ uint32_t place_of(uint32_t key) const { return key * 2654435769u >> (32u - bits); }

    /// Returns false, without inserting, if the search passes a full stretch.
    __device__ bool insert(uint32_t key, uint32_t pattern)
    {
        uint32_t at = place_of(key);
        for (uint32_t passed = 0; passed < 2u * table_stretch; ++passed, at = (at + 1u) & (size() - 1u)) {
            const uint32_t old = atomicCAS(&entries[at], 0u, key << 8 | pattern);
            if (old == 0u) {
                taken[atomicAdd(n_taken, 1u)] = at;
                return true;
            }
            if (old >> 8 == key) {
                atomicOr(&entries[at], pattern);
                return true;
            }
        }
        return false;
    }

    /// True if every place of the stretch that begins at `begin` is occupied.
    __device__ bool is_full(uint32_t begin) const
    {
        uint32_t at = begin;
        while (at < begin + table_stretch && entries[at] != 0u) ++at;
        return at == begin + table_stretch;
    }

    /// Pattern of a key; 0 if no pixel is lit.
    __device__ uint32_t find(uint32_t key) const
    {
        for (uint32_t place = place_of(key);; place = (place + 1u) & (size() - 1u)) {
            const uint32_t entry = entries[place];
            if (entry == 0u) return 0u;
            if (entry >> 8 == key) return entry & 0xffu;
        }
    }
};

/// Position of a super-pixel of the table.
struct super_pixel_position {
    uint32_t key;
    uint32_t sensor, column, row;

    __device__ explicit super_pixel_position(uint32_t key_)
        : key(key_), sensor((key_ - 1u) >> 15), column((key_ - 1u) >> 6 & 0x1ffu), row((key_ - 1u) & 0x3fu)
    {
    }

    /// Pattern of the super-pixel at this distance in columns to the east and rows to the north; 0 beyond the sensor.
    __device__ uint32_t pattern_at(const super_pixel_table& table, int32_t east, int32_t north) const
    {
        const uint32_t c = column + static_cast<uint32_t>(east), r = row + static_cast<uint32_t>(north);
        if ((east != 0 && c >= n_super_pixel_columns) || (north != 0 && r >= n_super_pixel_rows)) return 0u;
        return table.find(key + static_cast<uint32_t>(64 * east + north));
    }
};

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

/// Write the hit of a cluster to place `at`.
__device__ void store_cluster(const velo_masked_clustering_parameters& p, uint32_t at, uint32_t sensor,
                              const cluster_sums& sums)
{
    const uint32_t column = static_cast<uint32_t>(sums.column / sums.n);
    const uint32_t row = static_cast<uint32_t>(sums.row / sums.n);
    const float per_n = static_cast<float>(sums.n);
    const velo_point point =
        velo_position(*p.velo_geometry, sensor, column, static_cast<float>(sums.column % sums.n) / per_n, row,
                      static_cast<float>(sums.row % sums.n) / per_n);
    p.velo_unsorted.x[at] = point.x;
    p.velo_unsorted.y[at] = point.y;
    p.velo_unsorted.z[at] = point.z;
    p.velo_unsorted.id[at] = velo_lhcb_id(sensor, column, row, false, false);
    p.velo_unsorted.module_pair[at] = static_cast<uint8_t>(sensor / 8u);
}

/// Store the clusters of a super-pixel if it is isolated; otherwise insert it into the table. Sets `crowded` if the
/// search passes a full stretch.
__device__ void sort_out_super_pixel(const velo_masked_clustering_parameters& p, const super_pixel& pixels,
                                     uint32_t sensor, super_pixel_table& table, uint32_t* next_place, bool& crowded)
{
    if (!pixels.is_isolated()) {
        const uint32_t key = super_pixel_table::key_of(sensor, pixels.column(), pixels.row());
        if (!table.insert(key, pixels.pattern())) crowded = true;
        return;
    }
    const int32_t column = static_cast<int32_t>(pixels.column()), row = static_cast<int32_t>(pixels.row());
    const uint32_t second = second_cluster(pixels.pattern());
    const uint32_t at = atomicAdd(next_place, second != 0u ? 2u : 1u);
    store_cluster(p, at, sensor, sum_pattern(pixels.pattern() & ~second, column, row));
    if (second != 0u) store_cluster(p, at + 1u, sensor, sum_pattern(second, column, row));
}

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
    const uint32_t places = 4u * p.velo_clusters.super_pixel_bound[event];
    hlt::super_pixel_table table{p.scratch.super_pixel_table + 4u * first,
                                 31u - static_cast<uint32_t>(__clz(static_cast<int>(places))),
                                 p.scratch.super_pixel_places + first, &n_taken};
    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::velo_rows_of(p.raw_banks, place.mep);

    if (threadIdx.x == 0) {
        next_place = first_cluster;
        full_stretches = 0;
        n_taken = 0;
    }
    hlt::zero_words(table.entries, table.size());
    __syncthreads();
    bool broken = false, crowded = false;
    for (uint32_t base = 0; base < rows.count; base += blockDim.x) {
        hlt::velo_words words{};
        uint32_t n_words = 0;
        if (base + threadIdx.x < rows.count) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + base + threadIdx.x];
            const hlt::velo_bank bank = hlt::velo_bank_of(hlt::fragment_of(p.raw_banks, row, place.index), row);
            if (bank.kind == hlt::velo_bank_kind::super_pixels) n_words = bank.count_words(broken);
            words = bank.words(p.raw_banks);
        }
        hlt::share_runs(runs[threadIdx.x / hlt::warp_size], n_words, words, [&](const hlt::velo_words& of, uint32_t j) {
            const hlt::super_pixel pixels{of.word(p.raw_banks, j)};
            if (!pixels.is_valid()) broken = true;
            if (!pixels.is_valid() || pixels.pattern() == 0u) return;
            const uint32_t sensor =
                of.sensor + (of.version < hlt::velo_version_sensor_pairs ? 0u : pixels.second_sensor());
            hlt::sort_out_super_pixel(p, pixels, sensor, table, &next_place, crowded);
        });
    }
    if (broken) atomicOr(&p.events.flags[event], static_cast<uint32_t>(hlt::bank_error));
    if (crowded) atomicOr(&full_stretches, 1u);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < table.size() / hlt::table_stretch; i += blockDim.x)
        if (table.is_full(i * hlt::table_stretch)) atomicOr(&full_stretches, 1u);
    __syncthreads();
    if (full_stretches != 0u) {
        if (threadIdx.x == 0) {
            atomicOr(&p.events.flags[event], static_cast<uint32_t>(hlt::overflow));
            p.velo_unsorted.count[event] = 0;
        }
        return;
    }
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

    const uint32_t end = next_place;
    for (uint32_t i = first_cluster + threadIdx.x; i < end; i += blockDim.x)
        p.velo_unsorted.phi[i] = hlt::velo_phi(p.velo_unsorted.x[i], p.velo_unsorted.y[i]);
    if (threadIdx.x == 0) p.velo_unsorted.count[event] = end - first;
}
