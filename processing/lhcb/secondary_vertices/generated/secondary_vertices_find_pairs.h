// Written by tools/generate_device_headers.py from lhcb/secondary_vertices/find_pairs.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct secondary_vertices_find_pairs_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* count;
        const uint16_t* track;
        const uint32_t* use;
        const float* x0;
        const float* y0;
        const float* tx;
        const float* ty;
        const float* ip_chi2;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } vertex_tracks;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
        uint16_t* tracks;
        uint8_t* kind;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } vertex_pairs;
    float displaced_max_doca;
    float v0_max_doca;
    float dimuon_max_doca;
    float same_pv_below_ip_chi2;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
