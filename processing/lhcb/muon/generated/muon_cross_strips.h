// Written by tools/generate_device_headers.py from lhcb/muon/cross_strips.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"
#include "lhcb/muon/generated/muon_types.h"

struct muon_cross_strips_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    const hlt::muon_geometry* muon_geometry;
    struct {
        const uint32_t* muon_cells;
        const uint32_t* muon_crossed;
    } events;
    struct {
        const uint32_t* bound;
        const uint32_t* offset;
        uint32_t* count;
        uint16_t* station_offset;
        float* x;
        float* y;
        float* z;
        float* dx;
        float* dy;
        uint32_t* tile;
        uint8_t* time;
        uint8_t* time_y;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } muon_hits;
    struct {
        const uint32_t* muon_hits_offset;
        uint32_t* cell_time;
        __device__ uint32_t first(uint32_t event) const { return muon_hits_offset[event]; }
    } scratch;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
