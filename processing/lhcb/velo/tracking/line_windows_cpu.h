// Windows of lines with AVX-512: which hit of a module pair lies closest to each of many lines.
//
// A window has two hits in the mean. So it is searched in quads of four hits, and a vector has quads of four lines.
// Three passes go over all lines, none with a branch on a single line in the usual case: the lines and their bins, in
// full vectors; the list of quads, with the bins of the pair in registers; the comparison of the hits of the quads.
#pragma once

#include "lhcb/velo/tracking/triplet_lines.cuh"

#if defined(__AVX512F__) && defined(__AVX512BW__)

namespace hlt {

/// Column of 128 offsets of bins in four registers, from which sixteen lanes look up at once.
class bins_in_registers {
  public:
    explicit bins_in_registers(const uint16_t* offsets)
    {
        for (uint32_t i = 0; i < 4u; ++i) parts_[i] = _mm512_loadu_si512(offsets + 32u * i);
    }

    __m512i at(__m512i bins) const
    {
        const __m512i bin = _mm512_castsi256_si512(_mm512_cvtepi32_epi16(bins));
        const __m512i low = _mm512_permutex2var_epi16(parts_[0], bin, parts_[1]);
        const __m512i high = _mm512_permutex2var_epi16(parts_[2], bin, parts_[3]);
        const __mmask32 is_high = _mm512_test_epi16_mask(bin, _mm512_set1_epi16(64));
        return _mm512_cvtepu16_epi32(_mm512_castsi512_si256(_mm512_mask_mov_epi16(low, is_high, high)));
    }

  private:
    __m512i parts_[4];
};
static_assert(phi_bins_per_pair == 128u);

/// Lines that are followed at once. Writers may leave something in n_spare places behind the last line.
class line_windows {
  public:
    static constexpr uint32_t max_lines = 512;
    static constexpr uint32_t n_spare = 16;

    // The hits of the lines: a, b and the step from b (two_hits).
    alignas(64) float ax[max_lines + n_spare], ay[max_lines + n_spare], az[max_lines + n_spare];
    alignas(64) float bx[max_lines + n_spare], by[max_lines + n_spare], bz[max_lines + n_spare];
    alignas(64) float step[max_lines + n_spare];

    /// Lines of a group compete for `best`: its number, times group_size, and a place in it.
    static constexpr uint32_t group_size = rank_bits + 1u;
    alignas(64) uint32_t group_and_place[max_lines + n_spare];

    /// Of each group the least key: the bits of the scatter, rank_bits of them replaced by the place of the line, and
    /// in the lower half the hit. Of equally close hits of a line the first of its window is the least.
    static constexpr uint64_t no_key = ~uint64_t{0};
    alignas(64) uint64_t best[max_lines];

    static constexpr uint32_t hit_of(uint64_t key) { return static_cast<uint32_t>(key) & hit_bits; }

    /// Find the closest hits of the first n lines at `target`, whose hits lie at x, y and z.
    void search(uint32_t n, const line_target& target, const float* x, const float* y, const float* z)
    {
        if (n == 0u) return;
        // The last vector is filled with the first line.
        for (float* ends : {ax, ay, az, bx, by, bz, step}) _mm512_storeu_ps(ends + n, _mm512_set1_ps(ends[0]));
        make_lines((n + 15u) / 16u * 16u, target);
        const bins_in_registers begins(&target.bins[0]), ends(&target.bins[1]);
        const pair_hits hits{x, y, z, _mm512_set1_ps(target.max_scatter)};
        uint32_t n_quads = 0;
        for (uint32_t i = 0; i < n; i += 16u) {
            const __m512i first_bin = _mm512_load_si512(first_bin_ + i), last_bin = _mm512_load_si512(last_bin_ + i);
            const __m512i begin = begins.at(first_bin), end = ends.at(last_bin);
            const __m512i n_hits = _mm512_sub_epi32(end, begin);
            const uint32_t lines = n - i < 16u ? (1u << (n - i)) - 1u : 0xffffu;
            uint32_t unusual = lines & (_mm512_cmplt_epi32_mask(last_bin, first_bin) |
                                        _mm512_cmpgt_epi32_mask(n_hits, _mm512_set1_epi32(2 * quad_width)));
            const uint32_t usual = lines & ~unusual;
            const __m512i begin_and_n = _mm512_or_si512(begin, _mm512_slli_epi32(n_hits, n_shift));
            const __m512i next = _mm512_set1_epi32(quad_width - (quad_width << n_shift));
            n_quads = add_quads(n_quads, i, begin_and_n, usual & _mm512_test_epi32_mask(n_hits, n_hits));
            n_quads = add_quads(n_quads, i, _mm512_add_epi32(begin_and_n, next),
                                usual & _mm512_cmpgt_epi32_mask(n_hits, _mm512_set1_epi32(quad_width)));
            for (; unusual != 0u; unusual &= unusual - 1u) {
                const uint32_t line = i + static_cast<uint32_t>(__builtin_ctz(unusual));
                const uint32_t from = target.bins[first_bin_[line]], to = target.bins[last_bin_[line] + 1];
                if (last_bin_[line] < first_bin_[line]) {  // up to the last hit of the pair, then on from its first
                    n_quads = add_window(n_quads, line, from, target.end, 0u, hits);
                    n_quads = add_window(n_quads, line, target.begin, to, behind_others, hits);
                } else {
                    n_quads = add_window(n_quads, line, from, to, 0u, hits);
                }
            }
            if (n_quads > max_quads) {
                compare(n_quads, hits);
                n_quads = 0;
            }
        }
        compare(n_quads, hits);
    }

  private:
    static constexpr int32_t quad_width = 4;
    static constexpr uint32_t max_quads = 1024;          // after which they are compared
    static constexpr uint32_t behind_others = 1u << 16;  // of the hits of a window: those behind the end of the pair
    static constexpr uint32_t hit_bits = behind_others - 1u;
    static constexpr uint32_t n_shift = 20;

    struct pair_hits {
        const float* x;
        const float* y;
        const float* z;
        __m512 max_scatter;
    };

    void make_lines(uint32_t n, const line_target& target)
    {
        for (uint32_t i = 0; i < n; ++i) {
            const line_in_pair it =
                line_through({{ax[i], ay[i], az[i], 0.f}, {bx[i], by[i], bz[i], 0.f}, step[i]}, target);
            x_[i] = it.x;
            y_[i] = it.y;
            tx_[i] = it.tx;
            ty_[i] = it.ty;
            first_bin_[i] = it.first_bin;
            last_bin_[i] = it.last_bin;
        }
    }

    /// Of those of the lines from i on whose bits are set one quad each. Returns how many quads there are.
    uint32_t add_quads(uint32_t n_quads, uint32_t i, __m512i begin_and_n, uint32_t bits)
    {
        const __mmask16 chosen = static_cast<__mmask16>(bits);
        const auto add = [&](auto* to, __m512i lanes) {
            _mm512_storeu_si512(to + n_quads, _mm512_maskz_compress_epi32(chosen, lanes));
        };
        add(begin_and_n_, begin_and_n);
        add(quad_x_, _mm512_load_si512(x_ + i));
        add(quad_y_, _mm512_load_si512(y_ + i));
        add(quad_tx_, _mm512_load_si512(tx_ + i));
        add(quad_ty_, _mm512_load_si512(ty_ + i));
        add(quad_group_, _mm512_load_si512(group_and_place + i));
        return n_quads + static_cast<uint32_t>(__builtin_popcount(bits));
    }

    /// The quads of a part of one window.
    uint32_t add_window(uint32_t n_quads, uint32_t line, uint32_t begin, uint32_t end, uint32_t flag,
                        const pair_hits& hits)
    {
        for (; begin < end; begin += quad_width) {
            if (n_quads > max_quads) {
                compare(n_quads, hits);
                n_quads = 0;
            }
            begin_and_n_[n_quads] = begin | flag | min_of<uint32_t>(end - begin, quad_width) << n_shift;
            quad_x_[n_quads] = x_[line];
            quad_y_[n_quads] = y_[line];
            quad_tx_[n_quads] = tx_[line];
            quad_ty_[n_quads] = ty_[line];
            quad_group_[n_quads] = group_and_place[line];
            ++n_quads;
        }
        return n_quads;
    }

    /// The quads at four places of a column.
    static __m512 four_quads(const float* column, const uint32_t* places)
    {
        const __m256 low = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(column + (places[0] & hit_bits))),
                                                _mm_loadu_ps(column + (places[4] & hit_bits)), 1);
        const __m256 high = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(column + (places[8] & hit_bits))),
                                                 _mm_loadu_ps(column + (places[12] & hit_bits)), 1);
        return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
    }

    /// Ranks of hits: the bits of the scatter, rank_bits of them replaced by the place in the quad; no_rank for those
    /// that are not close. Of quads k, 4 + k, 8 + k and 12 + k of sixteen; the lowest of each, in all of its places.
    template <int k>
    __m512i ranks_of(uint32_t first, const pair_hits& hits) const
    {
        const __m512i place = _mm512_set4_epi32(3, 2, 1, 0);
        constexpr int in_quad = k * 0x55;
        const auto of_lines = [&](const float* column) {
            return _mm512_permute_ps(_mm512_loadu_ps(column + first), in_quad);
        };
        const __m512i n = _mm512_shuffle_epi32(_mm512_srli_epi32(_mm512_loadu_si512(begin_and_n_ + first), n_shift),
                                               static_cast<_MM_PERM_ENUM>(in_quad));
        const uint32_t* const places = begin_and_n_ + first + k;
        const __m512 z = four_quads(hits.z, places);
        const __m512 dx = four_quads(hits.x, places) - (of_lines(quad_x_) + of_lines(quad_tx_) * z);
        const __m512 dy = four_quads(hits.y, places) - (of_lines(quad_y_) + of_lines(quad_ty_) * z);
        const __m512 scatter = dx * dx + dy * dy;
        const __mmask16 fits =
            _mm512_mask_cmp_ps_mask(_mm512_cmplt_epi32_mask(place, n), scatter, hits.max_scatter, _CMP_LT_OQ);
        const __m512i bits = _mm512_andnot_si512(_mm512_set1_epi32(rank_bits), _mm512_castps_si512(scatter));
        __m512i rank = _mm512_mask_or_epi32(_mm512_set1_epi32(-1), fits, bits, place);
        rank = _mm512_min_epu32(rank, _mm512_shuffle_epi32(rank, _MM_PERM_CDAB));
        return _mm512_min_epu32(rank, _mm512_shuffle_epi32(rank, _MM_PERM_BADC));
    }

    /// Compare the hits of the first n quads.
    void compare(uint32_t n, const pair_hits& hits)
    {
        _mm512_storeu_si512(begin_and_n_ + n, _mm512_setzero_si512());
        const __m512i low_bits = _mm512_set1_epi32(rank_bits);
        for (uint32_t first = 0; first < n; first += 16u) {
            __m512i rank = ranks_of<0>(first, hits);
            rank = _mm512_mask_mov_epi32(rank, 0x2222, ranks_of<1>(first, hits));
            rank = _mm512_mask_mov_epi32(rank, 0x4444, ranks_of<2>(first, hits));
            rank = _mm512_mask_mov_epi32(rank, 0x8888, ranks_of<3>(first, hits));
            const __mmask16 found = _mm512_cmplt_epu32_mask(rank, _mm512_set1_epi32(-1));
            const __m512i begin =
                _mm512_and_si512(_mm512_loadu_si512(begin_and_n_ + first), _mm512_set1_epi32(hit_bits | behind_others));
            const __m512i group = _mm512_loadu_si512(quad_group_ + first);
            alignas(64) uint32_t low[16], high[16], groups[16];
            const __m512i key = _mm512_or_si512(_mm512_andnot_si512(low_bits, rank), _mm512_and_si512(group, low_bits));
            const __m512i hit = _mm512_add_epi32(begin, _mm512_and_si512(rank, low_bits));
            _mm512_store_si512(high, _mm512_maskz_compress_epi32(found, key));
            _mm512_store_si512(low, _mm512_maskz_compress_epi32(found, hit));
            _mm512_store_si512(groups, _mm512_maskz_compress_epi32(found, _mm512_srli_epi32(group, 3)));
            const uint32_t n_found = static_cast<uint32_t>(__builtin_popcount(found));
            for (uint32_t i = 0; i < n_found; ++i) {
                const uint64_t mine = static_cast<uint64_t>(high[i]) << 32 | low[i];
                uint64_t& other = best[groups[i]];
                other ^= (other ^ mine) & (0u - static_cast<uint64_t>(mine < other ? 1u : 0u));  // no branch
            }
        }
    }

    static_assert(group_size == 8u);

    alignas(64) float x_[max_lines + n_spare], y_[max_lines + n_spare];  // of the lines at z = 0
    alignas(64) float tx_[max_lines + n_spare], ty_[max_lines + n_spare];
    alignas(64) int32_t first_bin_[max_lines + n_spare], last_bin_[max_lines + n_spare];
    // Of a quad its first hit, above it how many hits it has (with those of the line's next quad), and its line. Up to
    // max_quads and what the next lines add before they are compared; stores write full vectors.
    static constexpr uint32_t quad_places = max_quads + 4u * 16u;
    alignas(64) uint32_t begin_and_n_[quad_places];
    alignas(64) float quad_x_[quad_places], quad_y_[quad_places], quad_tx_[quad_places], quad_ty_[quad_places];
    alignas(64) uint32_t quad_group_[quad_places];
};

}  // namespace hlt

#endif
