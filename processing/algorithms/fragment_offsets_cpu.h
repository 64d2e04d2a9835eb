// Places of fragments on the CPU: sixteen fragments of an MFP at once with AVX-512, else the common kernel. MFPs lie
// far apart, so both prefetch the headers of the next ones.
#pragma once

#include "algorithms/fragment_offsets.cuh"

namespace hlt {

/// Prefetch the header of an MFP; the hardware prefetcher fetches the lines beyond it.
inline __attribute__((always_inline)) void prefetch_mfp_header(const uint8_t* mfp, const mfp_row& row)
{
    constexpr uint32_t line = 64, most = 8 * line;
    const uint32_t size = min_of(min_of(20u + 3u * row.n_fragments, row.packet_size), most);
    for (uint32_t at = 0; at < size; at += line) prefetch(mfp + at);
    prefetch(mfp + size - 1u);
}

#if defined(HLT_AVX512)

/// Sum of each lane and the lanes before it.
inline __attribute__((always_inline)) __m512i inclusive_sum(__m512i lanes)
{
    const __m512i zero = _mm512_setzero_si512();
    lanes = _mm512_add_epi32(lanes, _mm512_alignr_epi32(lanes, zero, 15));
    lanes = _mm512_add_epi32(lanes, _mm512_alignr_epi32(lanes, zero, 14));
    lanes = _mm512_add_epi32(lanes, _mm512_alignr_epi32(lanes, zero, 12));
    return _mm512_add_epi32(lanes, _mm512_alignr_epi32(lanes, zero, 8));
}

/// The fragments of an MFP. Reads only the used part of its arrays, and writes only the used part of `rows`.
inline void place_fragments(const uint8_t* mfp, const mfp_row& row, fragment_row* rows)
{
    static_assert(sizeof(fragment_row) == 8);
    const uint32_t n = row.n_fragments;
    const uint32_t padding = max_of(1u << (mfp[18] & 15u), 4u) - 1u;
    const uint8_t* const types = mfp + 20;
    const uint8_t* const sizes = types + ((n + 3u) & ~3u);
    const uint32_t first = 20u + ((n + 3u) & ~3u) + ((2u * n + 3u) & ~3u);

    const auto in_all = [](uint32_t value) { return _mm512_set1_epi32(static_cast<int>(value)); };
    const __m512i above = in_all(padding), unpadded = in_all(~padding), begin = in_all(first);
    const __m512i end_of_packet = in_all(row.packet_size), packet = in_all(row.data_offset);
    const __m512i broken = in_all(uint32_t{broken_bank} << 16), last_lane = in_all(15u);
    const __m512i low_pairs = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high_pairs = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    __m512i running = begin;
    for (uint32_t base = 0; base < n; base += 16u) {
        const uint32_t left = n - base;
        const auto there = static_cast<__mmask16>(left < 16u ? (1u << left) - 1u : 0xffffu);
        const __m512i size = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, sizes + 2u * base));
        const __m512i type = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(there, types + base));
        const __m512i padded = _mm512_and_si512(_mm512_add_epi32(size, above), unpadded);
        const __m512i end = _mm512_add_epi32(running, inclusive_sum(padded));
        const __m512i offset = _mm512_sub_epi32(end, padded);
        const __mmask16 inside = static_cast<__mmask16>(
            _mm512_cmpge_epu32_mask(offset, begin) & _mm512_cmple_epu32_mask(offset, end_of_packet) &
            _mm512_cmple_epu32_mask(size, _mm512_sub_epi32(end_of_packet, offset)));
        const __m512i at = _mm512_mask_add_epi32(packet, inside, packet, offset);
        const __m512i rest = _mm512_mask_or_epi32(broken, inside, size, _mm512_slli_epi32(type, 16));
        const __m512i low = _mm512_permutex2var_epi32(at, low_pairs, rest);
        const __m512i high = _mm512_permutex2var_epi32(at, high_pairs, rest);
        if (left >= 16u) {
            _mm512_storeu_si512(rows + base, low);
            _mm512_storeu_si512(rows + base + 8u, high);
        } else {
            _mm512_mask_storeu_epi64(rows + base, static_cast<__mmask8>(there), low);
            _mm512_mask_storeu_epi64(rows + base + 8u, static_cast<__mmask8>(there >> 8), high);
        }
        running = _mm512_permutexvar_epi32(last_lane, end);
    }
}

#endif

}  // namespace hlt

// The grid runs over rows: `event` is the number of a row.
HLT_CPU_FORM(fragment_offsets)
{
    constexpr uint32_t ahead = 24;
    if (event >= p.batch->n_rows) return;
    if (event + ahead < p.batch->n_rows) {
        const hlt::mfp_row& coming = p.input.mfp_rows[event + ahead];
        hlt::prefetch_mfp_header(p.input.bytes + coming.data_offset, coming);
    }
#if defined(HLT_AVX512)
    const hlt::mfp_row& row = p.input.mfp_rows[event];
    hlt::place_fragments(p.input.bytes + row.data_offset, row, p.fragments.rows + row.fragment_base);
#else
    fragment_offsets(p, dim3{event, 1, 1});
#endif
}
