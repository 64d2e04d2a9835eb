// Upper bound of the clusters on the CPU, with one word in each lane.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/velo/decoding/estimate_input_size.cuh"

namespace hlt {

/// Count in each lane the super-pixels of a bank with at least one candidate, and those with two.
inline __attribute__((always_inline)) void count_candidates(const uint8_t* words, uint32_t n, const uint8_t* end,
                                                            int_wide& with_one, int_wide& with_two)
{
    for (uint32_t i = 0; i < n; i += n_wide, words += sizeof(uint_wide)) {
        uint_wide word;
        load_wide_before(word, words, n - i, end);
        const uint_wide candidates = candidates_of_pattern(wide_numbers < n - i ? word : uint_wide{});
        with_one -= candidates != 0u;
        with_two -= (candidates & (candidates - 1u)) != 0u;
    }
}

}  // namespace hlt

HLT_CPU_FORM(velo_estimate_input_size)
{
    if (!p.takes(event)) return;
    uint32_t retina = 0, candidates = 0;
    bool broken = false;
    if (!hlt::is_skipped(p.events.flags[event])) {
        const hlt::event_row place = p.raw_banks.event_rows[event];
        const hlt::row_range rows = hlt::velo_rows_of(p.raw_banks, place.mep);
        hlt::prefetch_fragments(p.raw_banks, rows, place.index);
        hlt::int_wide with_one{}, with_two{};
        for (uint32_t i = rows.first; i < rows.first + rows.count; ++i) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[i];
            const hlt::velo_bank bank = hlt::velo_bank_of(hlt::fragment_of(p.raw_banks, row, place.index), row);
            if (bank.kind == hlt::velo_bank_kind::broken) broken = true;
            if (bank.kind == hlt::velo_bank_kind::retina) retina += hlt::max_clusters_of(bank, broken);
            if (bank.kind == hlt::velo_bank_kind::super_pixels)
                hlt::count_candidates(p.raw_banks.bytes + bank.words(p.raw_banks).offset, bank.count_words(broken),
                                      p.raw_banks.bytes + row.data_offset + row.packet_size, with_one, with_two);
        }
        for (uint32_t lane = 0; lane < hlt::n_wide; ++lane)
            candidates += static_cast<uint32_t>(with_one[lane] + with_two[lane]);
    }
    p.velo_clusters.bound[event] = retina + candidates;
    p.velo_clusters.super_pixel_bound[event] = candidates;
    if (broken) p.events.flags[event] |= hlt::bank_error;
}
