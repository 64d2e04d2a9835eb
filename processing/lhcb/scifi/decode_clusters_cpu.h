// SciFi banks to hits on the CPU. The first pass writes the codes of the hits of all mats (hits_of_banks_cpu.h), the
// second one the hits, eight in one step.
//
// AVX-512 takes 32 words of a bank in one step, more than most banks have; other instruction sets take eight. For banks
// of version 5, the usual version, these 32 words become codes without a branch on single words. Only two edges that
// make several hits need a branch: the codes behind them are moved. Banks of versions 7 and 8 are read word by word;
// their codes become hits eight in one step, too. An event with two sources of one number, or with too many hits for
// this form, is decoded in steps of eight. The common kernel processes an event without hits, or with more than its
// bound.
#pragma once

#include "lhcb/scifi/decode_clusters.cuh"
#include "lhcb/scifi/hits_of_banks_cpu.h"

#if defined(HLT_AVX512)

namespace hlt {

constexpr uint32_t scifi_words_at_once = 32;
constexpr uint32_t most_scifi_codes = 12'288;
/// Codes of 32 words: two edges of a link make at most 32 hits. Stores reach up to 32 places behind the last code.
constexpr uint32_t scifi_code_places = most_scifi_codes + 32u * scifi_words_at_once + 2u * scifi_words_at_once;

/// The codes of the hits of an event, and those of each mat.
struct scifi_event_codes {
    alignas(64) uint16_t with_padding[scifi_hit_padding + scifi_code_places];
    scifi_runs runs;
    uint32_t n;

    uint16_t* codes() { return with_padding + scifi_hit_padding; }
    bool has_room() const { return n <= most_scifi_codes; }

    /// Codes of a bank of version 5 with words. Returns true if it is broken; it then has no codes.
    bool write_bank(const scifi_bank bank, uint32_t n_mats, uint16_t* __restrict__ end)
    {
        const uint32_t before = n;
        bool broken = bank[bank.n_words - 1u].mat() >= n_mats;
        uint32_t second = 0;  // true if the first word is a second edge
        for (uint32_t mat = 0; mat < n_mats; ++mat) end[mat] = static_cast<uint16_t>(before);
        for (uint32_t i = 0; i < bank.n_words && !broken && has_room(); i += scifi_words_at_once)
            broken = write_words(bank, i, second, n_mats, end);
        if (!broken) return false;
        n = before;
        for (uint32_t mat = 0; mat < n_mats; ++mat) end[mat] = static_cast<uint16_t>(before);
        return true;
    }

  private:
    static __m512i in_all(uint32_t value) { return _mm512_set1_epi16(static_cast<short>(value)); }

    /// As eight_scifi_words for version 5.
    inline __attribute__((always_inline)) bool write_words(const scifi_bank& bank, uint32_t i, uint32_t& second,
                                                           uint32_t n_mats, uint16_t* __restrict__ end)
    {
        const uint32_t left = bank.n_words - i;
        const uint32_t there = _bzhi_u32(~0u, min_of(left, scifi_words_at_once));
        const uint32_t followed = _bzhi_u32(~0u, min_of(left - 1u, scifi_words_at_once));
        const __m512i word = _mm512_maskz_loadu_epi16(there, bank.bytes + 2u * i);
        const __m512i next = _mm512_maskz_loadu_epi16(followed, bank.bytes + 2u * i + 2u);
        const __m512i channel = _mm512_srli_epi16(word, 2), half_of_next = _mm512_srli_epi16(next, 1);
        const __m512i distance = _mm512_sub_epi16(_mm512_srli_epi16(next, 2), channel);
        uint32_t broken = _mm512_mask_cmple_epi16_mask(followed, distance, _mm512_setzero_si512());
        uint32_t first = _mm512_mask_test_epi16_mask(followed, _mm512_and_si512(word, next), in_all(1)) & ~second;
        first = _mm512_mask_testn_epi16_mask(first, _mm512_xor_si512(word, next), in_all(0xfe00));
        first = first_of_scifi_edges(first);
        broken |= _mm512_mask_cmplt_epi16_mask(first, distance, in_all(scifi_min_edge_distance));
        if (broken != 0u) return true;
        const uint32_t several = _mm512_mask_cmpgt_epi16_mask(first, distance, in_all(scifi_piece));
        const uint32_t kept = there & ~(first << 1 | second);
        second = first >> 31;

        const __m512i of_half = in_all(0x3ff);
        const __m512i width =
            _mm512_sub_epi16(_mm512_sub_epi16(half_of_next, _mm512_slli_epi16(channel, 1)), in_all(1));
        const __m512i of_edges =
            _mm512_or_si512(_mm512_and_si512(_mm512_sub_epi16(half_of_next, in_all(scifi_piece)), of_half),
                            _mm512_slli_epi16(width, 10));
        const __m512i of_word =
            _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(word, 1), of_half), in_all(scifi_narrow << 10));
        store(_mm512_mask_mov_epi16(of_word, first, of_edges), kept);
        const __m512i mats = _mm512_srli_epi16(word, 11);
        for (uint32_t mat = 0; mat < n_mats; ++mat) {
            const uint32_t up_to_mat = _mm512_mask_cmple_epu16_mask(kept, mats, in_all(mat));
            end[mat] = static_cast<uint16_t>(end[mat] + __builtin_popcount(up_to_mat));
        }
        if (several != 0u) {
            write_several(bank, i, kept, several, n_mats, end);
        } else {
            n += static_cast<uint32_t>(__builtin_popcount(kept));
        }
        return false;
    }

    /// Store the codes whose bits are set, in order, with undefined values behind them.
    inline __attribute__((always_inline)) void store(const __m512i& lanes, uint32_t bits)
    {
        const auto low = static_cast<__mmask16>(bits), high = static_cast<__mmask16>(bits >> 16);
        const __m512i first = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(lanes));
        const __m512i last = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(lanes, 1));
        const auto put = [](uint16_t* to, const __m512i& packed) {
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(packed));
        };
        put(codes() + n, _mm512_maskz_compress_epi32(low, first));
        put(codes() + n + __builtin_popcount(low), _mm512_maskz_compress_epi32(high, last));
    }

    /// Write the codes of edges that make several hits; each pair of edges already has one place among the stored
    /// codes.
    void write_several(const scifi_bank& bank, uint32_t i, uint32_t kept, uint32_t several, uint32_t n_mats,
                       uint16_t* __restrict__ end)
    {
        constexpr scifi_rule rule = scifi_rule::version_5;
        uint32_t more = 0;
        for (uint32_t left = several; left != 0u; left &= left - 1u) {
            const uint32_t k = static_cast<uint32_t>(__builtin_ctz(left));
            const scifi_edges edges{bank[i + k], bank[i + k + 1u]};
            const uint32_t n_hits = count_hits_of_edges<rule>(edges);
            uint16_t* const at = codes() + n + more + static_cast<uint32_t>(__builtin_popcount(_bzhi_u32(kept, k)));
            _mm512_storeu_si512(at + n_hits, _mm512_loadu_si512(at + 1));
            for (uint32_t hit = 0; hit < n_hits; ++hit)
                at[hit] = static_cast<uint16_t>(scifi_code(hit_of_edges<rule>(edges, n_hits, hit)));
            more += n_hits - 1u;
            for (uint32_t mat = edges.first.mat(); mat < n_mats; ++mat)
                end[mat] = static_cast<uint16_t>(end[mat] + n_hits - 1u);
        }
        n += static_cast<uint32_t>(__builtin_popcount(kept)) + more;
    }
};

/// Write the codes of all banks of an event. Returns true if they are complete; `errors` gets bits of event_flag.
inline bool write_event_codes(const raw_banks& banks, const event_row& at, const row_range& rows,
                              const scifi_read_out& read_out, bool lossy, scifi_event_codes& event, uint32_t& errors)
{
    constexpr uint32_t ahead = 12;
    scifi_bank_set seen;
    seen.clear();
    event.n = 0;
    std::memset(&event.runs, 0, sizeof event.runs);
    const auto ask_for = [&](uint32_t i) {
        const fragment_view fragment = fragment_of(banks, banks.mfp_rows[rows.first + i], at.index);
        prefetch(fragment.data);
        prefetch(fragment.data + fragment.size);
    };
    for (uint32_t i = 0; i < min_of(ahead, rows.count); ++i) ask_for(i);
    for (uint32_t i = 0; i < rows.count; ++i) {
        if (i + ahead < rows.count) ask_for(i + ahead);
        const mfp_row& row = banks.mfp_rows[rows.first + i];
        scifi_bank bank = scifi_bank_of(fragment_of(banks, row, at.index), row);
        if (bank.number < n_scifi_banks && seen.add(bank.number)) return false;
        if (bank.broken) errors |= bank_error;
        if (bank.n_words == 0u) continue;
        const uint32_t n_mats = read_out.n_mats[bank.number];
        uint16_t* const begin = event.runs.begin + read_out.first_mat[bank.number];
        uint16_t* const end = event.runs.end + read_out.first_mat[bank.number];
        uint32_t before = event.n;
        bool broken;
        const scifi_rule rule = scifi_rule_of(bank.version, lossy);
        if (rule == scifi_rule::version_5) {
            broken = event.write_bank(bank, n_mats, end);
        } else {
            scifi_code_writer writer{event.codes(), most_scifi_codes, event.n};
            broken = writer.write_bank(bank, rule, n_mats, end);
            event.n = writer.n;
        }
        if (broken) errors |= bank_error;
        if (!event.has_room()) return false;
        for (uint32_t mat = 0; mat < n_mats; ++mat) {
            begin[mat] = static_cast<uint16_t>(before);
            before = end[mat];
        }
    }
    return true;
}

}  // namespace hlt

#endif

HLT_CPU_FORM(scifi_decode_clusters)
{
    if (!p.takes(event)) return;
    const uint32_t bound = p.scifi_hits.bound[event], first = p.scifi_hits.first(event);
    if (bound == 0u) return scifi_decode_clusters(p, dim3{event, 1, 1});
    const hlt::scifi_read_out& read_out = *p.scifi_read_out;
    const hlt::event_row at = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::scifi_rows_of(p.raw_banks, at.mep);
    const auto finish = [&](const uint16_t* codes, const hlt::scifi_runs& runs, uint32_t n_hits, uint32_t errors) {
        const hlt::scifi_hit_columns hits{p.scifi_hits.x + first, p.scifi_hits.z + first, p.scifi_hits.id + first,
                                          p.scifi_hits.info + first};
        uint16_t offset[hlt::n_scifi_mats + 1u];
        hlt::write_scifi_hits(read_out, p.scifi_mats, codes, runs, hits, offset);
        if (errors != 0u) p.events.flags[event] |= errors;
        uint16_t* const zone_offset = p.scifi_hits.zone_offset + event * hlt::scifi_zone_stride;
        for (uint32_t zone = 0; zone < hlt::scifi_zone_stride; ++zone)
            zone_offset[zone] = offset[read_out.first_place[zone]];
        uint32_t scratch[hlt::max_block_size / hlt::warp_size];
        p.scifi_hits.count[event] =
            read_out.n_masked == 0u ? n_hits : hlt::drop_masked_scifi_hits(read_out, hits, zone_offset, scratch);
    };
    uint16_t* const codes = p.scratch.codes + first + hlt::scifi_hit_padding;
    hlt::scifi_runs runs;
    uint32_t errors = 0;
    if (hlt::are_scifi_rows_of_links(p.raw_banks, rows, *p.scifi_sipms)) {
        hlt::prefetch_fragments(p.raw_banks, rows, at.index);
        const uint32_t n_hits = hlt::write_scifi_codes_of_links(p.raw_banks, at, rows, read_out, *p.scifi_sipms,
                                                                p.lossy != 0u, codes, bound, runs, errors);
        return n_hits <= bound ? finish(codes, runs, n_hits, errors) : scifi_decode_clusters(p, dim3{event, 1, 1});
    }
#if defined(HLT_AVX512)
    hlt::scifi_event_codes wide;
    uint32_t wide_errors = 0;
    if (hlt::write_event_codes(p.raw_banks, at, rows, read_out, p.lossy != 0u, wide, wide_errors) && wide.n <= bound)
        return finish(wide.codes(), wide.runs, wide.n, wide_errors);
#endif
    hlt::prefetch_fragments(p.raw_banks, rows, at.index);
    hlt::scifi_bank_set seen, twice;
    hlt::find_scifi_banks_of_two_sources(p.raw_banks, rows, seen, twice);
    std::memset(&runs, 0, sizeof runs);
    const uint32_t n_hits =
        hlt::write_scifi_codes(p.raw_banks, at, rows, read_out, twice, p.lossy != 0u, codes, bound, runs, errors);
    if (n_hits <= bound) return finish(codes, runs, n_hits, errors);
    scifi_decode_clusters(p, dim3{event, 1, 1});
}
