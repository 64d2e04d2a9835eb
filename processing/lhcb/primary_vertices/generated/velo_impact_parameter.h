// Written by tools/generate_device_headers.py from lhcb/primary_vertices/impact_parameter.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/primary_vertices/generated/pv_types.h"

struct velo_impact_parameter_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint32_t* count;
        float* ip;
        float* ip_chi2;
        uint8_t* pv;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_tracks;
    struct {
        const uint32_t* velo_clusters_offset;
        const float* x;
        const float* y;
        const float* z;
        const float* tx;
        const float* ty;
        const float* c00;
        const float* c20;
        const float* c22;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_beamline;
    struct {
        const hlt::primary_vertex* vertex;
        const uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return event * 32u; }
    } pvs;
    struct {
        const uint32_t* bound;
    } velo_clusters;
    uint32_t min_event_size;
    uint32_t max_event_size;

    __device__ bool takes(uint32_t event) const
    {
        if (!(event < batch->n_events)) return false;
        const uint32_t size = velo_clusters.bound[event];
        return size >= min_event_size && size <= max_event_size;
    }
};
