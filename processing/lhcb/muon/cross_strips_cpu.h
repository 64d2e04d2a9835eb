// Strips and pads to hits on the CPU. The map has a thousand words, and an event uses about a hundred. The common
// kernel loops over all of them several times; here one pass makes a list of the active cells.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/muon/bank_cpu.h"
#include "lhcb/muon/cross_strips.cuh"

namespace hlt {

/// A place may lie on two cache lines.
inline void prefetch_place(const muon_place& place)
{
    prefetch(&place);
    prefetch(reinterpret_cast<const char*>(&place + 1) - 1);
}

/// The active cells, in order, and the first cell of each word.
struct muon_cell_list {
    uint16_t cell[32u * muon_cell_words];
    uint16_t rank[muon_cell_words];  // only set for words with cells
    uint32_t n = 0;

    /// List the cells, and prefetch their entries in the tables.
    void fill(const muon_geometry& geometry, const uint32_t* lit, const uint32_t* crossed, uint32_t n_words)
    {
        for (uint32_t base = 0; base < n_words; base += n_wide) {
            uint_wide words;
            load_wide(words, lit + base);
            for (uint32_t bits = bits_of(words != 0u) & first_bits(n_words - base); bits != 0u; bits &= bits - 1u) {
                const uint32_t word = base + lowest_bit(bits);
                rank[word] = static_cast<uint16_t>(n);
                for (uint32_t left = lit[word]; left != 0u; left &= left - 1u) {
                    const uint32_t i = word * 32u + lowest_bit(left);
                    cell[n++] = static_cast<uint16_t>(i);
                    prefetch(&geometry.cell[i]);
                    if ((crossed[word] & left & (0u - left)) == 0u) prefetch_place(geometry.place[i]);
                }
            }
        }
    }
};

}  // namespace hlt

HLT_CPU_FORM(muon_cross_strips)
{
    if (!p.takes(event)) return;
    uint16_t* const station_offset = p.muon_hits.station_offset + event * hlt::muon_station_stride;
    if (p.muon_hits.bound[event] == 0u) {
        for (uint32_t i = 0; i < hlt::muon_station_stride; ++i) station_offset[i] = 0;
        p.muon_hits.count[event] = 0;
        return;
    }
    const hlt::muon_geometry& geometry = *p.muon_geometry;
    const uint32_t* const lit = p.events.muon_cells + event * hlt::muon_cell_words;
    const uint32_t* const crossed = p.events.muon_crossed + event * hlt::muon_cell_words;
    const auto is_crossed = [&](uint32_t cell) { return (crossed[cell / 32u] >> cell % 32u & 1u) != 0u; };
    hlt::muon_cell_list cells;
    cells.fill(geometry, lit, crossed, geometry.first_word[hlt::n_muon_stations]);

    uint32_t* const cell_time = p.scratch.cell_time + 2u * p.scratch.first(event);
    for (uint32_t i = 0; i < cells.n; ++i) cell_time[i] = 0xffffffffu;
    const auto time_of = [&](uint32_t cell) -> uint32_t& {
        const uint32_t below = lit[cell / 32u] & ((1u << cell % 32u) - 1u);
        return cell_time[cells.rank[cell / 32u] + static_cast<uint32_t>(__builtin_popcount(below))];
    };
    hlt::for_all_muon_digits(p.raw_banks, event, geometry, [&](uint32_t cell, uint32_t time) {
        uint32_t& mine = time_of(cell);
        mine = hlt::min_of(mine, time);
    });
    for (uint32_t i = 0; i < cells.n; ++i) {
        if (!is_crossed(cells.cell[i])) continue;
        const hlt::muon_cell& cell = geometry.cell[cells.cell[i]];
        for (uint32_t rows = hlt::crossing_rows(cell, lit); rows != 0u; rows &= rows - 1u)
            hlt::prefetch_place(geometry.place[cell.first_pad + hlt::lowest_bit(rows)]);
    }

    const uint32_t first = p.muon_hits.first(event);
    const hlt::muon_hit_columns hits{p.muon_hits.x + first,    p.muon_hits.y + first,     p.muon_hits.z + first,
                                     p.muon_hits.dx + first,   p.muon_hits.dy + first,    p.muon_hits.tile + first,
                                     p.muon_hits.time + first, p.muon_hits.time_y + first};
    uint32_t n_hits = 0, next = 0;
    for (uint32_t station = 0; station < hlt::n_muon_stations; ++station) {
        station_offset[station] = static_cast<uint16_t>(n_hits);
        const uint32_t end = 32u * geometry.first_word[station + 1u], begin = next;
        for (; next < cells.n && cells.cell[next] < end; ++next) {
            if (!is_crossed(cells.cell[next])) continue;
            const hlt::muon_cell& cell = geometry.cell[cells.cell[next]];
            for (uint32_t rows = hlt::crossing_rows(cell, lit); rows != 0u; rows &= rows - 1u) {
                const uint32_t row = hlt::lowest_bit(rows);
                hits.store(n_hits++, geometry.place[cell.first_pad + row], hlt::crossed_tile(cell, row),
                           cell_time[next], time_of(cell.first_row + row));
            }
        }
        for (uint32_t i = begin; i < next; ++i) {
            const uint32_t cell = cells.cell[i];
            if (is_crossed(cell)) continue;
            hits.store(n_hits++, geometry.place[cell], geometry.cell[cell].tile, cell_time[i] | hlt::muon_no_crossing,
                       0);
        }
    }
    for (uint32_t i = hlt::n_muon_stations; i < hlt::muon_station_stride; ++i)
        station_offset[i] = static_cast<uint16_t>(n_hits);
    p.muon_hits.count[event] = n_hits;
}
