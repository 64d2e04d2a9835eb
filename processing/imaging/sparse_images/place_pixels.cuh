// Places of the pixels of each sparse image.
//
// In:  images.shape [event]. Out: pixels.offset [event + 1], pixels.count [event]: 0 for an image that is too
// large; components.offset [event + 1], components.bound [event].
// One block; threads stride over the events. Bounds: a delivered pixel has 4 bytes of input.
#pragma once

#include "framework/device/event_places.cuh"
#include "imaging/components/component_places.cuh"
#include "imaging/sparse_images/generated/ccl_place_pixels.h"
#include "imaging/sparse_images/pixel_list.cuh"

namespace hlt {

/// Pixels of an image that is labelled, 0 for another one.
__device__ uint32_t labelled_pixels(const image_shape& shape)
{
    if (shape.width > max_side || shape.height > max_side || shape.delivered > max_pixels) return 0u;
    return shape.delivered;
}

}  // namespace hlt

HLT_KERNEL(ccl_place_pixels)
{
    hlt::place_components(p.batch->n_events, p.max_components, p.components.bound, p.components.offset);
    hlt::place_events(
        p.batch->n_events, [&](uint32_t event) { return hlt::labelled_pixels(p.images.shape[event]); }, hlt::max_pixels,
        0, p.places, p.pixels.count, p.pixels.offset, p.events.flags);
}
