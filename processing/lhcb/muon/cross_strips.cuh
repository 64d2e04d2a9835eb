// Strips and pads to hits: crossings of an x strip and a y strip, and every cell without a crossing
// (docs/physics/muon.md).
//
// The y strips that can cross an x strip are neighbouring bits of the map, so one load of a word finds all crossings.
// In a station crossed hits are first, then the others, both by ascending tile id, the order of the cells. The time is
// that of the x strip, or of the single cell; time_y that of the y strip of a crossing. Of two digits of one cell the
// smaller time counts.
// In:  events.{muon_cells, muon_crossed} [event][1024], muon_hits.bound, the fragments of the muon rows (for the
//      times), muon_geometry.
// Out: muon_hits.{x, y, z, dx, dy, tile, time, time_y}, muon_hits.count [event], muon_hits.station_offset [event][8];
//      scratch.cell_time.
// One block per event; each thread takes consecutive words of the map, so that one prefix sum over the threads gives
// the places of a station.
// Bounds: muon_hits.bound is the exact number of hits, counted from the same map; each crossing has two cells, any
// other hit one, so cell_time has a place for every cell.
#pragma once

#include "lhcb/muon/bank.cuh"
#include "lhcb/muon/crossings.cuh"
#include "lhcb/muon/generated/muon_cross_strips.h"

namespace hlt {

/// Destination of the hits, from the first one of an event.
struct muon_hit_columns {
    float* __restrict__ x;
    float* __restrict__ y;
    float* __restrict__ z;
    float* __restrict__ dx;
    float* __restrict__ dy;
    uint32_t* __restrict__ tile;
    uint8_t* __restrict__ time;
    uint8_t* __restrict__ time_y;

    __device__ void store(uint32_t at, const muon_place& place, uint32_t id, uint32_t when, uint32_t when_y) const
    {
        x[at] = place.x;
        y[at] = place.y;
        z[at] = place.z;
        dx[at] = place.dx;
        dy[at] = place.dy;
        tile[at] = id;
        time[at] = static_cast<uint8_t>(when);
        time_y[at] = static_cast<uint8_t>(when_y);
    }
};

/// The tile of the pad of an x strip at row `row` of its crossing y strips: y and the grid in y are those of the y
/// strips.
__device__ uint32_t crossed_tile(const muon_cell& cell, uint32_t row)
{
    const uint32_t grid_y = (cell.tile >> 24 & 31u) * cell.rows;
    const uint32_t y = (cell.tile & 31u) * cell.rows + row;
    return (cell.tile & 0x00ffffe0u) | grid_y << 24 | y;
}

}  // namespace hlt

HLT_KERNEL(muon_cross_strips)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t lit[hlt::muon_cell_words];
    __shared__ uint16_t rank[hlt::muon_cell_words];  // lit cells before each word

    uint16_t* const station_offset = p.muon_hits.station_offset + event * hlt::muon_station_stride;
    if (p.muon_hits.bound[event] == 0u) {
        for (uint32_t i = threadIdx.x; i < hlt::muon_station_stride; i += blockDim.x) station_offset[i] = 0;
        if (threadIdx.x == 0) p.muon_hits.count[event] = 0;
        return;
    }
    const hlt::muon_geometry& geometry = *p.muon_geometry;
    const uint32_t n_words = geometry.first_word[hlt::n_muon_stations];
    const uint32_t* const map = p.events.muon_cells + event * hlt::muon_cell_words;
    const uint32_t* const crossed = p.events.muon_crossed + event * hlt::muon_cell_words;
    for (uint32_t i = threadIdx.x; i < n_words; i += blockDim.x) lit[i] = map[i];
    __syncthreads();

    const uint32_t words_of_thread = (n_words + blockDim.x - 1u) / blockDim.x;
    const uint32_t first_word = hlt::min_of(threadIdx.x * words_of_thread, n_words);
    const uint32_t last_word = hlt::min_of(first_word + words_of_thread, n_words);
    uint32_t n_mine = 0, n_lit;
    for (uint32_t i = first_word; i < last_word; ++i) n_mine += static_cast<uint32_t>(__popc(lit[i]));
    uint32_t before = hlt::block_exclusive_sum(n_mine, scratch, n_lit);
    for (uint32_t i = first_word; i < last_word; ++i) {
        rank[i] = static_cast<uint16_t>(before);
        before += static_cast<uint32_t>(__popc(lit[i]));
    }
    uint32_t* const cell_time = p.scratch.cell_time + 2u * p.scratch.first(event);
    for (uint32_t i = threadIdx.x; i < n_lit; i += blockDim.x) cell_time[i] = 0xffffffffu;
    __syncthreads();
    const auto time_of = [&](uint32_t cell) -> uint32_t& {
        const uint32_t below = lit[cell / 32u] & ((1u << cell % 32u) - 1u);
        return cell_time[rank[cell / 32u] + static_cast<uint32_t>(__popc(below))];
    };
    hlt::for_muon_digits(p.raw_banks, event, geometry,
                         [&](uint32_t cell, uint32_t time) { atomicMin(&time_of(cell), time); });
    __syncthreads();

    const uint32_t first = p.muon_hits.first(event);
    const hlt::muon_hit_columns hits{p.muon_hits.x + first,    p.muon_hits.y + first,     p.muon_hits.z + first,
                                     p.muon_hits.dx + first,   p.muon_hits.dy + first,    p.muon_hits.tile + first,
                                     p.muon_hits.time + first, p.muon_hits.time_y + first};
    uint32_t n_hits = 0;
    for (uint32_t station = 0; station < hlt::n_muon_stations; ++station) {
        if (threadIdx.x == 0) station_offset[station] = static_cast<uint16_t>(n_hits);
        const uint32_t begin = geometry.first_word[station];
        const uint32_t n = geometry.first_word[station + 1u] - begin;
        const uint32_t each = (n + blockDim.x - 1u) / blockDim.x;
        const uint32_t from = begin + hlt::min_of(threadIdx.x * each, n);
        const uint32_t to = begin + hlt::min_of(threadIdx.x * each + each, n);
        uint32_t n_crossed = 0, n_alone = 0;
        for (uint32_t word = from; word < to; ++word) {
            n_alone += static_cast<uint32_t>(__popc(lit[word] & ~crossed[word]));
            for (uint32_t left = lit[word] & crossed[word]; left != 0u; left &= left - 1u) {
                const uint32_t i = word * 32u + static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1u;
                const hlt::muon_cell& cell = geometry.cell[i];
                n_crossed += static_cast<uint32_t>(__popc(hlt::crossing_rows(cell, lit)));
            }
        }
        uint32_t all;  // both numbers in one word: neither reaches 2^16
        const uint32_t mine = hlt::block_exclusive_sum(n_crossed << 16 | n_alone, scratch, all);
        uint32_t at_crossed = n_hits + (mine >> 16);
        uint32_t at_alone = n_hits + (all >> 16) + (mine & 0xffffu);
        n_hits += (all >> 16) + (all & 0xffffu);
        for (uint32_t word = from; word < to; ++word) {
            for (uint32_t left = lit[word]; left != 0u; left &= left - 1u) {
                const uint32_t bit = left & (0u - left);
                const uint32_t i = word * 32u + static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1u;
                const hlt::muon_cell cell = geometry.cell[i];
                if ((crossed[word] & bit) == 0u) {
                    hits.store(at_alone++, geometry.place[i], cell.tile, time_of(i) | hlt::muon_no_crossing, 0);
                    continue;
                }
                for (uint32_t rows = hlt::crossing_rows(cell, lit); rows != 0u; rows &= rows - 1u) {
                    const uint32_t row = static_cast<uint32_t>(__ffs(static_cast<int>(rows))) - 1u;
                    hits.store(at_crossed++, geometry.place[cell.first_pad + row], hlt::crossed_tile(cell, row),
                               time_of(i), time_of(cell.first_row + row));
                }
            }
        }
    }
    for (uint32_t i = hlt::n_muon_stations + threadIdx.x; i < hlt::muon_station_stride; i += blockDim.x)
        station_offset[i] = static_cast<uint16_t>(n_hits);
    if (threadIdx.x == 0) p.muon_hits.count[event] = n_hits;
}
