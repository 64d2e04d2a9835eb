// The component of each pixel of a sparse image, and the features of components.
//
// In:  the MFPs of the lists, images.shape, pixels.total, pixels.count. Out: pixels.position, pixels.label, the columns
// of components, flags; scratch.keys.
// One block per event; threads stride over the pixels. The pixels are sorted by position with their numbers in the list
// (K. E. Batcher, AFIPS Spring Joint Computer Conference 32 (1968) 307, doi:10.1145/1468075.1468121; the form in which
// every exchange puts the smaller key first, which needs no power of two). A pixel finds its neighbours to the right
// and below by bisection, and joins their sets. A component is numbered by its first pixel in the list, so the results
// do not depend on the threads. Bounds: pixels.count pixels, at most max_pixels. Of pixels in one place, the first in
// the list is used.
#pragma once

#include "framework/generated/launch_types.h"
#include "imaging/components/clear_features.cuh"
#include "imaging/components/run_features.cuh"
#include "imaging/components/union_find.cuh"
#include "imaging/images/generated/image_flags.h"
#include "imaging/sparse_images/generated/ccl_label_pixels.h"
#include "imaging/sparse_images/pixel_list.cuh"

namespace hlt {

constexpr uint32_t pixel_root_bit = 1u << 31;

/// The threads of a block write the positions of all pixels of an event, in the order of their sources. A thread gets
/// true if it has read a pixel outside of the image.
__device__ bool gather_pixels(const ccl_label_pixels_parameters& p, uint32_t event, uint32_t* positions)
{
    const event_row place = p.raw_banks.event_rows[event];
    const row_range rows = strip_rows(p.raw_banks, place.mep);
    const image_shape shape = p.images.shape[event];
    const uint32_t total = p.pixels.total[event];
    uint32_t n = 0, outside = 0;
    for (uint32_t k = 0; k < rows.count; ++k) {
        const pixel_list list =
            pixels_of_bank(p.raw_banks, p.raw_banks.mfp_rows[rows.first + k], place.index, shape, total);
        for (uint32_t i = threadIdx.x; i < list.count; i += blockDim.x) {
            const uint32_t position = list.position(i);
            positions[n + i] = position;
            outside |= position == no_pixel ? 1u : 0u;
        }
        n += list.count;
    }
    return outside != 0u;
}

/// The threads of a block sort n keys in place.
__device__ void sort_keys(uint64_t* keys, uint32_t n)
{
    const auto order = [=](uint32_t a, uint32_t b) {
        if (b >= n || keys[a] <= keys[b]) return;
        const uint64_t larger = keys[a];
        keys[a] = keys[b];
        keys[b] = larger;
    };
    for (uint32_t half = 1; half < n; half *= 2u) {
        // Pairs of a first sorted half and the reversed second one, then of halves of halves. Places beyond n hold keys
        // that are larger than all, which no exchange moves.
        for (uint32_t pair = threadIdx.x; pair < n; pair += blockDim.x) {
            const uint32_t begin = pair / half * 2u * half, i = pair % half;
            if (begin + i < n) order(begin + i, begin + 2u * half - 1u - i);
        }
        block_barrier();
        for (uint32_t step = half / 2u; step > 0u; step /= 2u) {
            for (uint32_t pair = threadIdx.x; pair < n; pair += blockDim.x) {
                const uint32_t a = pair / step * 2u * step + pair % step;
                if (a < n) order(a, a + step);
            }
            block_barrier();
        }
    }
}

/// The first of n sorted keys whose position is `position` or a later one.
__device__ uint32_t find_key(const uint64_t* keys, uint32_t n, uint32_t position)
{
    const uint64_t key = static_cast<uint64_t>(position) << 32;
    uint32_t begin = 0, end = n;
    while (begin < end) {
        const uint32_t middle = begin + (end - begin) / 2u;
        if (keys[middle] < key) {
            begin = middle + 1u;
        } else {
            end = middle;
        }
    }
    return begin;
}

/// Join the pixel of a key with those of the positions `first` to `last`.
__device__ void join_with(uint32_t* parents, const uint64_t* keys, uint32_t n, uint64_t key, uint32_t first,
                          uint32_t last)
{
    uint32_t before = no_pixel;
    for (uint32_t j = find_key(keys, n, first); j < n; ++j) {
        const uint32_t position = static_cast<uint32_t>(keys[j] >> 32);
        if (position > last) return;
        // Behind the first pixel of a place are those that are left out.
        if (position != before) join_sets(parents, static_cast<uint32_t>(key), static_cast<uint32_t>(keys[j]));
        before = position;
    }
}

}  // namespace hlt

HLT_KERNEL(ccl_label_pixels)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t flags;

    const uint32_t n = p.pixels.count[event], first = p.pixels.first(event);
    uint32_t* const positions = p.pixels.position + first;
    uint32_t* const label = p.pixels.label + first;
    uint64_t* const keys = p.scratch.keys + 4u * first;
    if (threadIdx.x == 0) flags = 0;
    hlt::block_barrier();
    if (n != 0u && hlt::gather_pixels(p, event, positions)) atomicOr(&flags, uint32_t{hlt::bad_pixels});
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        keys[i] = static_cast<uint64_t>(positions[i]) << 32 | i;
        label[i] = i;
    }
    hlt::block_barrier();
    hlt::sort_keys(keys, n);
    const uint32_t n_inside = hlt::find_key(keys, n, hlt::no_pixel);
    for (uint32_t k = 1u + threadIdx.x; k < n_inside; k += blockDim.x) {
        if (keys[k - 1u] >> 32 != keys[k] >> 32) continue;
        positions[static_cast<uint32_t>(keys[k])] = hlt::no_pixel;
        atomicOr(&flags, uint32_t{hlt::bad_pixels});
    }
    hlt::block_barrier();
    const uint32_t reach = p.diagonal != 0u ? 1u : 0u;
    for (uint32_t k = threadIdx.x; k < n_inside; k += blockDim.x) {
        const uint32_t position = static_cast<uint32_t>(keys[k] >> 32), below = position + 0x10000u;
        if (positions[static_cast<uint32_t>(keys[k])] == hlt::no_pixel) continue;
        hlt::join_with(label, keys, n_inside, keys[k], position + 1u, position + 1u);
        const uint32_t left = (position & 0xffffu) == 0u ? 0u : reach;
        hlt::join_with(label, keys, n_inside, keys[k], below - left, below + reach);
    }
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) atomicMin(&label[i], hlt::find_root(label, i));
    hlt::block_barrier();

    uint32_t n_all = 0;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        const bool is_root = i < n && label[i] == i && positions[i] != hlt::no_pixel;
        uint32_t total;
        const uint32_t number = n_all + hlt::block_exclusive_count(is_root, scratch, total);
        if (is_root) label[i] = number | hlt::pixel_root_bit;
        n_all += total;
    }
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        if ((label[i] & hlt::pixel_root_bit) == 0u && positions[i] != hlt::no_pixel) label[i] = label[label[i]];
    const uint32_t n_components = hlt::min_of(n_all, p.components.bound[event]);
    const uint32_t first_component = p.components.first(event);
    hlt::clear_features(p.components, first_component, n_components);
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        const uint32_t x = positions[i] & 0xffffu, y = positions[i] >> 16, number = label[i] & ~hlt::pixel_root_bit;
        label[i] = positions[i] == hlt::no_pixel ? hlt::no_pixel : number;
        if (label[i] >= n_components) continue;
        const hlt::image_run span{static_cast<uint16_t>(x), static_cast<uint16_t>(x + 1u)};
        hlt::add_run(p.components, first_component + number, span, y, {1, x, y, 1, x, y});
    }
    if (threadIdx.x != 0) return;
    p.all_components.count[event] = n_all;
    p.components.count[event] = n_components;
    if (n_all > p.components.bound[event]) flags |= hlt::too_many_components;
    if (flags != 0u) p.events.flags[event] |= flags;
}
