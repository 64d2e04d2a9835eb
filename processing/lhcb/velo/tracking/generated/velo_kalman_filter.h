// Written by tools/generate_device_headers.py from lhcb/velo/tracking/kalman_filter.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/velo/generated/velo_types.h"

struct velo_kalman_filter_parameters {
    const hlt::batch_header* batch;
    const hlt::velo_geometry* velo_geometry;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint32_t* count;
        const uint8_t* hit_count;
        const uint16_t* hits;
        uint8_t* backward;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_tracks;
    struct {
        const uint32_t* velo_clusters_offset;
        const float* x;
        const float* y;
        const float* z;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } velo_hits;
    struct {
        const uint32_t* velo_clusters_offset;
        float* x;
        float* y;
        float* z;
        float* tx;
        float* ty;
        float* c00;
        float* c20;
        float* c22;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_beamline;
    struct {
        const uint32_t* velo_clusters_offset;
        float* x;
        float* y;
        float* tx;
        float* ty;
        float* c00;
        float* c20;
        float* c22;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_end;
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
