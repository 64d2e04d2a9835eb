// Windows of lines with AVX-512 or AVX2: the hit of a module pair that lies closest to each of many lines.
//
// A window has two hits on average. So it is searched in quads of four hits. A vector has the quads of four lines; with
// AVX2, of two lines. Three passes go over all lines, usually without a branch on a single line. The first computes the
// lines and their bins in full vectors. The second lists the quads; with AVX-512 the bins of the pair are in registers.
// The third compares the hits of the quads.
#pragma once

#include "framework/device/quads.h"
#include "framework/device/wide_masks.h"
#include "lhcb/velo/tracking/triplet_lines.cuh"

#if defined(__AVX2__)

namespace hlt {

#if defined(HLT_AVX512)

/// The 128 offsets of the bins of a pair in four registers; sixteen lanes look up at once.
class bins_of_pair {
  public:
    explicit bins_of_pair(const uint16_t* offsets)
    {
        for (uint32_t i = 0; i < 4u; ++i) parts_[i] = _mm512_loadu_si512(offsets + 32u * i);
    }

    uint_wide at(const int32_t* bins) const
    {
        const __m512i bin = _mm512_castsi256_si512(_mm512_cvtepi32_epi16(_mm512_load_si512(bins)));
        const __m512i low = _mm512_permutex2var_epi16(parts_[0], bin, parts_[1]);
        const __m512i high = _mm512_permutex2var_epi16(parts_[2], bin, parts_[3]);
        const __mmask32 is_high = _mm512_test_epi16_mask(bin, _mm512_set1_epi16(64));
        return (uint_wide)_mm512_cvtepu16_epi32(_mm512_castsi512_si256(_mm512_mask_mov_epi16(low, is_high, high)));
    }

  private:
    __m512i parts_[4];
};
static_assert(phi_bins_per_pair == 128u);

#else

/// The offsets of the bins of a pair; eight lanes look up one after the other.
class bins_of_pair {
  public:
    explicit bins_of_pair(const uint16_t* offsets) : offsets_(offsets) {}

    uint_wide at(const int32_t* bins) const
    {
        const uint16_t* const of = offsets_;
        const uint8x16 found{of[bins[0]], of[bins[1]], of[bins[2]], of[bins[3]],
                             of[bins[4]], of[bins[5]], of[bins[6]], of[bins[7]]};
        return widened(found);
    }

  private:
    const uint16_t* const offsets_;
};

#endif

/// Lines that are followed together. Writers may overwrite n_spare places behind the last line.
class line_windows {
  public:
    static constexpr uint32_t max_lines = 512;
    static constexpr uint32_t n_spare = 16;

    // The hits of the lines: a, b and the step from b (two_hits).
    alignas(64) float ax[max_lines + n_spare], ay[max_lines + n_spare], az[max_lines + n_spare];
    alignas(64) float bx[max_lines + n_spare], by[max_lines + n_spare], bz[max_lines + n_spare];
    alignas(64) float step[max_lines + n_spare];

    /// The number of the group of a line, times group_size, plus its place in the group. The lines of a group compete
    /// for `best`.
    static constexpr uint32_t group_size = rank_bits + 1u;
    alignas(64) uint32_t group_and_place[max_lines + n_spare];

    /// The least key of each group: the bits of the scatter, rank_bits of them replaced by the place of the line, and
    /// in the lower half the hit. The first one of equally close hits of a line has the least key.
    static constexpr uint64_t no_key = ~uint64_t{0};
    alignas(64) uint64_t best[max_lines];

    static constexpr uint32_t hit_of(uint64_t key) { return static_cast<uint32_t>(key) & hit_bits; }

    /// Find the closest hits of the first n lines at `target`, whose hits lie at x, y and z.
    void search(uint32_t n, const line_target& target, const float* x, const float* y, const float* z)
    {
        if (n == 0u) return;
        // The first line fills the last vector.
        for (float* ends : {ax, ay, az, bx, by, bz, step}) store_wide(ends + n, float_wide{} + ends[0]);
        make_lines((n + n_wide - 1u) / n_wide * n_wide, target);
        const bins_of_pair begins(&target.bins[0]), ends(&target.bins[1]);
        const pair_hits hits{x, y, z, float_wide{} + target.max_scatter};
        uint32_t n_quads = 0;
        for (uint32_t i = 0; i < n; i += n_wide) {
            int_wide first_bin, last_bin;
            load_wide(first_bin, first_bin_ + i);
            load_wide(last_bin, last_bin_ + i);
            const uint_wide begin = begins.at(first_bin_ + i), n_hits = ends.at(last_bin_ + i) - begin;
            const int_wide width = (int_wide)n_hits, one_quad = int_wide{} + static_cast<int32_t>(quad_width);
            const uint32_t lines = first_bits(n - i);
            uint32_t unusual =
                lines & (wide_mask::less(last_bin, first_bin) | wide_mask::less(2 * one_quad, width)).bits();
            const uint32_t usual = lines & ~unusual;
            const uint_wide begin_and_n = begin | n_hits << n_shift;
            constexpr uint32_t next = quad_width - (quad_width << n_shift);
            n_quads = add_quads(n_quads, i, begin_and_n, usual & wide_mask::less(int_wide{}, width).bits());
            n_quads = add_quads(n_quads, i, begin_and_n + next, usual & wide_mask::less(one_quad, width).bits());
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
    static constexpr uint32_t quad_width = 4;
    static constexpr uint32_t max_quads = 1024;          // after which they are compared
    static constexpr uint32_t behind_others = 1u << 16;  // hits of a window that wraps: those after the wrap
    static constexpr uint32_t hit_bits = behind_others - 1u;
    static constexpr uint32_t n_shift = 20;

    struct pair_hits {
        const float* x;
        const float* y;
        const float* z;
        float_wide max_scatter;
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

    /// Add one quad of each line whose bit is set, counted from line i. Returns the number of quads.
    uint32_t add_quads(uint32_t n_quads, uint32_t i, const uint_wide& begin_and_n, uint32_t bits)
    {
        const auto add = [&](auto* to, const auto* column) {
            uint_wide lanes;
            load_wide(lanes, column + i);
            store_packed_wide(to + n_quads, lanes, bits);
        };
        store_packed_wide(begin_and_n_ + n_quads, begin_and_n, bits);
        add(quad_x_, x_);
        add(quad_y_, y_);
        add(quad_tx_, tx_);
        add(quad_ty_, ty_);
        add(quad_group_, group_and_place);
        return n_quads + static_cast<uint32_t>(__popc(static_cast<int>(bits)));
    }

    /// Add the quads of a part of one window. Returns the number of quads.
    uint32_t add_window(uint32_t n_quads, uint32_t line, uint32_t begin, uint32_t end, uint32_t flag,
                        const pair_hits& hits)
    {
        for (; begin < end; begin += quad_width) {
            if (n_quads > max_quads) {
                compare(n_quads, hits);
                n_quads = 0;
            }
            begin_and_n_[n_quads] = begin | flag | min_of(end - begin, quad_width) << n_shift;
            quad_x_[n_quads] = x_[line];
            quad_y_[n_quads] = y_[line];
            quad_tx_[n_quads] = tx_[line];
            quad_ty_[n_quads] = ty_[line];
            quad_group_[n_quads] = group_and_place[line];
            ++n_quads;
        }
        return n_quads;
    }

    /// Ranks of the hits of quads k, 4 + k and so on, counted from quad `first`: the bits of the scatter, rank_bits of
    /// them replaced by the place in the quad; no_rank for hits that are not close.
    template <int k>
    uint_wide ranks_of(uint32_t first, const pair_hits& hits) const
    {
        const auto of_lines = [&](const auto* column) {
            float_wide lanes;
            load_wide(lanes, column + first);
            return in_quads<k>(lanes);
        };
        const uint_wide place = wide_numbers % quad_width;
        const uint_wide n = (uint_wide)of_lines(begin_and_n_) >> n_shift;
        const uint32_t* const places = begin_and_n_ + first + k;
        const float_wide z = quads_at(hits.z, places, hit_bits);
        const float_wide dx = quads_at(hits.x, places, hit_bits) - (of_lines(quad_x_) + of_lines(quad_tx_) * z);
        const float_wide dy = quads_at(hits.y, places, hit_bits) - (of_lines(quad_y_) + of_lines(quad_ty_) * z);
        const float_wide scatter = dx * dx + dy * dy;
        const wide_mask fits =
            wide_mask::less((int_wide)place, (int_wide)n) & wide_mask::less(scatter, hits.max_scatter);
        return fits.choose(((uint_wide)scatter & ~rank_bits) | place, uint_wide{} + no_rank);
    }

    /// Compare the hits of the first n quads.
    void compare(uint32_t n, const pair_hits& hits)
    {
        store_wide(begin_and_n_ + n, uint_wide{});
        for (uint32_t first = 0; first < n; first += n_wide) {
            const uint_wide rank = least_of_quads(ranks_of<0>(first, hits), ranks_of<1>(first, hits),
                                                  ranks_of<2>(first, hits), ranks_of<3>(first, hits));
            const uint32_t found = all_wide & ~wide_mask::equal(rank, uint_wide{} + no_rank).bits();
            uint_wide begin_and_n, group;
            load_wide(begin_and_n, begin_and_n_ + first);
            load_wide(group, quad_group_ + first);
            alignas(64) uint32_t low[n_wide], high[n_wide], groups[n_wide];
            const uint_wide begin = begin_and_n & (hit_bits | behind_others);
            store_packed_wide(high, (rank & ~rank_bits) | (group & rank_bits), found);
            store_packed_wide(low, begin + (rank & rank_bits), found);
            store_packed_wide(groups, group / group_size, found);
            const uint32_t n_found = static_cast<uint32_t>(__popc(static_cast<int>(found)));
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
    // For each quad: its first hit, above it the number of hits (including the next quad of the line), and its line.
    // There are up to max_quads, plus the quads that the next lines add before the comparison; stores write full
    // vectors.
    static constexpr uint32_t quad_places = max_quads + 4u * n_wide;
    alignas(64) uint32_t begin_and_n_[quad_places];
    alignas(64) float quad_x_[quad_places], quad_y_[quad_places], quad_tx_[quad_places], quad_ty_[quad_places];
    alignas(64) uint32_t quad_group_[quad_places];
};

}  // namespace hlt

#endif
