// The digits of a muon raw bank on the CPU: all four parts in one pass, and the channels of a link as bits of a word.
#pragma once

#include "lhcb/muon/bank.cuh"

namespace hlt {

/// Call `work(channel, time)` for each digit of four batches; for no digit if they are not valid.
template <typename Work>
void for_digits_of_batches(const muon_bank& bank, const muon_geometry& geometry, const Work& work)
{
    const auto word = [&](uint32_t i) { return load_u16(bank.fragment.data + 2u * i); };
    const uint32_t n_words = bank.fragment.size / 2u;
    uint32_t at = n_words > 0u ? (word(0) + 3u) & ~1u : 0u;
    bool sound = bank.fragment.size % 2u == 0u && at > 0u;
    uint32_t first[n_muon_batches], n[n_muon_batches];
    for (uint32_t batch = 0; batch < n_muon_batches; ++batch) {
        n[batch] = sound && at < n_words ? word(at) : n_words;
        first[batch] = at + 1u;
        at += 1u + n[batch];
        sound = sound && at <= n_words;
    }
    if (!sound || !(at == n_words || (at + 1u == n_words && word(at) == 0u))) return;
    const uint32_t first_channel = geometry.first_channel[bank.number];
    const uint32_t n_channels = geometry.first_channel[bank.number + 1u] - first_channel;
    for (uint32_t batch = 0; batch < n_muon_batches; ++batch) {
        for (uint32_t i = first[batch]; i < first[batch] + n[batch]; ++i) {
            const uint32_t digit = word(i);
            if ((digit & 0xfffu) < n_channels) work(first_channel + (digit & 0xfffu), digit >> 12);
        }
    }
}

/// As for_muon_digits, for one thread; broken banks are skipped.
template <typename Work>
void for_all_muon_digits(const raw_banks& banks, uint32_t event, const muon_geometry& geometry, const Work& work)
{
    const event_row place = banks.event_rows[event];
    const row_range rows = muon_rows_of(banks, place.mep);
    prefetch_fragments(banks, rows, place.index);
    const auto with_cell = [&](uint32_t channel, uint32_t time) {
        const uint32_t cell = geometry.cell_of_channel[channel];
        if (cell != no_muon_cell) work(cell, time);
    };
    for (uint32_t i = 0; i < rows.count; ++i) {
        const mfp_row row = banks.mfp_rows[rows.first + i];
        const muon_bank bank = muon_bank_of(fragment_of(banks, row, place.index), row, geometry);
        if (bank.kind == muon_bank_kind::batches)
            for_digits_of_batches(bank, geometry, with_cell);
        else if (bank.kind == muon_bank_kind::links)
            for (uint32_t part = 0; part < n_muon_parts; ++part) bank.for_digits(geometry, part, with_cell);
    }
}

}  // namespace hlt
