// The sort of the common kernel by one thread: hits go to buckets of their group and time, and an insertion sort moves
// each hit past the few that are later in its bucket. Bounds: mu3e_max_hits.
#pragma once

#include "mu3e/hits/sort_hits.cuh"

namespace hlt {

constexpr uint32_t buckets_of_group = 128;

/// The bucket of a hit; `scale`: buckets over ns, times 2^32.
inline uint32_t bucket_of(uint64_t word, uint64_t scale)
{
    return group_of_hit(word) * buckets_of_group + static_cast<uint32_t>(time_of_hit(word) * scale >> 32);
}

/// Sort n hits with times below `end`.
inline void bucket_sort(const uint64_t* words, uint32_t n, uint32_t end, uint64_t* sorted)
{
    const uint64_t scale = (uint64_t{buckets_of_group} << 32) / end;
    uint16_t first[mu3e_groups * buckets_of_group + 1u] = {};
    uint64_t by_bucket[mu3e_max_hits];
    for (uint32_t i = 0; i < n; ++i) ++first[bucket_of(words[i], scale) + 1u];
    for (uint32_t b = 0; b < mu3e_groups * buckets_of_group; ++b)
        first[b + 1u] = static_cast<uint16_t>(first[b + 1u] + first[b]);
    for (uint32_t i = 0; i < n; ++i) by_bucket[first[bucket_of(words[i], scale)]++] = words[i];
    for (uint32_t i = 0; i < n; ++i) {
        const uint64_t word = by_bucket[i];
        uint32_t at = i;
        for (; at != 0u && sorted[at - 1u] > word; --at) sorted[at] = sorted[at - 1u];
        sorted[at] = word;
    }
}

}  // namespace hlt

HLT_CPU_FORM(mu3e_sort_hits)
{
    if (!p.takes(event)) return;
    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::sub_slice_banks found = hlt::find_sub_slice(p, place);
    uint64_t words[hlt::mu3e_max_hits], sorted[hlt::mu3e_max_hits];
    uint32_t n_hits = 0, flags = found.flags;
    for (uint32_t neighbour = 0; neighbour < 3u; ++neighbour) {
        if (!hlt::has_neighbour(found, neighbour)) continue;
        const hlt::time_range times = hlt::times_of(p, neighbour);
        for (uint32_t r = found.rows.first; r < found.rows.first + found.rows.count; ++r) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[r];
            const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, hlt::place_of(place.index, neighbour));
            const uint32_t n = hlt::hits_of_bank(bank, row);
            for (uint32_t i = 0; i < n; ++i) {
                const hlt::raw_hit hit = hlt::load_hit(bank.data, i);
                const bool inside = hit.time >= times.begin && hit.time < times.end;
                // Most hits of the neighbours are too far away: their sensor does not matter.
                if (neighbour != 0u && !inside) continue;
                const uint32_t faults = hlt::faults_of_hit(hit, p.mu3e.sensor, p.length);
                if (neighbour == 0u) flags |= faults;
                if (faults != 0u || !inside) continue;
                if (n_hits < hlt::mu3e_max_hits)
                    words[n_hits] = hlt::word_of_hit(hit, p.mu3e.sensor, hit.time + times.added);
                ++n_hits;
            }
        }
    }
    if (n_hits > hlt::mu3e_max_hits) {
        flags |= hlt::too_many_hits;
        n_hits = 0;
    }
    const uint32_t reach = hlt::reach_of(p), first = p.mu3e_hits.first(event);
    hlt::bucket_sort(words, n_hits, p.length + p.time_window + 2u * reach, sorted);
    uint32_t begins[hlt::mu3e_groups + 1u], n_kept = 0, n_own = 0;
    for (uint32_t& begin : begins) begin = ~0u;
    for (uint32_t i = 0; i < n_hits; ++i) {
        const bool own = hlt::time_of_hit(sorted[i]) - reach < p.length;
        if (i != 0u && sorted[i] == sorted[i - 1u]) {
            if (own) flags |= hlt::repeated_hits;
            continue;
        }
        hlt::write_hit(p, first + n_kept, sorted[i]);
        const uint32_t group = hlt::group_of_hit(sorted[i]);
        if (begins[group] > n_kept) begins[group] = n_kept;
        if (own) ++n_own;
        ++n_kept;
    }
    hlt::fill_begins(begins, n_kept);
    std::memcpy(p.mu3e_hits.group_begin + (hlt::mu3e_groups + 1u) * event, begins, sizeof begins);
    p.mu3e_hits.count[event] = n_kept;
    p.mu3e_hits.own[event] = n_own;
    p.events.number[2u * event] = found.slice;
    p.events.number[2u * event + 1u] = place.index;
    if (flags != 0u) p.events.flags[event] |= flags;
}
