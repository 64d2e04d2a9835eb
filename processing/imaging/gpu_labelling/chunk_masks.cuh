// Chunks of 32 or 64 pixels of a row as bit masks, one chunk for a warp, and distances inside of them (A. Hennequin,
// Performance optimization for the LHCb experiment, PhD thesis, Sorbonne Universite, 2022, sections 4.3.1 and 4.3.5,
// algorithms 6, 12 and 13).
//
// A lane has one pixel of 32, or two of 64. The printed shifts by the whole width are undefined in C++; the forms here
// give what the algorithms mean.
#pragma once

#include "imaging/components/foreground.cuh"

namespace hlt {

/// Pixels from the start of the run that contains pixel tx - 1, up to tx: 0 if pixel tx - 1 is background. tx: 0 to 32.
/// For a pixel of the run it is the distance to the start; for tx = 32 the length of the run at the right edge.
__device__ uint32_t start_distance(uint32_t pixels, uint32_t tx)
{
    const uint32_t left = static_cast<uint32_t>(static_cast<uint64_t>(pixels) << (32u - tx));
    return static_cast<uint32_t>(__clz(static_cast<int>(~left)));
}

/// The same for 64 pixels; tx: 0 to 64.
__device__ uint32_t start_distance(uint64_t pixels, uint32_t tx)
{
    if (tx == 0u) return 0u;
    return static_cast<uint32_t>(__clzll(static_cast<long long>(~(pixels << (64u - tx)))));
}

/// Pixels from tx to the end of its run inside of the chunk, tx included. tx: 0 to 31.
__device__ uint32_t end_distance(uint32_t pixels, uint32_t tx)
{
    const uint32_t right = static_cast<uint32_t>(static_cast<uint64_t>(pixels) >> (tx + 1u));
    return static_cast<uint32_t>(__ffs(static_cast<int>(~right)));
}

/// The same for 64 pixels; tx: 0 to 63.
__device__ uint32_t end_distance(uint64_t pixels, uint32_t tx)
{
    const uint64_t right = tx == 63u ? 0u : pixels >> (tx + 1u);
    return static_cast<uint32_t>(__ffsll(static_cast<long long>(~right)));
}

template <typename Mask>
constexpr uint32_t chunk_pixels = 8u * sizeof(Mask);

/// Pixels at which runs begin. `continued`: a run comes from the chunk to the left.
template <typename Mask>
__device__ Mask starts_of_runs(Mask pixels, bool continued)
{
    return pixels & ~(pixels << 1 | static_cast<Mask>(continued ? 1u : 0u));
}

/// Length of the run at the right edge of a chunk, of which `before` pixels lie to the left of the chunk.
template <typename Mask>
__device__ uint32_t length_at_right_edge(Mask pixels, uint32_t before)
{
    const uint32_t length = start_distance(pixels, chunk_pixels<Mask>);
    return length == chunk_pixels<Mask> ? length + before : length;
}

/// Spread 32 bits to the even bits of 64.
__device__ uint64_t unpack_bits(uint32_t bits)
{
    uint64_t b = bits;
    b = (b | b << 16) & 0x0000ffff0000ffffu;
    b = (b | b << 8) & 0x00ff00ff00ff00ffu;
    b = (b | b << 4) & 0x0f0f0f0f0f0f0f0fu;
    b = (b | b << 2) & 0x3333333333333333u;
    return (b | b << 1) & 0x5555555555555555u;
}

/// Alternate the bits of two masks; bit 0 is that of `even`.
__device__ uint64_t interleave_bits(uint32_t even, uint32_t odd) { return unpack_bits(even) | unpack_bits(odd) << 1; }

/// Whether a pixel of 8 bits of a row is foreground; not beyond the width.
__device__ bool is_foreground(const uint8_t* row, const image_shape& shape, uint32_t threshold, uint32_t x)
{
    return x < shape.width && row[x] >= threshold;
}

/// Whether the lanes of a warp read one pixel of 8 bits each and exchange them by votes. Rows of 1 bit are masks
/// already.
__device__ bool votes_for_masks(const image_shape& shape)
{
#if HLT_ON_GPU
    return shape.bits == 8u && n_warp_lanes() == warp_size;
#else
    static_cast<void>(shape);
    return false;
#endif
}

/// The mask of 32 pixels from column x on, a multiple of 32; 0 beyond the row and for a missing row (nullptr). All
/// lanes of the warp must call it with the same row and column.
__device__ uint32_t mask_of_warp(const uint8_t* row, const image_shape& shape, uint32_t threshold, uint32_t x)
{
    if (row == nullptr || x >= shape.width) return 0u;
    if (votes_for_masks(shape))
        return __ballot_sync(0xffffffffu, is_foreground(row, shape, threshold, x + threadIdx.x % warp_size));
    return foreground_mask(row, shape, threshold, x / 32u);
}

/// The votes of a warp for its even and odd pixels: lane t has pixels x + 2t and x + 2t + 1.
struct paired_votes {
    uint32_t even, odd;
};

__device__ paired_votes votes_for_pairs(const uint8_t* row, const image_shape& shape, uint32_t threshold, uint32_t x)
{
    if (row == nullptr) return {0, 0};
    const uint32_t left = x + 2u * (threadIdx.x % warp_size);
    // A row has a multiple of 4 bytes, so both pixels can be loaded at once if the first one exists.
    const uint32_t pair = left < shape.width ? load_u16(row + left) : 0u;
    const uint32_t even = __ballot_sync(0xffffffffu, left < shape.width && (pair & 0xffu) >= threshold);
    const uint32_t odd = __ballot_sync(0xffffffffu, left + 1u < shape.width && pair >> 8 >= threshold);
    return {even, odd};
}

/// Reads the chunks of a row. The first construction loads two adjacent pixels in each lane and interleaves two votes,
/// the second one loads pixels that are 32 apart and needs no interleaving.
template <typename Mask>
__device__ Mask chunk_of_row(const uint8_t* row, const image_shape& shape, uint32_t threshold, uint32_t x,
                             [[maybe_unused]] bool interleaved)
{
    if constexpr (sizeof(Mask) == 8) {
        if (interleaved && votes_for_masks(shape)) {
            const paired_votes votes = votes_for_pairs(row, shape, threshold, x);
            return interleave_bits(votes.even, votes.odd);
        }
        const uint64_t high = mask_of_warp(row, shape, threshold, x + 32u);
        return high << 32 | mask_of_warp(row, shape, threshold, x);
    } else {
        return mask_of_warp(row, shape, threshold, x);
    }
}

/// The chunks of a row and of the row above at one column.
template <typename Mask>
struct two_chunks {
    Mask own, above;
};

__device__ uint64_t of_lane(uint64_t value, uint32_t lane)
{
    const uint32_t low = __shfl_sync(warp_lanes(), static_cast<uint32_t>(value), lane);
    const uint32_t high = __shfl_sync(warp_lanes(), static_cast<uint32_t>(value >> 32), lane);
    return static_cast<uint64_t>(high) << 32 | low;
}

/// With interleaving, odd lanes do the work for the row above and even lanes that for the own one.
template <typename Mask>
__device__ two_chunks<Mask> chunks_of_rows(const uint8_t* row, const uint8_t* above, const image_shape& shape,
                                           uint32_t threshold, uint32_t x, bool interleaved)
{
    if constexpr (sizeof(Mask) == 8) {
        if (interleaved && votes_for_masks(shape)) {
            const paired_votes own = votes_for_pairs(row, shape, threshold, x);
            const paired_votes other = votes_for_pairs(above, shape, threshold, x);
            const bool odd = (threadIdx.x & 1u) != 0u;
            const uint64_t mask = interleave_bits(odd ? other.even : own.even, odd ? other.odd : own.odd);
            return {of_lane(mask, 0), of_lane(mask, 1)};
        }
    }
    return {chunk_of_row<Mask>(row, shape, threshold, x, interleaved),
            chunk_of_row<Mask>(above, shape, threshold, x, interleaved)};
}

/// Calls `work(active, tx)` in each lane for its pixels of a chunk; `active` if bit tx of `bits` is set. Two adjacent
/// bits must not both be set if lanes have two pixels. All lanes of a warp make the same number of calls, in the order
/// of the pixels, so `work` may exchange values between lanes. A block of one thread only gets the set bits.
template <typename Mask, typename Work>
__device__ void for_each_set(Mask bits, Work work)
{
    constexpr uint32_t per_lane = chunk_pixels<Mask> / warp_size;
    const uint32_t lanes = n_warp_lanes();
    if (lanes == 1u) {
        while (bits != 0u) {
            const uint32_t tx = static_cast<uint32_t>(__popcll(~bits & (bits - 1u)));  // zeros below the lowest bit
            bits &= bits - 1u;
            work(true, tx);
        }
        return;
    }
    for (uint32_t base = 0; base < warp_size; base += lanes) {
        const uint32_t lane = base + threadIdx.x % warp_size;
        const uint32_t pixels =
            lane < warp_size ? static_cast<uint32_t>(bits >> (per_lane * lane)) & ((1u << per_lane) - 1u) : 0u;
        work(pixels != 0u, per_lane * lane + (pixels >> 1));
    }
}

}  // namespace hlt
