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
// Lanes that need a union make it one after another, instead of an emulated minimum over lanes of equal labels; most
// vectors have none or one.
#pragma once

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
};
template <>
struct lanes_of<8> {
    using lanes = uint32_t __attribute__((vector_size(32)));
    using signed_lanes = int32_t __attribute__((vector_size(32)));
    using float_lanes = float __attribute__((vector_size(32)));
};
template <>
struct lanes_of<16> {
    using lanes = uint32_t __attribute__((vector_size(64)));
    using signed_lanes = int32_t __attribute__((vector_size(64)));
    using float_lanes = float __attribute__((vector_size(64)));
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

    /// Label all pixels with the number of their component from 1 on. rows, runs: the runs of the image. Returns the
    /// number of components.
    uint32_t label(const row_runs* rows, const image_run* runs)
    {
        for (uint32_t y = 0; y < image_.shape.height; ++y) first_pass(y);
        for (uint32_t y = 0; y < image_.shape.height; ++y) second_pass(y);
        // The first pixel of a component begins a run and has its own label.
        uint32_t n_components = 0;
        for (uint32_t y = 0; y < image_.shape.height; ++y) {
            uint32_t* const own = image_.labels_of_row(y);
            const uint32_t base = y * image_.shape.width + 1u;
            for (uint32_t run = rows[y].first; run < rows[y].first + rows[y].count; ++run) {
                const uint32_t root = own[runs[run].begin];
                const uint32_t number = root == base + runs[run].begin ? ++n_components : parents_[root];
                for (uint32_t x = runs[run].begin; x < runs[run].end; ++x) own[x] = number;
            }
        }
        return n_components;
    }

  private:
    using lanes = typename lanes_of<n>::lanes;
    using signed_lanes = typename lanes_of<n>::signed_lanes;
    using float_lanes = typename lanes_of<n>::float_lanes;

    static inline __attribute__((always_inline)) void load(lanes& vector, const uint32_t* from)
    {
        std::memcpy(&vector, from, sizeof vector);
    }

    /// The smaller label of each lane; 0, the background, is the largest.
    static inline __attribute__((always_inline)) lanes min_label(const lanes& one, const lanes& other)
    {
        const lanes a = one - 1u, b = other - 1u;
        return (a < b ? a : b) + 1u;
    }

    /// The cells of some labels.
    inline __attribute__((always_inline)) lanes cells(const lanes& labels) const
    {
        lanes found;
#if defined(__AVX2__)
        for (uint32_t lane = 0; lane < n; lane += n < 8u ? 4u : 8u) {
            const char* const from = reinterpret_cast<const char*>(&labels) + 4u * lane;
            char* const to = reinterpret_cast<char*>(&found) + 4u * lane;
            if (n < 8u) {
                __m128i index;
                std::memcpy(&index, from, sizeof index);
                const __m128i values = _mm_i32gather_epi32(reinterpret_cast<const int*>(parents_), index, 4);
                std::memcpy(to, &values, sizeof values);
            } else {
                __m256i index;
                std::memcpy(&index, from, sizeof index);
                const __m256i values = _mm256_i32gather_epi32(reinterpret_cast<const int*>(parents_), index, 4);
                std::memcpy(to, &values, sizeof values);
            }
        }
#else
        for (uint32_t lane = 0; lane < n; ++lane) found[lane] = parents_[labels[lane]];
#endif
        return found;
    }

    static inline __attribute__((always_inline)) bool any(const lanes& vector)
    {
        uint64_t words[n / 2u], all = 0;
        std::memcpy(words, &vector, sizeof vector);
        for (const uint64_t word : words) all |= word;
        return all != 0u;
    }

    inline __attribute__((always_inline)) void first_pass(uint32_t y)
    {
        const uint32_t width = image_.shape.width;
        const uint32_t* const above = labels_[(y + 1u) % 2u];
        uint32_t* const own = labels_[y % 2u];
        uint32_t* const cells_of_row = image_.labels_of_row(y);
        const uint32_t base = y * width + 1u;
        uint64_t mask = 0;
        for (uint32_t x0 = 0; x0 < width; x0 += n, mask >>= n) {
            if (x0 % 64u == 0u) mask = foreground_mask64(image_.row(y), image_.shape, image_.threshold, x0 / 64u);
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
            lanes x = (start + (base + x0)) & foreground;
            lanes ab, b, bc, dx;
            load(ab, above + margin + x0 - 1u);
            load(b, above + margin + x0);
            load(bc, above + margin + x0 + 1u);
            std::memcpy(own + margin + x0, &x, sizeof x);
            load(dx, own + margin + x0 - 1u);
            x = min_label(min_label(min_label(ab, b), min_label(bc, dx)), x) & foreground;
            std::memcpy(own + margin + x0, &x, sizeof x);
            std::memcpy(cells_of_row + x0, &x, 4u * min_of(n, width - x0));
            load(dx, own + margin + x0 - 1u);
            const lanes left = min_label(ab, dx);
            const lanes joined = foreground & (lanes)(bc != 0u) & (lanes)(b == 0u) & (lanes)(left != 0u);
            if (!any(joined)) continue;
            for (uint32_t lane = 0; lane < n; ++lane)
                if (joined[lane] != 0u) unite_labels(parents_, left[lane], bc[lane]);
        }
        // The vectors end with background, but the next row may be wider than the last vector of its loads.
        std::memset(own + margin + (width + n - 1u) / n * n, 0, sizeof(uint32_t));
    }

    inline __attribute__((always_inline)) void second_pass(uint32_t y)
    {
        const uint32_t width = image_.shape.width;
        uint32_t* const own = image_.labels_of_row(y);
        uint32_t x0 = 0;
        for (; x0 + n <= width; x0 += n) {
            lanes label;
            load(label, own + x0);
            const auto foreground = (lanes)(label != 0u);
            if (!any(foreground)) continue;
            // Background lanes search from the first label, whose cell may be background: the root of both is 0.
            for (;;) {
                const lanes next = cells((label & foreground) | (~foreground & 1u)) & foreground;
                if (!any(next ^ label)) break;
                label = next;
            }
            std::memcpy(own + x0, &label, sizeof label);
        }
        for (; x0 < width; ++x0)
            if (own[x0] != 0u) own[x0] = find_label(parents_, own[x0]);
    }

    static constexpr uint32_t margin = 16;
    binary_image image_;
    uint32_t* parents_;
    lanes lane_, bit_, up_to_;
    // Labels of this row and of the row above, with background on both sides.
    uint32_t labels_[2][margin + max_side + 2u * margin] = {};
};

}  // namespace hlt
