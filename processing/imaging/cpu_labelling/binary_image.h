// The image of an event for algorithms that label its pixels, on the CPU.
#pragma once

#include "imaging/components/foreground_cpu.h"

namespace hlt {

/// An image all of whose rows are there, and what its labelling needs.
///
/// labels: [height][width], 0 for background; any values before. parents: places for as many labels as the image can
/// have runs.
struct binary_image {
    image_shape shape;
    uint32_t threshold;
    const uint8_t* input;
    const uint32_t* row_data;
    uint32_t* labels;
    uint32_t* parents;

    const uint8_t* row(uint32_t y) const { return input + row_data[y]; }
    uint32_t* labels_of_row(uint32_t y) const { return labels + static_cast<size_t>(y) * shape.width; }
};

/// A row as bytes of 0 and 1, with a background pixel on both sides.
class pixel_row {
  public:
    inline __attribute__((always_inline)) const uint8_t* unpack(const binary_image& image, uint32_t y)
    {
        for (uint32_t word = 0; 64u * word < image.shape.width; ++word) {
            uint64_t mask = foreground_mask64(image.row(y), image.shape, image.threshold, word);
            for (uint32_t x = 64u * word; x < 64u * word + 64u; x += 8u, mask >>= 8) {
                // Byte k keeps bit k, then becomes 1 if it has it.
                const uint64_t bits = (mask & 0xffu) * 0x0101010101010101u & 0x8040201008040201u;
                const uint64_t bytes = (bits + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
                std::memcpy(pixels_ + margin + x, &bytes, sizeof bytes);
            }
        }
        pixels_[margin + image.shape.width] = 0;
        return pixels_ + margin;
    }

  private:
    static constexpr uint32_t margin = 8;
    uint8_t pixels_[margin + max_side + 64u] = {};
};

/// Replace the parents of n labels by numbers of components from 1 on, in order of their roots; parents are smaller
/// than their children. Returns the number of components.
inline __attribute__((always_inline)) uint32_t number_labels(uint32_t* parents, uint32_t n)
{
    uint32_t n_components = 0;
    for (uint32_t label = 1; label <= n; ++label)
        parents[label] = parents[label] == label ? ++n_components : parents[parents[label]];
    return n_components;
}

}  // namespace hlt
