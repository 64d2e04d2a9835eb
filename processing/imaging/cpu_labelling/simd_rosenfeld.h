// Rosenfeld's algorithm for several pixels at once (A. Hennequin, Performance optimization for the LHCb experiment, PhD
// thesis, Sorbonne Universite, 2022, section 4.5, algorithms 17 to 22).
//
// The label of a pixel is its number in the image, plus 1, so lanes make labels without a counter, and the image is its
// own table of equivalences: the cell of a label holds its parent. In version 1 a new label is that of the pixel on the
// left, in version 2 that of the first pixel of the segment in the lanes. The minimum of version 2 includes the pixel
// above, which the listing leaves out: labels would be wrong.
//
// There are two replacements for instructions of AVX-512CD, which the instruction sets of the kernels do not contain.
// The start of a segment is the exponent of a number whose highest bit it is, instead of a count of leading zeros.
// Unions come after their row, instead of an emulated minimum over lanes of equal labels: labels of later pixels do not
// depend on them. The masks of two rows tell which pixels have two labels to unite. These pairs wait in a list; vectors
// look up the roots of both, and only pairs with two roots, about one of four, are united one after another.
//
// The second pass replaces labels by numbers of components, row by row. The published one gathers the parents of all
// pixels until they are roots. Here all pixels of a run get the number of its first one, which is a root or has a
// parent before it, whose cell has its number.
#pragma once

#include "framework/device/wide_lanes.h"
#include "imaging/cpu_labelling/binary_image.h"
#include "imaging/cpu_labelling/equivalences.h"

namespace hlt {

/// `n` lanes of 32 bits. GCC and Clang split a vector that is wider than a register.
template <uint32_t n>
struct lanes_of;
template <>
struct lanes_of<4> {
    using lanes = uint32_t __attribute__((vector_size(16)));
    using signed_lanes = int32_t __attribute__((vector_size(16)));
    using float_lanes = float __attribute__((vector_size(16)));
    using bytes = uint8_t __attribute__((vector_size(4)));
};
template <>
struct lanes_of<8> {
    using lanes = uint32_t __attribute__((vector_size(32)));
    using signed_lanes = int32_t __attribute__((vector_size(32)));
    using float_lanes = float __attribute__((vector_size(32)));
    using bytes = uint8_t __attribute__((vector_size(8)));
};
template <>
struct lanes_of<16> {
    using lanes = uint32_t __attribute__((vector_size(64)));
    using signed_lanes = int32_t __attribute__((vector_size(64)));
    using float_lanes = float __attribute__((vector_size(64)));
    using bytes = uint8_t __attribute__((vector_size(16)));
};

/// Labels pixels in vectors of n lanes. segments: version 2.
template <uint32_t n, bool segments>
class simd_rosenfeld {
  public:
    explicit simd_rosenfeld(const binary_image& image) : image_{image}, parents_{image.labels - 1}
    {
        for (uint32_t lane = 0; lane < n; ++lane) {
            lane_[lane] = lane;
            bit_[lane] = 1u << lane;
            up_to_[lane] = (2u << lane) - 1u;
        }
    }

    /// Label all pixels with the number of their component from 1 on, and the runs with that from 0 on. rows, runs: the
    /// runs of the image; run_labels: places for their labels. Returns the number of components.
    uint32_t label(const row_runs* rows, const image_run* runs, uint32_t* run_labels)
    {
        for (uint32_t y = 0; y < image_.shape.height; ++y) first_pass(y);
        uint32_t n_components = 0;
        for (uint32_t y = 0; y < image_.shape.height; ++y)
            second_pass(y, runs + rows[y].first, rows[y].count, run_labels + rows[y].first, n_components);
        return n_components;
    }

  private:
    using lanes = typename lanes_of<n>::lanes;
    using signed_lanes = typename lanes_of<n>::signed_lanes;
    using float_lanes = typename lanes_of<n>::float_lanes;
    using bytes = typename lanes_of<n>::bytes;

    static inline __attribute__((always_inline)) void load(lanes& vector, const uint32_t* from)
    {
        std::memcpy(&vector, from, sizeof vector);
    }

    /// Store a vector, or its first lanes at the end of a row.
    static inline __attribute__((always_inline)) void store(uint32_t* to, const lanes& vector, uint32_t room)
    {
        // A copy of variable size is an instruction that repeats.
        if (room >= n) {
            std::memcpy(to, &vector, sizeof vector);
        } else {
            for (uint32_t lane = 0; lane < room; ++lane) to[lane] = vector[lane];
        }
    }

    /// Request the line of the cache that the next row writes in this column. The label image of a large image does not
    /// fit in the caches of a core, and the hardware begins too late: a row is too short for it.
    inline __attribute__((always_inline)) void request_next_row(const uint32_t* cell, uint32_t x0) const
    {
        if (x0 % cells_of_line == 0u) __builtin_prefetch(cell + image_.shape.width, 1);
    }

    /// The smaller label of each lane; 0, the background, is the largest.
    static inline __attribute__((always_inline)) lanes min_label(const lanes& one, const lanes& other)
    {
        const lanes a = one - 1u, b = other - 1u;
        return (a < b ? a : b) + 1u;
    }

    /// Each lane has the value of the lane on its left, the first one the last value of `left`.
    inline __attribute__((always_inline)) lanes from_left(const lanes& left, const lanes& vector) const
    {
        // The places are constants, so each width has an instruction or two for this.
        if constexpr (n == 4u) {
            return __builtin_shuffle(left, vector, lanes{3, 4, 5, 6});
        } else if constexpr (n == 8u) {
            return __builtin_shuffle(left, vector, lanes{7, 8, 9, 10, 11, 12, 13, 14});
        } else {
            return __builtin_shuffle(left, vector,
                                     lanes{15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30});
        }
    }

    /// For each lane the number of bits of `begins` up to its own.
    static inline __attribute__((always_inline)) lanes begins_up_to(uint32_t begins)
    {
        const uint64_t low = sums_of_bits(begins & 0xffu);
        const uint64_t high = n == 16u ? sums_of_bits(begins >> 8) + (low >> 56) * 0x0101010101010101u : 0u;
        using words = uint64_t __attribute__((vector_size(16)));
        const words both{low, high};
#if defined(__AVX2__)
        // GCC converts vectors of bytes element by element.
        const auto sums = (__m128i)both;
        if constexpr (n == 4u) return (lanes)_mm_cvtepu8_epi32(sums);
        if constexpr (n == 8u) return (lanes)_mm256_cvtepu8_epi32(sums);
#if defined(__AVX512F__)
        if constexpr (n == 16u) return (lanes)_mm512_cvtepu8_epi32(sums);
#endif
#endif
        bytes of_lanes;
        std::memcpy(&of_lanes, &both, n);
        return __builtin_convertvector(of_lanes, lanes);
    }

    /// Byte k has the number of bits up to bit k, of eight bits.
    static inline __attribute__((always_inline)) uint64_t sums_of_bits(uint64_t bits)
    {
        // Byte k keeps bit k, then becomes 1 if it has it; the product sums up the bytes.
        const uint64_t one_by_one = bits * 0x0101010101010101u & 0x8040201008040201u;
        return ((one_by_one + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u) * 0x0101010101010101u;
    }

    inline __attribute__((always_inline)) void first_pass(uint32_t y)
    {
        const uint32_t width = image_.shape.width;
        const uint32_t* const above = labels_[(y + 1u) % 2u] + margin;
        uint32_t* const own = labels_[y % 2u] + margin;
        uint64_t* const masks = masks_[y % 2u];
        uint32_t* const cells_of_row = image_.labels_of_row(y);
        const uint32_t base = y * width + 1u;
        uint64_t mask = 0;
        lanes before{};
        for (uint32_t x0 = 0; x0 < width; x0 += n, mask >>= n) {
            if (x0 % 64u == 0u) {
                mask = foreground_mask64(image_.row(y), image_.shape, image_.threshold, x0 / 64u);
                masks[x0 / 64u] = mask;
            }
            const uint32_t bits = static_cast<uint32_t>(mask & ((uint64_t{1} << n) - 1u));
            const auto foreground = (lanes)((bit_ & bits) != 0u);
            const uint32_t begins = bits & ~(bits << 1);
            lanes start = lane_;
            if (segments) {
                // A number below 2^16 is exact as float; its exponent is its highest bit.
                const auto floats = __builtin_convertvector((signed_lanes)(up_to_ & begins), float_lanes);
                start = ((lanes)floats >> 23) - 127u;
            } else {
                start += (lanes)((bit_ & (bits & ~begins)) != 0u);
            }
            lanes ab, b, bc;
            load(ab, above + x0 - 1u);
            load(b, above + x0);
            load(bc, above + x0 + 1u);
            lanes x = (start + (base + x0)) & foreground;
            x = min_label(min_label(min_label(ab, b), min_label(bc, from_left(before, x))), x) & foreground;
            std::memcpy(own + x0, &x, sizeof x);
            request_next_row(cells_of_row + x0, x0);
            store(cells_of_row + x0, x, width - x0);
            before = x;
        }
        // The vectors end with background, but the next row may be wider than the last vector of its loads.
        std::memset(own + (width + n - 1u) / n * n, 0, sizeof(uint32_t));
        unite_row(masks, masks_[(y + 1u) % 2u], own, above);
    }

    /// Make the unions of a row: of the right pixel above with the left one, or with the pixel on the left, if there is
    /// none between them. masks: of the row and of the one above.
    inline __attribute__((always_inline)) void unite_row(const uint64_t* masks, const uint64_t* masks_above,
                                                         const uint32_t* own, const uint32_t* above)
    {
        uint64_t last = 0;
        uint32_t n_pairs = 0;
        for (uint32_t word = 0; 64u * word < image_.shape.width; ++word) {
            const uint64_t here = masks[word], there = masks_above[word];
            const uint64_t right = there >> 1 | masks_above[word + 1u] << 63;
            const uint64_t left = (here | there) << 1 | last;
            last = (here | there) >> 63;
            for (uint64_t joined = here & right & ~there & left; joined != 0u; joined &= joined - 1u) {
                const uint32_t x = 64u * word + static_cast<uint32_t>(__builtin_ctzll(joined));
                ones_[n_pairs] = min_of(above[x - 1u] - 1u, own[x - 1u] - 1u) + 1u;
                others_[n_pairs] = above[x + 1u];
                // Without a branch, which random images would make mispredicted.
                n_pairs += ones_[n_pairs] != others_[n_pairs] ? 1u : 0u;
            }
        }
        unite_pairs(n_pairs);
    }

    /// Unite the first pairs of the list.
    inline __attribute__((always_inline)) void unite_pairs(uint32_t n_pairs)
    {
#if defined(__AVX2__)
        if (n_pairs == 0u) return;
        // Lanes beyond the last pair have one label twice.
        for (uint32_t lane = 0; lane < n; ++lane) ones_[n_pairs + lane] = others_[n_pairs + lane] = ones_[0];
        for (uint32_t k = 0; k < n_pairs; k += n) {
            lanes one, other;
            load(one, ones_ + k);
            load(other, others_ + k);
            for (;;) {
                const lanes parent = parents_of(one), parent_of_other = parents_of(other);
                if ((differing(one, parent) | differing(other, parent_of_other)) == 0u) break;
                one = parent;
                other = parent_of_other;
            }
            for (uint32_t bits = differing(one, other); bits != 0u; bits &= bits - 1u) {
                const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(bits));
                // Pairs of the same vector may have united one of the roots.
                const uint32_t root = unite_labels(parents_, one[lane], other[lane]);
                parents_[ones_[k + lane]] = parents_[others_[k + lane]] = root;
            }
        }
#else
        for (uint32_t k = 0; k < n_pairs; ++k) unite_labels(parents_, ones_[k], others_[k]);
#endif
    }

#if defined(__AVX2__)
    inline __attribute__((always_inline)) lanes parents_of(const lanes& label) const
    {
        const int* const parents = reinterpret_cast<const int*>(parents_);
        if constexpr (n == 4u) return (lanes)_mm_i32gather_epi32(parents, (__m128i)label, 4);
        if constexpr (n == 8u) return (lanes)_mm256_i32gather_epi32(parents, (__m256i)label, 4);
        if constexpr (n == 16u) {
#if defined(HLT_AVX512)
            return (lanes)_mm512_i32gather_epi32((__m512i)label, parents, 4);
#else
            uint8x32 halves[2];
            std::memcpy(halves, &label, sizeof halves);
            for (uint8x32& half : halves) half = (uint8x32)_mm256_i32gather_epi32(parents, (__m256i)half, 4);
            lanes found;
            std::memcpy(&found, halves, sizeof found);
            return found;
#endif
        }
    }

    /// Bit l is set if lane l of two vectors differs.
    static inline __attribute__((always_inline)) uint32_t differing(const lanes& one, const lanes& other)
    {
#if defined(HLT_AVX512)
        if constexpr (n == 16u) return _mm512_cmpneq_epu32_mask((__m512i)one, (__m512i)other);
#endif
        const auto different = one != other;
        if constexpr (n == 4u) return static_cast<uint32_t>(_mm_movemask_ps((__m128)different));
        if constexpr (n == 8u) return static_cast<uint32_t>(_mm256_movemask_ps((__m256)different));
        int8x32 halves[2];
        if constexpr (n == 16u) std::memcpy(halves, &different, sizeof halves);
        return bits_of(halves[0]) | bits_of(halves[1]) << 8;
    }
#endif

    inline __attribute__((always_inline)) void second_pass(uint32_t y, const image_run* runs, uint32_t n_runs,
                                                           uint32_t* run_labels, uint32_t& n_components)
    {
        const uint32_t width = image_.shape.width;
        uint32_t* const own = image_.labels_of_row(y);
        const uint32_t base = y * width + 1u;
        // The first pixel of a run is a root, or has a label of a row before, or of a root on its left. The cells of
        // both have their numbers.
        uint32_t run = 0;
#if defined(HLT_AVX512)
        if constexpr (n == 16u) run = number_vectors(own, base, runs, n_runs, run_labels, n_components);
#endif
        for (; run < n_runs; ++run) {
            const uint32_t label = own[runs[run].begin];
            const uint32_t is_root = label == base + runs[run].begin ? 1u : 0u;
            n_components += is_root;
            // Without a branch, which random images would make mispredicted.
            const uint32_t number = parents_[label] ^ ((parents_[label] ^ n_components) & (0u - is_root));
            numbers_[run + 1u] = own[runs[run].begin] = number;
            run_labels[run] = number - 1u;
        }
        const uint32_t* number = numbers_;
        uint64_t mask = 0;
        uint32_t last = 0;
        for (uint32_t x0 = 0; x0 < width; x0 += n, mask >>= n) {
            if (x0 % 64u == 0u) mask = foreground_mask64(image_.row(y), image_.shape, image_.threshold, x0 / 64u);
            const uint32_t bits = static_cast<uint32_t>(mask & ((uint64_t{1} << n) - 1u));
            const uint32_t begins = bits & ~(bits << 1 | last);
            last = bits >> (n - 1u);
            // The run of each lane: the last one of the lanes before, or one that begins in this vector.
            lanes of_run;
            load(of_run, number);
            const lanes label = __builtin_shuffle(of_run, begins_up_to(begins)) & (lanes)((bit_ & bits) != 0u);
            request_next_row(own + x0, x0);
            store(own + x0, label, width - x0);
            number += __builtin_popcount(begins);
        }
    }

#if defined(HLT_AVX512)
    /// Number the runs of a row in full vectors. Returns how many runs have numbers.
    inline __attribute__((always_inline)) uint32_t number_vectors(uint32_t* own, uint32_t base, const image_run* runs,
                                                                  uint32_t n_runs, uint32_t* run_labels,
                                                                  uint32_t& n_components)
    {
        uint32_t run = 0;
        for (; run + 16u <= n_runs; run += 16u) {
            const __m512i begin = _mm512_and_si512(_mm512_loadu_si512(runs + run), _mm512_set1_epi32(0xffff));
            const __m512i label = _mm512_i32gather_epi32(begin, own, 4);
            const __m512i cell = _mm512_add_epi32(begin, _mm512_set1_epi32(static_cast<int>(base)));
            const __mmask16 is_root = _mm512_cmpeq_epi32_mask(label, cell);
            const __mmask16 is_of_row_before =
                _mm512_cmplt_epu32_mask(label, _mm512_set1_epi32(static_cast<int>(base)));
            const __m512i of_roots = (__m512i)numbered_wide(is_root, n_components + 1u);
            n_components += static_cast<uint32_t>(__builtin_popcount(is_root));
            __m512i number = _mm512_mask_i32gather_epi32(of_roots, is_of_row_before, label, parents_, 4);
            _mm512_i32scatter_epi32(own, begin, number, 4);
            const uint32_t bits = 0xffffu & ~static_cast<uint32_t>(is_root | is_of_row_before);
            if (bits != 0u) {
                // Roots on the left may be in this vector.
                uint32_t labels[16], numbers[16];
                _mm512_storeu_si512(labels, label);
                _mm512_storeu_si512(numbers, number);
                for (uint32_t left = bits; left != 0u; left &= left - 1u) {
                    const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
                    numbers[lane] = own[runs[run + lane].begin] = parents_[labels[lane]];
                }
                number = _mm512_loadu_si512(numbers);
            }
            _mm512_storeu_si512(numbers_ + run + 1u, number);
            _mm512_storeu_si512(run_labels + run, _mm512_sub_epi32(number, _mm512_set1_epi32(1)));
        }
        return run;
    }
#endif

    static constexpr uint32_t margin = 16;
    static constexpr uint32_t cells_of_line = 16;
    binary_image image_;
    uint32_t* parents_;
    lanes lane_, bit_, up_to_;
    // Labels and masks of this row and of the row above, labels with background on both sides.
    uint32_t labels_[2][margin + max_side + 2u * margin] = {};
    uint64_t masks_[2][max_side / 64u + 1u] = {};
    // Pairs of labels of a row that are in one component.
    uint32_t ones_[max_side / 2u + 1u + n], others_[max_side / 2u + 1u + n];
    // Numbers of the runs of a row, from place 1 on.
    uint32_t numbers_[1u + max_side / 2u + 1u + n] = {};
};

}  // namespace hlt
