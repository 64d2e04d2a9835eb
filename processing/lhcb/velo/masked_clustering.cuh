// Masked clustering of super-pixels (bank type 63) to hits (docs/physics/velo-clustering.md).
//
// A super-pixel that is marked isolated is one or two clusters by its pattern alone. The others go into a hash table of
// the event, by sensor and position. Then each candidate pixel grows its cluster inside a window of 3 x 4 super-pixels;
// of several candidates of one cluster the one furthest east, then north, reports it. The precedence is tested on the
// cluster, not on the map. Nothing depends on the order of the words: words of one position are merged.
// A cluster's centre is the mean of its pixels; the LHCbID is the pixel of the centre, without orientation bits.
// In:  the fragments of the VELO rows, velo_geometry, velo_clusters.super_pixel_bound.
// Out: velo_unsorted.{x, y, z, phi, id, module_pair} behind those of retina clusters, velo_unsorted.count [event];
//      events.flags; scratch.super_pixel_table.
// One block per event; threads stride over banks, then over the table.
// Bounds: an event has at most velo_clusters.super_pixel_bound clusters of super-pixels, since every word has at most
// the candidates of its own pattern and merged words at most two. Its part of the table has four places for each of
// them, of which the largest power of two is used: it is at most half full. No search of the table passes more than two
// stretches of table_stretch places: an event that fills a whole stretch is no physics, is flagged and gives no hits.
#pragma once

#include "framework/device/warp_queue.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/velo/bank.cuh"
#include "lhcb/velo/generated/velo_masked_clustering.h"
#include "lhcb/velo/hit.cuh"
#include "lhcb/velo/super_pixel.cuh"

namespace hlt {

/// Places of a table that begin at a multiple of this many. Of 32 the densest simulated events fill 19. Which places
/// are taken does not depend on the order of insertions, so neither does whether a stretch is full; and whoever passes
/// two stretches of taken places has passed a full one.
constexpr uint32_t table_stretch = 32;

/// Super-pixels by sensor and position. An entry is position + 1 above 8 bits of pattern, 0 where free.
struct super_pixel_table {
    uint32_t* entries;
    uint32_t bits;  // the table has 2^bits entries

    __device__ static uint32_t key_of(uint32_t sensor, uint32_t column, uint32_t row)
    {
        return (sensor << 15 | column << 6 | row) + 1u;
    }
    __device__ uint32_t size() const { return 1u << bits; }
    __device__ uint32_t place_of(uint32_t key) const { return key * 2654435769u >> (32u - bits); }

    /// Returns false, without inserting, if that passes a full stretch.
    __device__ bool insert(uint32_t key, uint32_t pattern)
    {
        uint32_t at = place_of(key);
        for (uint32_t passed = 0; passed < 2u * table_stretch; ++passed, at = (at + 1u) & (size() - 1u)) {
            const uint32_t old = atomicCAS(&entries[at], 0u, key << 8 | pattern);
            if (old == 0u) return true;
            if (old >> 8 == key) {
                atomicOr(&entries[at], pattern);
                return true;
            }
        }
        return false;
    }

    /// Whether every place of the stretch that begins at `begin` is taken.
    __device__ bool is_full(uint32_t begin) const
    {
        uint32_t at = begin;
        while (at < begin + table_stretch && entries[at] != 0u) ++at;
        return at == begin + table_stretch;
    }

    /// Pattern at a position, 0 beyond the sensor and where nothing is lit.
    __device__ uint32_t at(uint32_t sensor, int32_t column, int32_t row) const
    {
        const uint32_t c = static_cast<uint32_t>(column), r = static_cast<uint32_t>(row);
        if (c >= n_super_pixel_columns || r >= n_super_pixel_rows) return 0u;
        const uint32_t key = key_of(sensor, c, r);
        for (uint32_t place = place_of(key);; place = (place + 1u) & (size() - 1u)) {
            const uint32_t entry = entries[place];
            if (entry == 0u) return 0u;
            if (entry >> 8 == key) return entry & 0xffu;
        }
    }
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

/// Clusters of isolated super-pixels of a bank are stored, the others go into the table; `crowded` if not all fit.
__device__ void sort_out_super_pixels(const velo_masked_clustering_parameters& p, const velo_bank& bank,
                                      super_pixel_table& table, uint32_t* next_place, bool& broken, bool& crowded)
{
    const uint32_t n = bank.count_words(broken);
    for (uint32_t j = 0; j < n; ++j) {
        const super_pixel pixels{load_u32(bank.words() + 4u * j)};
        if (!pixels.is_valid()) broken = true;
        if (!pixels.is_valid() || pixels.pattern() == 0u) continue;
        const uint32_t sensor = bank.sensor + (bank.has_count ? 0u : pixels.second_sensor());
        if (!pixels.is_isolated()) {
            const uint32_t key = super_pixel_table::key_of(sensor, pixels.column(), pixels.row());
            if (!table.insert(key, pixels.pattern())) crowded = true;
            continue;
        }
        const int32_t column = static_cast<int32_t>(pixels.column()), row = static_cast<int32_t>(pixels.row());
        const uint32_t second = second_cluster(pixels.pattern());
        const uint32_t at = atomicAdd(next_place, second != 0u ? 2u : 1u);
        store_cluster(p, at, sensor, sum_pattern(pixels.pattern() & ~second, column, row));
        if (second != 0u) store_cluster(p, at + 1u, sensor, sum_pattern(second, column, row));
    }
}

/// Grow the clusters of one entry of the table and store those that it reports.
__device__ void cluster_super_pixel(const velo_masked_clustering_parameters& p, const super_pixel_table& table,
                                    uint32_t entry, uint32_t* next_place)
{
    const uint32_t position = (entry >> 8) - 1u;
    const uint32_t sensor = position >> 15;
    const int32_t column = static_cast<int32_t>(position >> 6 & 0x1ffu), row = static_cast<int32_t>(position & 0x3fu);
    super_pixel_surroundings around{entry & 0xffu, 0, 0, 0, 0, 0};
    around.north = table.at(sensor, column, row + 1);
    around.north_east = table.at(sensor, column + 1, row + 1);
    around.east = table.at(sensor, column + 1, row);
    around.south_east = table.at(sensor, column + 1, row - 1);
    around.south = table.at(sensor, column, row - 1);
    uint32_t candidates = find_candidates(around);
    if (candidates == 0u) return;

    // [west, middle, east][south of the southern neighbours, southern, own, northern row]
    uint32_t patterns[3][4] = {{0, table.at(sensor, column - 1, row - 1), table.at(sensor, column - 1, row),
                                table.at(sensor, column - 1, row + 1)},
                               {0, around.south, around.own, around.north},
                               {0, around.south_east, around.east, around.north_east}};
    if ((patterns[0][1] | around.south | around.south_east) != 0u)  // else the cluster cannot come that far
        for (int32_t i = 0; i < 3; ++i) patterns[i][0] = table.at(sensor, column + i - 1, row - 2);
    uint64_t pixels[6] = {};  // by column
    for (uint32_t i = 0; i < 3u; ++i) {
        for (uint32_t j = 0; j < 4u; ++j) {
            pixels[2u * i] |= (patterns[i][j] & 15u) << (4u * j);
            pixels[2u * i + 1u] |= (patterns[i][j] >> 4) << (4u * j);
        }
    }
    const cluster_window lit{pixels[0] | pixels[1] << 16 | pixels[2] << 32,
                             pixels[3] | pixels[4] << 16 | pixels[5] << 32};
    for (; candidates != 0u; candidates &= candidates - 1u) {
        const uint32_t bit = static_cast<uint32_t>(__ffs(static_cast<int>(candidates))) - 1u;
        cluster_window cluster;
        if (!grow_cluster(lit, bit >> 2, bit & 3u, cluster)) continue;
        store_cluster(p, atomicAdd(next_place, 1u), sensor, sum_window(cluster, column, row));
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
    __shared__ uint32_t queues[hlt::max_block_size / hlt::warp_size][hlt::warp_queue_items];

    const uint32_t first = p.velo_unsorted.first(event);
    const uint32_t first_cluster = first + p.velo_unsorted.count[event];
    const uint32_t places = 4u * p.velo_clusters.super_pixel_bound[event];
    hlt::super_pixel_table table{p.scratch.super_pixel_table + 4u * first,
                                 31u - static_cast<uint32_t>(__clz(static_cast<int>(places)))};
    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::velo_rows_of(p.raw_banks, place.mep);

    if (threadIdx.x == 0) {
        next_place = first_cluster;
        full_stretches = 0;
    }
    for (uint32_t i = threadIdx.x; i < table.size(); i += blockDim.x) table.entries[i] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + i];
        const hlt::velo_bank bank = hlt::velo_bank_of(hlt::fragment_of(p.raw_banks, row, place.index), row);
        if (bank.kind != hlt::velo_bank_kind::super_pixels) continue;
        bool broken = false, crowded = false;
        hlt::sort_out_super_pixels(p, bank, table, &next_place, broken, crowded);
        if (broken) atomicOr(&p.events.flags[event], static_cast<uint32_t>(hlt::bank_error));
        if (crowded) atomicOr(&full_stretches, 1u);
    }
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
    // Few places are taken: their entries wait until each lane of a warp has one.
    hlt::warp_queue queue{queues[threadIdx.x / hlt::warp_size], 0u};
    const auto cluster = [&](uint32_t entry) { hlt::cluster_super_pixel(p, table, entry, &next_place); };
    for (uint32_t i = threadIdx.x; i - threadIdx.x % hlt::warp_size < table.size(); i += blockDim.x) {
        const uint32_t entry = i < table.size() ? table.entries[i] : 0u;
        queue.offer(entry != 0u, entry, cluster);
    }
    queue.finish(cluster);
    __syncthreads();

    const uint32_t end = next_place;
    for (uint32_t i = first_cluster + threadIdx.x; i < end; i += blockDim.x)
        p.velo_unsorted.phi[i] = hlt::velo_phi(p.velo_unsorted.x[i], p.velo_unsorted.y[i]);
    if (threadIdx.x == 0) p.velo_unsorted.count[event] = end - first;
}
