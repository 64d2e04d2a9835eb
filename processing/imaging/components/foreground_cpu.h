// The foreground of a row on the CPU: masks of 64 pixels, and the runs as the places where a row changes.
//
// A run is two such places, its begin and its end, so the runs of a row are the set bits of one mask in order. Each
// byte of the mask gives up to eight places at once from a table, and there is no branch for a bit (D. Lemire and G.
// Langdale extract bits alike: Parsing gigabytes of JSON per second, VLDB J. 28 (2019) 941,
// doi:10.1007/s00778-019-00578-5).
#pragma once

#include "framework/device/vector8.cuh"
#include "imaging/components/foreground.cuh"

namespace hlt {

/// Bit i is set if pixel 64 * word + i of a row is foreground (foreground_mask).
inline __attribute__((always_inline)) uint64_t foreground_mask64(const uint8_t* row, const image_shape& shape,
                                                                 uint32_t threshold, uint32_t word)
{
    if (64u * word + 64u <= shape.width) {
        uint64_t mask = 0;
        if (shape.bits == 1u) {
            std::memcpy(&mask, row + 8u * word, sizeof mask);
            return mask;
        }
#if defined(__SSE2__)
        if (threshold > 255u) return 0;
        using sixteen_pixels = uint8_t __attribute__((vector_size(16)));
        for (uint32_t part = 0; part < 4u; ++part) {
            sixteen_pixels pixels;
            std::memcpy(&pixels, row + 64u * word + 16u * part, sizeof pixels);
            const auto bits = (sixteen_bytes)(pixels >= static_cast<uint8_t>(threshold));
            mask |= static_cast<uint64_t>(static_cast<uint16_t>(__builtin_ia32_pmovmskb128(bits))) << 16u * part;
        }
        return mask;
#endif
    }
    const uint64_t low = foreground_mask(row, shape, threshold, 2u * word);
    if (64u * word + 32u >= shape.width) return low;
    return low | static_cast<uint64_t>(foreground_mask(row, shape, threshold, 2u * word + 1u)) << 32;
}

/// Columns that a row can write beyond its last run.
constexpr uint32_t spare_edges = 16;

/// Write the columns at which a row changes between background and foreground, the first one to foreground; those of
/// `spare_edges` more places get any values. Returns their number, which is even.
inline __attribute__((always_inline)) uint32_t write_edges(const uint8_t* row, const image_shape& shape,
                                                           uint32_t threshold, uint16_t* edges)
{
    uint32_t n = 0;
    uint64_t last = 0;
    for (uint32_t word = 0; 64u * word < shape.width; ++word) {
        const uint64_t mask = foreground_mask64(row, shape, threshold, word);
        uint64_t changes = mask ^ (mask << 1 | last);
        last = mask >> 63;
        for (uint32_t column = 64u * word; changes != 0u; changes >>= 8, column += 8u) {
            uint8x16 places;
            load_bytes8(places, eight_places.places[changes & 0xffu]);
            places += static_cast<uint16_t>(column);
            std::memcpy(edges + n, &places, sizeof places);
            n += static_cast<uint32_t>(__builtin_popcountll(changes & 0xffu));
        }
    }
    // The row ends within a run; if its last word is not full, that word has the edge.
    if (last != 0u) edges[n++] = static_cast<uint16_t>(shape.width);
    return n;
}

}  // namespace hlt
