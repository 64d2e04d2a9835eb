// Upper bound of the clusters on the CPU: the candidates of a pattern are looked up.
#pragma once

#include "lhcb/velo/decoding/estimate_input_size.cuh"

namespace hlt {

/// count_candidates of every pattern.
struct candidate_counts {
    uint8_t counts[256];

    constexpr candidate_counts() : counts{}
    {
        for (uint32_t pattern = 0; pattern < 256u; ++pattern) {
            const uint32_t west = pattern & 15u, east = pattern >> 4;
            uint32_t candidates = (east & ~(east >> 1)) << 4 | (west & ~(west >> 1) & ~(east | east >> 1 | east << 1));
            for (; candidates != 0u; candidates &= candidates - 1u) ++counts[pattern];
        }
    }
};
inline constexpr candidate_counts candidates_of_patterns;

}  // namespace hlt

HLT_CPU_FORM(velo_estimate_input_size)
{
    if (!p.takes(event)) return;
    uint32_t retina = 0, candidates = 0;
    bool broken = false;
    if ((p.events.flags[event] & hlt::global_event_cut) == 0u) {
        const hlt::event_row place = p.raw_banks.event_rows[event];
        const hlt::row_range rows = hlt::velo_rows_of(p.raw_banks, place.mep);
        hlt::prefetch_fragments(p.raw_banks, rows, place.index);
        for (uint32_t i = rows.first; i < rows.first + rows.count; ++i) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[i];
            const hlt::velo_bank bank = hlt::velo_bank_of(hlt::fragment_of(p.raw_banks, row, place.index), row);
            if (bank.kind == hlt::velo_bank_kind::broken) broken = true;
            if (bank.kind == hlt::velo_bank_kind::retina) retina += bank.max_words;
            if (bank.kind != hlt::velo_bank_kind::super_pixels) continue;
            const uint32_t n = bank.count_words(broken);
            const hlt::velo_words words = bank.words(p.raw_banks);
            for (uint32_t j = 0; j < n; ++j)
                candidates += hlt::candidates_of_patterns.counts[words.word(p.raw_banks, j) & 0xffu];
        }
    }
    p.velo_clusters.bound[event] = retina + candidates;
    p.velo_clusters.super_pixel_bound[event] = candidates;
    if (broken) p.events.flags[event] |= hlt::bank_error;
}
