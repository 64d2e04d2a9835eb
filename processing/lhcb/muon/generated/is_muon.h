// Written by tools/generate_device_headers.py from lhcb/muon/is_muon.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/muon/generated/muon_types.h"

struct is_muon_parameters {
    const hlt::batch_header* batch;
    const hlt::muon_field_of_interest* muon_field_of_interest;
    struct {
        const uint32_t* count;
        const float* qop;
        const float* x;
        const float* y;
        const float* tx;
        const float* ty;
        uint8_t* is_muon;
        uint16_t* muon_hits;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    struct {
        const uint32_t* offset;
        const uint16_t* station_offset;
        const float* x;
        const float* y;
        const float* z;
        const float* dx;
        const float* dy;
        const uint32_t* tile;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } muon_hits;
    float min_p;
    float one_behind_p;
    float two_behind_p;
    float field_scale;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
