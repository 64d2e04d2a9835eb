// Candidates and windows of a sub-slice (B. Bouhadef et al., "Parallel Neutrino Triggers Using GPUs for an Underwater
// Telescope", DESY-PROC-2014-05, section 4.2).
//
// A hit begins a candidate if, with the hits of the time window from it on, N7 and ((SC and AFC) or (FC and AFC)) hold.
// N7 is t[i + 6] - t[i] < TW; the paper prints the reversed sign and the index i + 7, which always holds. Windows are
// the times within `padding` of the first hits, joined where they touch.
// In: the sorted hits of a sub-slice and of the time window behind it, km3net.pmt. Out: candidates in the order of
// time, windows, flags. One block per event. Threads stride over hits twice: to find the nearest later partner of each
// hit in SC, FC and AFC, and to test the hits from it on. Thread 0 joins windows.
// Bounds: km3net_max_hits, km3net_max_tested hits from each on, km3net_max_candidates, km3net_max_windows.
#pragma once

#include "framework/device/math.cuh"
#include "km3net/hits/hit_banks.cuh"
#include "km3net/triggers/generated/km3net_find_candidates.h"

namespace hlt {

/// Line, floor and group of a PMT in one word.
__device__ __forceinline__ uint32_t place_of_pmt(const km3net_pmt& pmt)
{
    return uint32_t{pmt.line} << 16 | uint32_t{pmt.floor} << 8 | pmt.group;
}

/// Places behind a hit of its nearest partners in SC, FC and AFC, in a byte each from the lowest on; 0: none.
template <typename Parameters>
__device__ uint32_t partners_of_hit(const Parameters& p, const uint64_t* hits, const uint32_t* places, uint32_t i,
                                    uint32_t n)
{
    const uint32_t furthest = max_of(p.simple_window, max_of(p.floor_window, p.adjacent_window));
    uint32_t found = 0;
    for (uint32_t k = 1; k < km3net_max_tested && i + k < n; ++k) {
        const uint32_t apart = time_of_hit(hits[i + k]) - time_of_hit(hits[i]);
        if (apart >= furthest) break;
        const uint32_t a = places[i], b = places[i + k];
        if (a >> 8 == b >> 8) {
            if (pmt_of_hit(hits[i]) == pmt_of_hit(hits[i + k])) continue;
            if (a == b && apart < p.simple_window && (found & 0xFFu) == 0u) found |= k;
            if (apart < p.floor_window && (found & 0xFF00u) == 0u) found |= k << 8;
        } else if (a >> 16 == b >> 16) {
            const uint32_t up = (b >> 8 & 0xFFu) - (a >> 8 & 0xFFu);
            if ((up == 1u || up == ~0u) && apart < p.adjacent_window && (found & 0xFF0000u) == 0u) found |= k << 16;
        }
    }
    return found;
}

/// Whether light, or the slack, connects two hits that are `apart` ns from each other. Products alone: all back ends
/// round alike.
template <typename Parameters>
__device__ bool is_causal(const Parameters& p, uint64_t a, uint64_t b)
{
    const km3net_pmt from = p.km3net.pmt[pmt_of_hit(a)], to = p.km3net.pmt[pmt_of_hit(b)];
    const float dx = from.x - to.x, dy = from.y - to.y, dz = from.z - to.z;
    const float late = static_cast<float>(time_of_hit(b) - time_of_hit(a)) - p.causal_slack;
    const float square = dx * dx + dy * dy + dz * dz;
    return late <= 0.f || late * late <= square * (p.ns_per_metre * p.ns_per_metre);
}

/// Size of the group of hits that the first of n hits begins: a later hit joins if it is connected with all in the
/// group and in a PMT that the group does not have.
template <typename Parameters>
__device__ uint32_t causal_group(const Parameters& p, const uint64_t* hits, uint32_t n)
{
    uint64_t members = 1;
    uint32_t size = 1;
    for (uint32_t k = 1; k < n; ++k) {
        bool joins = true;
        for (uint32_t m = 0; m < k && joins; ++m)
            if ((members >> m & 1u) != 0u)
                joins = pmt_of_hit(hits[m]) != pmt_of_hit(hits[k]) && is_causal(p, hits[m], hits[k]);
        if (joins) {
            members |= uint64_t{1} << k;
            ++size;
        }
    }
    return size;
}

__device__ uint32_t different_pmts(const uint64_t* hits, uint32_t n)
{
    uint32_t found = 0;
    for (uint32_t k = 0; k < n; ++k) {
        bool is_new = true;
        for (uint32_t m = 0; m < k && is_new; ++m) is_new = pmt_of_hit(hits[m]) != pmt_of_hit(hits[k]);
        found += is_new ? 1u : 0u;
    }
    return found;
}

/// The candidate that hit i begins; without triggers if it begins none.
template <typename Parameters>
__device__ km3net_candidate candidate_of_hit(const Parameters& p, const uint64_t* hits, const uint32_t* partners,
                                             uint32_t i, uint32_t n)
{
    km3net_candidate found{time_of_hit(hits[i]), 0, 0, 0, 0, 0};
    if (i + p.min_hits > n || time_of_hit(hits[i + p.min_hits - 1u]) - found.time >= p.time_window) return found;
    found.hits = p.min_hits;
    while (i + found.hits < n && time_of_hit(hits[i + found.hits]) - found.time < p.time_window) ++found.hits;
    const uint32_t tested = min_of(found.hits, km3net_max_tested);
    uint32_t triggers = trigger_n7;
    for (uint32_t k = 0; k < tested; ++k) {
        const uint32_t of_hit = partners[i + k], sc = of_hit & 0xFFu, fc = of_hit >> 8 & 0xFFu, afc = of_hit >> 16;
        if (sc != 0u && k + sc < tested) triggers |= trigger_sc;
        if (fc != 0u && k + fc < tested) triggers |= trigger_fc;
        if (afc != 0u && k + afc < tested) triggers |= trigger_afc;
        found.charge += charge_of_hit(hits[i + k]);
        if (charge_of_hit(hits[i + k]) > p.min_charge) triggers |= trigger_charge;
    }
    if ((triggers & trigger_afc) == 0u || (triggers & (trigger_sc | trigger_fc)) == 0u) return found;
    found.pmts = different_pmts(hits + i, tested);
    if (found.pmts >= p.min_pmts) triggers |= trigger_dn7;
    found.causal_hits = causal_group(p, hits + i, tested);
    if (found.causal_hits >= p.min_causal) triggers |= trigger_causal;
    if ((triggers & p.required) == p.required) found.triggers = triggers;
    return found;
}

/// The window of one candidate.
__device__ km3net_window window_of(const km3net_candidate& of, uint32_t padding)
{
    const int32_t time = static_cast<int32_t>(of.time), reach = static_cast<int32_t>(padding);
    return {time - reach, time + reach, of.triggers, 1, of.hits, of.pmts, of.causal_hits, of.charge};
}

__device__ void join_windows(km3net_window& window, const km3net_window& other)
{
    window.end_ns = other.end_ns;
    window.lines |= other.lines;
    window.candidates += other.candidates;
    window.hits = max_of(window.hits, other.hits);
    window.pmts = max_of(window.pmts, other.pmts);
    window.causal_hits = max_of(window.causal_hits, other.causal_hits);
    window.charge = max_of(window.charge, other.charge);
}

/// Whether no candidate begins in a sub-slice because it repeats one of a neighbour.
template <typename Parameters>
__device__ uint32_t flags_of_place(const Parameters& p, uint32_t event)
{
    const event_row place = p.input.event_rows[event];
    const row_range rows = p.input.mep_rows[place.mep * n_subdetectors + km3net_subdetector];
    if (rows.count == 0u) return 0;
    const uint32_t n = p.input.mfp_rows[rows.first].n_fragments;
    if (place.index < p.margin_before || place.index + p.margin_behind >= n) return margin;
    return place.index + 1u == n ? uint32_t{nothing_behind} : 0u;
}

}  // namespace hlt

HLT_KERNEL(km3net_find_candidates)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t places[hlt::km3net_max_hits], partners[hlt::km3net_max_hits];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t flags;
    __shared__ hlt::km3net_candidate round[hlt::max_block_size];
    __shared__ hlt::km3net_window open;
    __shared__ uint32_t n_windows;
    const uint64_t* const hits = p.km3net_hits.hit + p.km3net_hits.first(event);
    const uint32_t n = p.km3net_hits.count[event];
    const uint32_t of_place = hlt::flags_of_place(p, event);
    const uint32_t n_own = (of_place & hlt::margin) != 0u ? 0u : p.km3net_hits.own[event];
    if (threadIdx.x == 0) {
        flags = of_place;
        n_windows = 0;
    }
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        places[i] = hlt::place_of_pmt(p.km3net.pmt[hlt::pmt_of_hit(hits[i])]);
    __syncthreads();
    if (n_own >= 1u && n >= p.min_hits)
        for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
            partners[i] = hlt::partners_of_hit(p, hits, places, i, n);
    __syncthreads();

    uint32_t n_found = 0;
    hlt::km3net_candidate* const listed = p.candidates.candidate + p.candidates.first(event);
    hlt::km3net_window* const windows = p.windows.window + p.windows.first(event);
    for (uint32_t begin = 0; begin < n_own; begin += blockDim.x) {
        const uint32_t i = begin + threadIdx.x;
        hlt::km3net_candidate found{0, 0, 0, 0, 0, 0};
        if (i < n_own) found = hlt::candidate_of_hit(p, hits, partners, i, n);
        if (found.hits > hlt::km3net_max_tested) atomicOr(&flags, uint32_t{hlt::crowded});
        uint32_t n_here;
        const uint32_t of_round = hlt::block_exclusive_count(found.triggers != 0u, scratch, n_here);
        if (found.triggers != 0u) {
            round[of_round] = found;
            if (n_found + of_round < hlt::km3net_max_candidates) listed[n_found + of_round] = found;
        }
        __syncthreads();
        if (threadIdx.x == 0)
            for (uint32_t k = 0; k < n_here; ++k) {
                const hlt::km3net_window next = hlt::window_of(round[k], p.padding);
                const bool starts = n_windows == 0u || next.start_ns > open.end_ns;
                if (starts && n_windows < hlt::km3net_max_windows) {
                    if (n_windows != 0u) windows[n_windows - 1u] = open;
                    open = next;
                    ++n_windows;
                } else {
                    if (starts) flags |= hlt::windows_joined;
                    hlt::join_windows(open, next);
                }
            }
        n_found += n_here;
        __syncthreads();
    }
    if (threadIdx.x != 0) return;
    if (n_windows != 0u) windows[n_windows - 1u] = open;
    p.candidates.count[event] = hlt::min_of(n_found, hlt::km3net_max_candidates);
    p.windows.count[event] = n_windows;
    const uint32_t all = flags | (n_found > hlt::km3net_max_candidates ? uint32_t{hlt::triggers_left_out} : 0u);
    if (all != 0u) p.events.flags[event] |= all;
}
