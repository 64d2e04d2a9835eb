// The super-pixels of an event in a hash table by sensor and position, and the words on their way into it. Shared by
// the kernels that cluster super-pixels.
#pragma once

#include "framework/device/lanes.cuh"
#include "framework/device/warp_runs.cuh"
#include "lhcb/velo/decoding/bank.cuh"
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

    /// The place of a key, or a free place if it is not in the table.
    __device__ uint32_t find_place(uint32_t key) const
    {
        uint32_t place = place_of(key);
        while (entries[place] != 0u && entries[place] >> 8 != key) place = (place + 1u) & (size() - 1u);
        return place;
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

/// Write the hit of a cluster to place `at`.
template <typename Parameters>
__device__ void store_cluster(const Parameters& p, uint32_t at, uint32_t sensor, const cluster_sums& sums)
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
template <typename Parameters>
__device__ void sort_out_super_pixel(const Parameters& p, const super_pixel& pixels, uint32_t sensor,
                                     super_pixel_table& table, uint32_t* next_place, bool& crowded)
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

/// Read all super-pixels of an event: store the clusters of isolated ones, insert the others into the table. All
/// threads of the block call it. Sets flag bank_error of the event. Returns false if a search passes a full stretch.
template <typename Parameters>
__device__ bool sort_out_super_pixels(const Parameters& p, uint32_t event, super_pixel_table& table,
                                      uint32_t* next_place, warp_runs<velo_words>& runs)
{
    const event_row place = p.raw_banks.event_rows[event];
    const row_range rows = velo_rows_of(p.raw_banks, place.mep);
    bool broken = false, crowded = false;
    for (uint32_t base = 0; base < rows.count; base += blockDim.x) {
        velo_words words{};
        uint32_t n_words = 0;
        if (base + threadIdx.x < rows.count) {
            const mfp_row row = p.raw_banks.mfp_rows[rows.first + base + threadIdx.x];
            const velo_bank bank = velo_bank_of(fragment_of(p.raw_banks, row, place.index), row);
            if (bank.kind == velo_bank_kind::super_pixels) n_words = bank.count_words(broken);
            words = bank.words(p.raw_banks);
        }
        share_runs(runs, n_words, words, [&](const velo_words& of, uint32_t j) {
            const super_pixel pixels{of.word(p.raw_banks, j)};
            if (!pixels.is_valid()) broken = true;
            if (!pixels.is_valid() || pixels.pattern() == 0u) return;
            const uint32_t sensor = of.sensor + (of.version < velo_version_sensor_pairs ? 0u : pixels.second_sensor());
            sort_out_super_pixel(p, pixels, sensor, table, next_place, crowded);
        });
    }
    if (broken) atomicOr(&p.events.flags[event], static_cast<uint32_t>(bank_error));
    return !crowded;
}

/// Read all super-pixels of an event into its table, which is cleared before; see sort_out_super_pixels. Hits lie from
/// place `first_cluster` on. Returns false if a stretch of the table is full: then the event is flagged and has no
/// hits. next_place, full_stretches: words of shared memory.
template <typename Parameters>
__device__ bool fill_table(const Parameters& p, uint32_t event, super_pixel_table& table, uint32_t first_cluster,
                           uint32_t* next_place, uint32_t* full_stretches, warp_runs<velo_words>& runs)
{
    if (threadIdx.x == 0) {
        *next_place = first_cluster;
        *full_stretches = 0;
        *table.n_taken = 0;
    }
    zero_words(table.entries, table.size());
    __syncthreads();
    if (!sort_out_super_pixels(p, event, table, next_place, runs)) atomicOr(full_stretches, 1u);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < table.size() / table_stretch; i += blockDim.x)
        if (table.is_full(i * table_stretch)) atomicOr(full_stretches, 1u);
    __syncthreads();
    if (*full_stretches == 0u) return true;
    if (threadIdx.x == 0) {
        atomicOr(&p.events.flags[event], static_cast<uint32_t>(overflow));
        p.velo_unsorted.count[event] = 0;
    }
    return false;
}

/// The table of an event whose part of the hits begins at `first`.
template <typename Parameters>
__device__ super_pixel_table table_of_event(const Parameters& p, uint32_t event, uint32_t first, uint32_t* n_taken)
{
    const uint32_t places = 4u * p.velo_clusters.super_pixel_bound[event];
    return {p.scratch.super_pixel_table + 4u * first, 31u - static_cast<uint32_t>(__clz(static_cast<int>(places))),
            p.scratch.super_pixel_places + first, n_taken};
}

/// The angles of the hits of clusters, which lie in the places `first_cluster` to `end` - 1, and the number of hits of
/// the event. All threads of the block call it after a barrier.
template <typename Parameters>
__device__ void finish_clusters(const Parameters& p, uint32_t event, uint32_t first_cluster, uint32_t end)
{
    for (uint32_t i = first_cluster + threadIdx.x; i < end; i += blockDim.x)
        p.velo_unsorted.phi[i] = velo_phi(p.velo_unsorted.x[i], p.velo_unsorted.y[i]);
    if (threadIdx.x == 0) p.velo_unsorted.count[event] = end - p.velo_unsorted.first(event);
}

}  // namespace hlt
