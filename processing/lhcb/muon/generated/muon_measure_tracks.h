// Written by tools/generate_device_headers.py from lhcb/muon/measure_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct muon_measure_tracks_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* count;
        const float* qop;
        const float* x;
        const float* y;
        const float* tx;
        const float* ty;
        const float* beam_ty;
        const uint16_t* muon_hits;
        float* muon_features;
        float* muon_stub;
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
        const uint8_t* time;
        const uint8_t* time_y;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } muon_hits;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
