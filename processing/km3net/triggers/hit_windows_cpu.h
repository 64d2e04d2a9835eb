// What the hits of a window that moves forward have in common: part of find_candidates_cpu.h.
//
// A hit is compared once with the hits before it, which lie in the lanes of a vector, when it enters the window. So the
// work grows with the number of hits, and not with that of the pairs in each window.
#pragma once

#include "framework/device/wide_lanes.h"
#include "km3net/triggers/find_candidates.cuh"

namespace hlt {

/// Values of hits, with room for a vector before the first one.
template <typename Number>
struct hit_values {
    Number of[n_wide + km3net_max_hits];

    inline Number& operator[](uint32_t hit) { return of[n_wide + hit]; }
    inline Number operator[](uint32_t hit) const { return of[n_wide + hit]; }
    /// The values of the n_wide hits before a hit.
    template <typename Vector>
    inline __attribute__((always_inline)) void load_before(Vector& values, uint32_t hit) const
    {
        load_wide(values, of + hit);
    }
};

/// The first of the n_wide hits before a hit, or hit 0.
inline uint32_t vector_before(uint32_t hit) { return hit > n_wide ? hit - n_wide : 0u; }

/// Bits of those of the n_wide hits before hit `end` that are not before hit `first`, which is before `end`.
inline uint32_t bits_from_hit(uint32_t first, uint32_t end)
{
    return first + n_wide > end ? (all_wide << (first + n_wide - end)) & all_wide : all_wide;
}

/// The number behind the last hit whose bit is set, of the n_wide hits before hit `end`; 0: no bit is set.
inline uint32_t behind_last(uint32_t bits, uint32_t end)
{
    return bits == 0u ? 0u : end - n_wide + 32u - static_cast<uint32_t>(__builtin_clz(bits));
}

/// Hits of a sub-slice, and for those that were in a window: the pairs and triggers of the windows.
template <typename Parameters>
class moving_window {
  public:
    hit_values<int32_t> time;

    inline moving_window(const Parameters& parameters, const uint64_t* hits_of_event, uint32_t n_hits)
        : p(parameters), hits(hits_of_event), n(n_hits)
    {
        for (uint32_t i = 0; i < n; ++i) time[i] = static_cast<int32_t>(time_of_hit(hits[i]));
    }

    /// The candidate that hit i begins, which has min_hits hits in its time window; without triggers if it begins none.
    /// Hits do not decrease from call to call.
    inline km3net_candidate candidate_from(uint32_t i)
    {
        while (behind < i + p.min_hits || (behind < n && time[behind] - time[i] < window)) ++behind;
        const uint32_t end = min_of(behind, i + km3net_max_tested);
        km3net_candidate found{static_cast<uint32_t>(time[i]), 0, behind - i, 0, 0, 0};
        enter(i, end);
        found.charge = charge_before[end] - charge_before[i];
        uint32_t triggers = trigger_n7;
        // A number behind a hit is larger than that of the hit.
        if (simple > i) triggers |= trigger_sc;
        if (floor > i) triggers |= trigger_fc;
        if (adjacent > i) triggers |= trigger_afc;
        if (charged > i) triggers |= trigger_charge;
        if ((triggers & trigger_afc) == 0u || (triggers & (trigger_sc | trigger_fc)) == 0u) return found;
        connect(i, end);
        found.pmts = pmts_from(i, end);
        if (found.pmts >= p.min_pmts) triggers |= trigger_dn7;
        found.causal_hits = group_from(i, end);
        if (found.causal_hits >= p.min_causal) triggers |= trigger_causal;
        if ((triggers & p.required) == p.required) found.triggers = triggers;
        return found;
    }

  private:
    const Parameters& p;
    const uint64_t* const hits;
    const uint32_t n;
    const int32_t window = static_cast<int32_t>(p.time_window);
    const int32_t furthest = static_cast<int32_t>(max_of(p.simple_window, max_of(p.floor_window, p.adjacent_window)));
    uint32_t behind = 0;  // hits of the time window end before it
    static constexpr uint32_t placed_ahead = 8;
    uint32_t placed = 0, entered = 0, connected = 0;  // hits up to these have values, have been compared
    uint32_t simple = 0, floor = 0, adjacent = 0;     // behind the last earlier hit of a pair in SC, FC, AFC
    uint32_t charged = 0;                             // behind the last hit with much charge
    hit_values<int32_t> place, pmt;
    hit_values<float> x, y, z;
    uint32_t charge_before[km3net_max_hits + 1];
    uint64_t repeated = 0;                  // bit h % 64: a later hit is in the PMT of hit h
    uint64_t connections[km3net_max_hits];  // bit h % 64: hit h, at most 63 places before, is connected

    /// Compare the hits from i to `end` with those before them in SC, FC and AFC.
    inline void enter(uint32_t i, uint32_t end)
    {
        if (entered <= i) {
            entered = i;
            charge_before[i] = 0;
        }
        place_hits(i, end);
        for (; entered < end; ++entered) {
            const uint32_t m = entered, charge = charge_of_hit(hits[m]);
            charge_before[m + 1u] = charge_before[m] + charge;
            if (charge > p.min_charge) charged = m + 1u;
            for (uint32_t last = m; last > i; last = vector_before(last)) {
                if (time[m] - time[last - 1u] >= furthest) break;
                pair_up(m, i, last);
            }
        }
    }

    /// Fill the values of PMTs up to hit `end` and, if any are missing, of some hits behind it: vectors that are loaded
    /// soon after their last lane was stored would wait for it.
    inline void place_hits(uint32_t i, uint32_t end)
    {
        if (placed >= end) return;
        const uint32_t last = min_of(n, end + placed_ahead);
        for (placed = max_of(placed, i); placed < last; ++placed) {
            const uint32_t number = pmt_of_hit(hits[placed]);
            const km3net_pmt& of_hit = p.km3net.pmt[number];
            pmt[placed] = static_cast<int32_t>(number);
            place[placed] = static_cast<int32_t>(place_of_pmt(of_hit));
            x[placed] = of_hit.x;
            y[placed] = of_hit.y;
            z[placed] = of_hit.z;
        }
    }

    inline __attribute__((always_inline)) void pair_up(uint32_t m, uint32_t i, uint32_t end)
    {
        int_wide times, places, pmts;
        time.load_before(times, end);
        place.load_before(places, end);
        pmt.load_before(pmts, end);
        const int_wide apart = time[m] - times;
        const int32_t of_hit = place[m];
        const uint32_t used = bits_from_hit(i, end);
        const int_wide same_line = (places >> 16) == (of_hit >> 16), others = pmts != pmt[m];
        const int_wide up = (of_hit >> 8 & 0xff) - (places >> 8 & 0xff);
        const int_wide same_floor = same_line & (up == 0) & others;
        const uint32_t in_floor = used & bits_of(same_floor & (apart < static_cast<int32_t>(p.floor_window)));
        const uint32_t in_group =
            used & bits_of(same_floor & (places == of_hit) & (apart < static_cast<int32_t>(p.simple_window)));
        const uint32_t next_floor =
            used & bits_of(same_line & ((up == 1) | (up == -1)) & (apart < static_cast<int32_t>(p.adjacent_window)));
        floor = max_of(floor, behind_last(in_floor, end));
        simple = max_of(simple, behind_last(in_group, end));
        adjacent = max_of(adjacent, behind_last(next_floor, end));
    }

    /// Compare the hits behind i up to `end` with those before them: the same PMT, and connections by light.
    inline void connect(uint32_t i, uint32_t end)
    {
        const float per_metre = p.ns_per_metre * p.ns_per_metre;
        if (connected <= i) {
            connected = i + 1u;
            repeated &= ~(uint64_t{1} << i % 64u);
        }
        for (; connected < end; ++connected) {
            const uint32_t m = connected;
            uint64_t found = 0;
            uint32_t same = 0;
            for (uint32_t last = m; last > i; last = vector_before(last)) {
                int_wide times, pmts;
                float_wide xs, ys, zs;
                time.load_before(times, last);
                pmt.load_before(pmts, last);
                x.load_before(xs, last);
                y.load_before(ys, last);
                z.load_before(zs, last);
                const float_wide dx = xs - x[m], dy = ys - y[m], dz = zs - z[m];
                const float_wide late = __builtin_convertvector(time[m] - times, float_wide) - p.causal_slack;
                const float_wide square = dx * dx + dy * dy + dz * dz;
                const uint32_t used = bits_from_hit(i, last), of_pmt = used & bits_of(pmts == pmt[m]);
                const uint32_t by_light = used & ~of_pmt &
                                          (bits_where<wide_comparison::at_most>(late, float_wide{}) |
                                           bits_where<wide_comparison::at_most>(late * late, square * per_metre));
                const uint32_t turn = (last - n_wide) % 64u;
                const uint64_t bits = by_light;
                found |= bits << turn | bits >> (64u - turn) % 64u;
                same = max_of(same, behind_last(of_pmt, last));
            }
            connections[m] = found;
            repeated &= ~(uint64_t{1} << m % 64u);
            if (same != 0u) repeated |= uint64_t{1} << (same - 1u) % 64u;
        }
    }

    /// different_pmts of the hits from i to `end`, the last one that has been compared: those without a later one in
    /// the same PMT.
    inline uint32_t pmts_from(uint32_t i, uint32_t end) const
    {
        const uint64_t later = repeated >> i % 64u | repeated << (64u - i % 64u) % 64u;
        return end - i - static_cast<uint32_t>(__builtin_popcountll(later & ~uint64_t{0} >> (64u - (end - i))));
    }

    /// causal_group of the hits from i to `end`.
    inline uint32_t group_from(uint32_t i, uint32_t end) const
    {
        uint64_t members = uint64_t{1} << i % 64u, next = members;
        for (uint32_t m = i + 1u; m < end; ++m) {
            next = next << 1u | next >> 63u;
            members = (members & ~connections[m]) == 0u ? members | next : members;
        }
        return static_cast<uint32_t>(__builtin_popcountll(members));
    }
};

}  // namespace hlt
