// Muon banks to a bit map of the active strips and pads, and the exact number of their hits (docs/physics/muon.md).
//
// A malformed bank flags the event and gives no digit; addresses without a tile give no digit either. A digit that is
// sent twice counts once. Skipped events (skipped_events.cuh) are not read.
// In:  the fragments of the muon rows, muon_geometry, events.flags.
// Out: events.{muon_cells, muon_crossed} [event][1024]: active cells, and active cells in a crossing;
//      muon_hits.bound [event]; events.flags.
// One block per event, four threads for each bank, then threads stride over the words of the map.
// Bounds: geometry.first_word[4] <= 1024 words; at most 2^15 cells, which make fewer hits than 2^16.
#pragma once

#include "lhcb/muon/bank.cuh"
#include "lhcb/muon/crossings.cuh"
#include "lhcb/muon/generated/muon_find_cells.h"
#include "lhcb/raw_data/skipped_events.cuh"

HLT_KERNEL(muon_find_cells)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t lit[hlt::muon_cell_words];
    __shared__ uint32_t crossed[hlt::muon_cell_words];
    __shared__ uint32_t n_hits, broken_banks;

    if (hlt::is_skipped(p.events.flags[event])) {
        if (threadIdx.x == 0) p.muon_hits.bound[event] = 0;
        return;
    }
    const hlt::muon_geometry& geometry = *p.muon_geometry;
    const uint32_t n_words = geometry.first_word[hlt::n_muon_stations];
    for (uint32_t i = threadIdx.x; i < n_words; i += blockDim.x) lit[i] = crossed[i] = 0;
    if (threadIdx.x == 0) n_hits = broken_banks = 0;
    __syncthreads();

    const bool broken = hlt::for_muon_digits(
        p.raw_banks, event, geometry, [&](uint32_t cell, uint32_t) { atomicOr(&lit[cell / 32u], 1u << cell % 32u); });
    if (broken) atomicOr(&broken_banks, 1u);
    __syncthreads();

    uint32_t n = 0;
    for (uint32_t i = threadIdx.x; i < n_words; i += blockDim.x) n += hlt::mark_crossings(geometry, lit, i, crossed);
    __syncthreads();
    uint32_t* const map = p.events.muon_cells + event * hlt::muon_cell_words;
    uint32_t* const crossed_map = p.events.muon_crossed + event * hlt::muon_cell_words;
    for (uint32_t i = threadIdx.x; i < n_words; i += blockDim.x) {
        map[i] = lit[i];
        crossed_map[i] = crossed[i];
        n += static_cast<uint32_t>(__popc(lit[i] & ~crossed[i]));
    }
    atomicAdd(&n_hits, n);
    __syncthreads();
    if (threadIdx.x == 0) {
        p.muon_hits.bound[event] = n_hits;
        if (broken_banks != 0u) p.events.flags[event] |= hlt::bank_error;
    }
}
