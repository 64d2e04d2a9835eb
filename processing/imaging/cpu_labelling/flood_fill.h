// Flood fill: one component at a time, with a stack (A. Hennequin, Performance optimization for the LHCb experiment,
// PhD thesis, Sorbonne Universite, 2022, section 4.2.1).
//
// The stack is a list through the labels of its own pixels, so it needs no memory, and no image overflows it.
#pragma once

#include "imaging/cpu_labelling/binary_image.h"

namespace hlt {

/// Label all pixels with the number of their component from 1 on. Returns the number of components.
inline uint32_t label_by_flood_fill(const binary_image& image)
{
    constexpr uint32_t unseen = ~0u, waiting = 1u << 31;
    const uint32_t width = image.shape.width, height = image.shape.height;
    uint32_t* const labels = image.labels;
    pixel_row pixels;
    for (uint32_t y = 0; y < height; ++y) {
        const uint8_t* const foreground = pixels.unpack(image, y);
        uint32_t* const own = image.labels_of_row(y);
        for (uint32_t x = 0; x < width; ++x) own[x] = 0u - foreground[x];
    }
    uint32_t n_components = 0;
    for (uint32_t start = 0; start < width * height; ++start) {
        if (labels[start] != unseen) continue;
        ++n_components;
        // The number of the pixel on top, plus 1; 0 below the last one.
        uint32_t top = start + 1u;
        labels[start] = waiting;
        while (top != 0u) {
            const uint32_t k = top - 1u, x = k % width, y = k / width;
            top = labels[k] & ~waiting;
            labels[k] = n_components;
            const uint32_t left = x == 0u ? 0u : x - 1u, right = min_of(x + 2u, width);
            for (uint32_t v = y == 0u ? 0u : y - 1u; v < min_of(y + 2u, height); ++v)
                for (uint32_t neighbour = v * width + left; neighbour < v * width + right; ++neighbour) {
                    if (labels[neighbour] != unseen) continue;
                    labels[neighbour] = waiting | top;
                    top = neighbour + 1u;
                }
        }
    }
    return n_components;
}

}  // namespace hlt
