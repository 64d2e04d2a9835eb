// Places of the label image of each image, and of its chunks of 32 pixels.
//
// In:  image_rows.count, images.shape [event]. Out: pixels.offset, label_chunks.offset [event + 1], pixels.bound,
// label_chunks.bound [event]. One block; threads stride over the events.
//
// Bounds: a row that has come has width * bits / 8 bytes of input, rounded up to 4, and at least half of the rows of an
// image have come. So a byte of input has at most 16 places, and 2 bytes have at most one chunk.
#pragma once

#include "framework/device/event_places.cuh"
#include "imaging/gpu_labelling/generated/label_types.h"
#include "imaging/gpu_labelling/label_image.cuh"
#include "imaging/gpu_labelling/labels/generated/ccl_place_labels.h"

HLT_KERNEL(ccl_place_labels)
{
    const uint32_t n_events = p.batch->n_events;
    hlt::place_events(
        n_events,
        [&](uint32_t event) { return hlt::label_stride(p.images.shape[event].width) * p.image_rows.count[event]; },
        hlt::max_label_pixels, 0, p.pixel_places, p.pixels.bound, p.pixels.offset, p.events.flags);
    hlt::place_events(
        n_events,
        [&](uint32_t event) { return hlt::chunks_of_width(p.images.shape[event].width) * p.image_rows.count[event]; },
        hlt::max_label_chunks, 0, p.chunk_places, p.label_chunks.bound, p.label_chunks.offset, p.events.flags);
}
