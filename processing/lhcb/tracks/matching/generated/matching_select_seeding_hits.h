// Written by tools/generate_device_headers.py from lhcb/tracks/matching/select_seeding_hits.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct matching_select_seeding_hits_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* offset;
        const uint32_t* count;
        const uint16_t* zone_offset;
        const float* x;
        const uint8_t* used;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } scifi_hits;
    struct {
        const uint32_t* scifi_hits_offset;
        uint16_t* bins;
        uint32_t* cells;
        float* x;
        uint16_t* hit;
        __device__ uint32_t first(uint32_t event) const { return scifi_hits_offset[event]; }
    } seeding_hits;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
