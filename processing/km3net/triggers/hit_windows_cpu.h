// Candidates of as many hits as a vector has lanes: part of find_candidates_cpu.h.
//
// Each step is a loop over places k whose lanes are neighbouring hits: the k-th hit before each, or the k-th hit of
// each time window. Such a loop has few turns, all of which but the last are predicted.
#pragma once

#include "framework/device/wide_lanes.h"
#include "km3net/triggers/find_candidates.cuh"

namespace hlt {

/// Values of hits, with room for all hits of a window before the first one and behind the last one.
template <typename Number>
struct hit_values {
    static constexpr uint32_t room = km3net_max_tested + n_wide;
    Number of[room + km3net_max_hits + room];

    inline Number& operator[](uint32_t hit) { return of[room + hit]; }
    inline Number operator[](uint32_t hit) const { return of[room + hit]; }
    /// The values of n_wide hits, from the k-th one before hit `first` on.
    template <typename Vector>
    inline __attribute__((always_inline)) void load_before(Vector& values, uint32_t first, uint32_t k) const
    {
        std::memcpy(&values, of + room + first - k, sizeof values);
    }
};

/// Candidates of n_wide hits, one in each lane.
struct wide_candidates {
    int_wide hits, pmts, causal_hits, charge, triggers;
    uint32_t found;  // bits of lanes with a candidate
};

/// Hits of a sub-slice, and for those that were in a window: what they have in common with the hits before them.
template <typename Parameters>
class moving_window {
  public:
    inline moving_window(const Parameters& parameters, const uint64_t* hits_of_event, uint32_t n_hits)
        : p(parameters), hits(hits_of_event), n(n_hits)
    {
        for (uint32_t k = 0; k < time.room; ++k) time.of[k] = long_before;
        for (uint32_t i = 0; i < n; ++i) time[i] = static_cast<int32_t>(time_of_hit(hits[i]));
        for (uint32_t k = 0; k < time.room; ++k) time[n + k] = long_after;
    }

    /// Bits of the n_wide hits from hit `first` on that have min_hits hits in their time window.
    inline uint32_t begins_from(uint32_t first) const
    {
        int_wide times, last;
        time.load_before(times, first, 0);
        std::memcpy(&last, &time.of[time.room + first + p.min_hits - 1u], sizeof last);
        return bits_of(last - times < window);
    }

    /// The candidates of the n_wide hits from hit `first` on, of which those with a bit in `begins`, not 0, have
    /// min_hits hits in their time windows. `first` increases from call to call.
    inline wide_candidates candidates_from(uint32_t first, uint32_t begins)
    {
        const uint32_t low = first + lowest_bit(begins),
                       high = first + 31u - static_cast<uint32_t>(__builtin_clz(begins));
        wide_candidates found;
        found.hits = hits_from(first, low, high);
        const int_wide most = int_wide{} + static_cast<int32_t>(km3net_max_tested);
        const int_wide tested = found.hits < most ? found.hits : most;
        const uint32_t end = min_of(behind, high + km3net_max_tested);
        enter(low, end);
        byte_wide in_pair{};
        found.charge = int_wide{};
        const uint32_t longest = end - low;
        for (uint32_t k = 0; k < longest; ++k) {
            const int_wide inside = tested > static_cast<int32_t>(k);
            if (bits_of(inside) == 0u) break;
            byte_wide distances;
            int_wide charges;
            std::memcpy(&distances, &partners.of[partners.room + first + k], sizeof distances);
            std::memcpy(&charges, &charge.of[charge.room + first + k], sizeof charges);
            in_pair |= (distances <= static_cast<int8_t>(k)) & (byte_wide)inside;
            found.charge += charges & inside;
        }
        const int_wide pairs = (int_wide)in_pair;
        const int_wide simple = (pairs & 0xff) != 0, floor = (pairs & 0xff00) != 0, adjacent = (pairs & 0xff0000) != 0;
        found.triggers = int_wide{} + static_cast<int32_t>(trigger_n7);
        found.triggers |= simple & static_cast<int32_t>(trigger_sc);
        found.triggers |= floor & static_cast<int32_t>(trigger_fc);
        found.triggers |= adjacent & static_cast<int32_t>(trigger_afc);
        found.triggers |= (pairs < 0) & static_cast<int32_t>(trigger_charge);
        found.found = begins & bits_of(adjacent & (simple | floor));
        if (found.found == 0u) return found;
        connect(low, end);
        // Bit j - 1: the j-th hit before the k-th one is in the group.
        long_wide members{};
        members += 1;
        found.causal_hits = int_wide{} + 1;
        found.pmts = found.causal_hits;
        for (uint32_t k = 1; k < longest; ++k) {
            const int_wide inside = tested > static_cast<int32_t>(k);
            if (bits_of(inside) == 0u) break;
            int_wide distances;
            long_wide connected_to;
            std::memcpy(&distances, &same_pmt.of[same_pmt.room + first + k], sizeof distances);
            std::memcpy(&connected_to, &connections.of[connections.room + first + k], sizeof connected_to);
            const long_wide joins = (members & ~connected_to) == 0;
            members = members << 1 | (joins & 1);
            found.causal_hits -= __builtin_convertvector(joins, int_wide) & inside;
            found.pmts -= (distances > static_cast<int32_t>(k)) & inside;
        }
        found.triggers |= (found.pmts >= static_cast<int32_t>(p.min_pmts)) & static_cast<int32_t>(trigger_dn7);
        found.triggers |=
            (found.causal_hits >= static_cast<int32_t>(p.min_causal)) & static_cast<int32_t>(trigger_causal);
        const int32_t required = static_cast<int32_t>(p.required);
        found.found &= bits_of((found.triggers & required) == required);
        return found;
    }

  private:
    using byte_wide = int8_t __attribute__((vector_size(4 * n_wide)));
    using long_wide = int64_t __attribute__((vector_size(8 * n_wide)));
    // Further from all times than any window, and without overflow of differences.
    static constexpr int32_t long_before = -(1 << 29), long_after = 1 << 29;
    static constexpr int32_t no_partner = 127;

    const Parameters& p;
    const uint64_t* const hits;
    const uint32_t n;
    const int32_t window = static_cast<int32_t>(p.time_window);
    const int32_t furthest = static_cast<int32_t>(max_of(p.simple_window, max_of(p.floor_window, p.adjacent_window)));
    uint32_t behind = 0;                              // hits of the last time window end before it
    uint32_t placed = 0, entered = 0, connected = 0;  // hits up to these have values, have been compared
    hit_values<int32_t> time, place, pmt, charge;
    hit_values<float> x, y, z;
    // Of each hit, how many places before it is its last partner: in the bytes of SC, FC and AFC from the lowest on;
    // the highest is 0 for a hit with much charge.
    hit_values<int32_t> partners;
    hit_values<int32_t> same_pmt;     // how many places before it is the last hit in the same PMT
    hit_values<int64_t> connections;  // bit j - 1: the j-th hit before it is connected

    /// The number of hits in the time windows of lanes `low` to `high`. A window does not end before an earlier one.
    inline int_wide hits_from(uint32_t first, uint32_t low, uint32_t high)
    {
        int_wide times;
        time.load_before(times, first, 0);
        behind = max_of(behind, low + p.min_hits);
        const int_wide end = times + window;
        int_wide found = static_cast<int32_t>(behind - first) - (int_wide)wide_numbers;
        for (const int32_t last = time[high] + window; time[behind] < last; ++behind) found -= time[behind] < end;
        return found;
    }

    /// Compare the hits from `low` to `end` with those before them in SC, FC and AFC.
    inline void enter(uint32_t low, uint32_t end)
    {
        entered = max_of(entered, low);
        for (; entered < end; entered += n_wide) {
            place_hits(low, min_of(n, entered + n_wide));
            pair_up(entered);
        }
    }

    inline void place_hits(uint32_t low, uint32_t end)
    {
        for (placed = max_of(placed, low); placed < end; ++placed) {
            const uint32_t number = pmt_of_hit(hits[placed]);
            const km3net_pmt& of_hit = p.km3net.pmt[number];
            pmt[placed] = static_cast<int32_t>(number);
            place[placed] = static_cast<int32_t>(place_of_pmt(of_hit));
            charge[placed] = static_cast<int32_t>(charge_of_hit(hits[placed]));
            x[placed] = of_hit.x;
            y[placed] = of_hit.y;
            z[placed] = of_hit.z;
        }
    }

    inline __attribute__((always_inline)) void pair_up(uint32_t first)
    {
        int_wide times, places, pmts, charges;
        time.load_before(times, first, 0);
        place.load_before(places, first, 0);
        pmt.load_before(pmts, first, 0);
        charge.load_before(charges, first, 0);
        const int_wide none = int_wide{} + no_partner;
        int_wide simple = none, floor = none, adjacent = none;
        for (uint32_t k = 1; k < km3net_max_tested; ++k) {
            int_wide times_before, places_before, pmts_before;
            time.load_before(times_before, first, k);
            const int_wide apart = times - times_before;
            if (bits_of(apart < furthest) == 0u) break;
            place.load_before(places_before, first, k);
            pmt.load_before(pmts_before, first, k);
            const int_wide distance = int_wide{} + static_cast<int32_t>(k);
            const int_wide same_line = (places >> 16) == (places_before >> 16);
            const int_wide up = (places >> 8 & 0xff) - (places_before >> 8 & 0xff);
            const int_wide in_floor = same_line & (up == 0) & (pmts != pmts_before);
            const int_wide in_group = in_floor & (places == places_before);
            const int_wide next_floor = same_line & ((up == 1) | (up == -1));
            floor = (in_floor & (apart < static_cast<int32_t>(p.floor_window)) & (floor == none)) ? distance : floor;
            simple =
                (in_group & (apart < static_cast<int32_t>(p.simple_window)) & (simple == none)) ? distance : simple;
            adjacent = (next_floor & (apart < static_cast<int32_t>(p.adjacent_window)) & (adjacent == none)) ? distance
                                                                                                             : adjacent;
        }
        const int_wide charged = (charges > static_cast<int32_t>(p.min_charge)) ? int_wide{} : none;
        const int_wide all = simple | floor << 8 | adjacent << 16 | charged << 24;
        std::memcpy(&partners[first], &all, sizeof all);
    }

    /// Compare the hits behind `low` up to `end` with those before them: the same PMT, and connections by light.
    inline void connect(uint32_t low, uint32_t end)
    {
        for (connected = max_of(connected, low); connected < end; connected += n_wide) {
            place_hits(low, min_of(n, connected + n_wide));
            connect_hits(connected);
        }
    }

    inline __attribute__((always_inline)) void connect_hits(uint32_t first)
    {
        const float per_metre = p.ns_per_metre * p.ns_per_metre;
        int_wide times, pmts;
        float_wide xs, ys, zs;
        time.load_before(times, first, 0);
        pmt.load_before(pmts, first, 0);
        x.load_before(xs, first, 0);
        y.load_before(ys, first, 0);
        z.load_before(zs, first, 0);
        const int_wide none = int_wide{} + no_partner;
        int_wide same = none;
        long_wide found{};
        for (uint32_t k = 1; k < km3net_max_tested; ++k) {
            int_wide times_before, pmts_before;
            float_wide x_before, y_before, z_before;
            time.load_before(times_before, first, k);
            if (bits_of(times - times_before < window) == 0u) break;
            pmt.load_before(pmts_before, first, k);
            x.load_before(x_before, first, k);
            y.load_before(y_before, first, k);
            z.load_before(z_before, first, k);
            const float_wide dx = x_before - xs, dy = y_before - ys, dz = z_before - zs;
            const float_wide late = __builtin_convertvector(times - times_before, float_wide) - p.causal_slack;
            const float_wide square = dx * dx + dy * dy + dz * dz;
            const int_wide of_pmt = pmts == pmts_before;
            const int_wide by_light = ((late <= 0.f) | (late * late <= square * per_metre)) & ~of_pmt;
            same = (of_pmt & (same == none)) ? int_wide{} + static_cast<int32_t>(k) : same;
            const long_wide bit = long_wide{} + (int64_t{1} << (k - 1u));
            found |= __builtin_convertvector(by_light, long_wide) & bit;
        }
        std::memcpy(&same_pmt[first], &same, sizeof same);
        std::memcpy(&connections[first], &found, sizeof found);
    }
};

}  // namespace hlt
