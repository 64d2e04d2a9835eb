// Written by tools/generate_device_headers.py from lhcb/primary_vertices/halves/pair_vertices.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/primary_vertices/generated/pv_types.h"

struct velo_halves_pair_vertices_parameters {
    const hlt::batch_header* batch;
    struct {
        const hlt::primary_vertex* vertex;
        const uint8_t* side;
        const uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return event * 64u; }
    } half_vertices;
    struct {
        uint8_t* vertices;
        float* dx;
        float* dy;
        float* dz;
        float* n_tracks;
        uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return event * 32u; }
    } half_pairs;
    float max_dz;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
