// Places of the rows and of the runs of each image.
//
// In:  images.shape [event]. Out: image_rows.offset [event + 1], image_rows.count [event], runs.offset [event + 1],
// runs.bound [event], components.offset [event + 1], components.bound [event], flag image_too_large. An image is
// labelled if it is not too large and at least half of its rows have come. One block; threads stride over the events.
//
// Bounds: a delivered row has width * bits / 8 bytes of input, rounded up to 4. So at most two rows are placed for 4
// bytes of input, and at most 16 runs for 4 bytes: every second pixel of one bit is a run.
#pragma once

#include "framework/device/event_places.cuh"
#include "imaging/components/component_places.cuh"
#include "imaging/components/generated/ccl_place_images.h"
#include "imaging/images/generated/image_flags.h"
#include "imaging/images/strip.cuh"

namespace hlt {

/// Rows of an image that is labelled, 0 for another one.
__device__ uint32_t labelled_rows(const image_shape& shape, uint32_t max_pixels)
{
    if (!fits(shape, max_pixels)) return 0u;
    return shape.delivered >= (shape.height + 1u) / 2u ? shape.height : 0u;
}

/// Most runs of an image that is labelled; a missing row has none.
__device__ uint32_t most_runs(const image_shape& shape, uint32_t max_pixels)
{
    return most_runs_of_row(shape.width) * min_of(labelled_rows(shape, max_pixels), shape.delivered);
}

}  // namespace hlt

HLT_KERNEL(ccl_place_images)
{
    const uint32_t n_events = p.batch->n_events;
    for (uint32_t event = threadIdx.x; event < n_events; event += blockDim.x)
        if (!hlt::fits(p.images.shape[event], p.max_pixels)) p.events.flags[event] |= hlt::image_too_large;
    hlt::place_components(n_events, p.max_components, p.components.bound, p.components.offset);
    hlt::place_events(
        n_events, [&](uint32_t event) { return hlt::labelled_rows(p.images.shape[event], p.max_pixels); },
        hlt::max_side, 0, p.row_places, p.image_rows.count, p.image_rows.offset, p.events.flags);
    hlt::place_events(
        n_events, [&](uint32_t event) { return hlt::most_runs(p.images.shape[event], p.max_pixels); },
        hlt::most_runs_of_image, 0, p.run_places, p.runs.bound, p.runs.offset, p.events.flags);
}
