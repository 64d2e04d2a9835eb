// Written by tools/generate_device_headers.py from lhcb/lines/event_lines.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/raw_data/generated/raw_data_types.h"
#include "selection/generated/selection_types.h"

struct event_lines_parameters {
    const hlt::batch_header* batch;
    const hlt::line_record* line_table;
    struct {
        const hlt::odin_data* odin;
        const uint32_t* flags;
        uint32_t* lines;
        uint8_t* accepted;
    } events;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint32_t* count;
        const uint8_t* backward;
        const float* ip;
        const float* ip_chi2;
        const uint8_t* pv;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_tracks;
    uint32_t n_lines;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
