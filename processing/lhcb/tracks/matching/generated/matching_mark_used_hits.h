// Written by tools/generate_device_headers.py from lhcb/tracks/matching/mark_used_hits.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct matching_mark_used_hits_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* offset;
        const uint32_t* count;
        uint8_t* used;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } scifi_hits;
    struct {
        const uint32_t* count;
        const uint16_t* hits;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
