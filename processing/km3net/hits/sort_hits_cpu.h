// The sort of the common kernel by one thread: hits go to one of about as many buckets of time as there are hits, and
// an insertion sort moves each hit past the few that are later in its bucket. Bounds: km3net_max_hits.
#pragma once

#include "km3net/hits/sort_hits.cuh"

namespace hlt {

/// Sort n hits with times below `end` from `words` to `sorted`.
inline void bucket_sort(const uint64_t* words, uint32_t n, uint32_t end, uint64_t* sorted)
{
    const uint32_t n_buckets = bitonic_size(n);
    const uint64_t scale = (uint64_t{n_buckets} << 32) / end;
    uint32_t first[km3net_max_hits + 1];
    uint64_t by_bucket[km3net_max_hits];
    std::memset(first, 0, (n_buckets + 1u) * sizeof *first);
    for (uint32_t i = 0; i < n; ++i) ++first[(time_of_hit(words[i]) * scale >> 32) + 1u];
    for (uint32_t b = 0; b < n_buckets; ++b) first[b + 1u] += first[b];
    for (uint32_t i = 0; i < n; ++i) by_bucket[first[time_of_hit(words[i]) * scale >> 32]++] = words[i];
    for (uint32_t i = 0; i < n; ++i) {
        const uint64_t hit = by_bucket[i];
        uint32_t at = i;
        for (; at != 0u && sorted[at - 1u] > hit; --at) sorted[at] = sorted[at - 1u];
        sorted[at] = hit;
    }
}

}  // namespace hlt

HLT_CPU_FORM(km3net_sort_hits)
{
    if (!p.takes(event)) return;
    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::sub_slice_banks found = hlt::find_sub_slice(p.raw_banks, place);
    uint64_t words[hlt::km3net_max_hits];
    uint32_t n_hits = 0, n_own = 0, flags = found.flags;
    const uint32_t end = hlt::end_of_hits(p, found);
    for (int32_t part = place.index == 0u ? 0 : -1; part <= (found.has_next ? 1 : 0); ++part) {
        for (uint32_t r = found.rows.first; r < found.rows.first + found.rows.count; ++r) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[r];
            const int32_t offset = hlt::clock_offset_of(p, row);
            if (part < 0 && offset <= 0) continue;
            const int64_t later = hlt::later_of_part(p, part, offset);
            const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, place.index + part);
            const uint32_t n = hlt::hits_of_bank(bank, row);
            uint64_t previous = 0;
            for (uint32_t i = 0; i < n; ++i) {
                const uint64_t hit = hlt::load_hit(bank.data, i);
                const bool inside = hlt::time_of_hit(hit) < p.length;
                const int64_t time = hlt::time_of_hit(hit) + later;
                const bool used = inside && time >= 0 && time < end;
                // Most hits of the sub-slice behind are later: their PMT does not matter.
                if (part != 0 && !used) continue;
                const bool known = p.km3net.pmt[hlt::pmt_of_hit(hit)].line != hlt::no_line;
                if (part == 0) {
                    if (i != 0u && hlt::is_unsorted(hit, previous)) flags |= hlt::unsorted_hits;
                    if (!known) flags |= hlt::unknown_pmt;
                    if (!inside) flags |= hlt::time_outside;
                    if (inside && (time < 0 || time >= p.length)) flags |= hlt::hit_moved;
                    previous = hit;
                }
                if (!known || !used) continue;
                if (n_hits < hlt::km3net_max_hits) words[n_hits] = hlt::hit_at(hit, time);
                ++n_hits;
                if (time < p.length) ++n_own;
            }
        }
    }
    if (n_hits > hlt::km3net_max_hits) {
        flags |= hlt::too_many_hits;
        n_hits = n_own = 0;
    }
    hlt::bucket_sort(words, n_hits, p.length + hlt::min_of(p.time_window, p.length),
                     p.km3net_hits.hit + p.km3net_hits.first(event));
    p.km3net_hits.count[event] = n_hits;
    p.km3net_hits.own[event] = n_own;
    p.events.number[2u * event] = found.slice;
    p.events.number[2u * event + 1u] = place.index;
    if (flags != 0u) p.events.flags[event] |= flags;
}
