// Written by tools/generate_device_headers.py from lhcb/primary_vertices/cleanup.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/primary_vertices/generated/pv_types.h"

struct pv_beamline_cleanup_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* count;
        const hlt::primary_vertex* fitted;
        __device__ uint32_t first(uint32_t event) const { return event * 64u; }
    } pv_seeds;
    struct {
        uint32_t* flags;
    } events;
    struct {
        hlt::primary_vertex* vertex;
        uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return event * 32u; }
    } pvs;
    float min_separation_chi2;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
