// Two passes over the pixels (A. Rosenfeld and J. L. Pfaltz, Sequential operations in digital picture processing,
// J. ACM 13 (1966) 471, doi:10.1145/321356.321357), and the same with a decision tree (K. Wu, E. Otoo and K. Suzuki,
// Optimizing two-pass connected-component labeling algorithms, Pattern Anal. Appl. 12 (2009) 117,
// doi:10.1007/s10044-008-0109-y); A. Hennequin, thesis, section 4.2.3, algorithms 1 and 5.
#pragma once

#include "imaging/cpu_labelling/binary_image.h"
#include "imaging/cpu_labelling/equivalences.h"

namespace hlt {

/// Label of a pixel whose neighbours have the labels a (left above), b (above), c (right above) and d (left); n: the
/// labels so far.
template <bool tree>
inline __attribute__((always_inline)) uint32_t rosenfeld_label(uint32_t* parents, uint32_t a, uint32_t b, uint32_t c,
                                                               uint32_t d, uint32_t& n)
{
    if (tree) {
        if (b != 0u) return b;
        if (c != 0u) {
            if (a != 0u) return unite_labels(parents, a, c);
            return d != 0u ? unite_labels(parents, c, d) : c;
        }
        if (a != 0u) return a;
        if (d != 0u) return d;
    } else if ((a | b | c | d) != 0u) {
        uint32_t root = ~0u;
        uint32_t roots[4];
        const uint32_t neighbours[4] = {a, b, c, d};
        for (uint32_t k = 0; k < 4u; ++k) {
            roots[k] = neighbours[k] == 0u ? 0u : find_label(parents, neighbours[k]);
            if (roots[k] != 0u) root = min_of(root, roots[k]);
        }
        for (const uint32_t other : roots)
            if (other != 0u) parents[other] = root;
        return root;
    }
    ++n;
    parents[n] = n;
    return n;
}

/// Label all pixels with the number of their component from 1 on. Returns the number of components.
template <bool tree>
inline uint32_t label_by_rosenfeld(const binary_image& image)
{
    const uint32_t width = image.shape.width;
    // Labels begin with 1.
    uint32_t* const parents = image.parents - 1;
    uint32_t n = 0;
    pixel_row pixels;
    uint32_t background[max_side] = {};
    const uint32_t* above = background;
    for (uint32_t y = 0; y < image.shape.height; ++y) {
        const uint8_t* const foreground = pixels.unpack(image, y);
        uint32_t* const own = image.labels_of_row(y);
        uint32_t a = 0, b = above[0], d = 0;
        for (uint32_t x = 0; x < width; ++x) {
            const uint32_t c = x + 1u < width ? above[x + 1u] : 0u;
            d = foreground[x] == 0u ? 0u : rosenfeld_label<tree>(parents, a, b, c, d, n);
            own[x] = d;
            a = b;
            b = c;
        }
        above = own;
    }
    const uint32_t n_components = number_labels(parents, n);
    const size_t n_pixels = static_cast<size_t>(image.shape.height) * width;
    for (size_t k = 0; k < n_pixels; ++k) image.labels[k] = image.labels[k] == 0u ? 0u : parents[image.labels[k]];
    return n_components;
}

}  // namespace hlt
