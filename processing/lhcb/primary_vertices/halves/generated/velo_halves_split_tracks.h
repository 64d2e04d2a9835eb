// Written by tools/generate_device_headers.py from lhcb/primary_vertices/halves/split_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct velo_halves_split_tracks_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint32_t* count;
        const uint8_t* hit_count;
        const uint16_t* hits;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_tracks;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint32_t* id;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } velo_hits;
    struct {
        const uint32_t* velo_clusters_offset;
        const float* x;
        const float* y;
        const float* z;
        const float* tx;
        const float* ty;
        const float* c00;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_beamline;
    struct {
        const uint32_t* velo_clusters_offset;
        uint32_t* counts;
        float* x;
        float* y;
        float* z;
        float* tx;
        float* ty;
        float* weight;
        float* fit_weight;
        __device__ uint32_t first(uint32_t event) const { return (velo_clusters_offset[event] / 64u + event * 2u) * 32u; }
    } half_tracks;
    struct {
        const uint32_t* bound;
    } velo_clusters;
    float min_variance_scale;
    float max_variance_scale;
    float variance_slope;
    uint32_t min_event_size;
    uint32_t max_event_size;

    __device__ bool takes(uint32_t event) const
    {
        if (!(event < batch->n_events)) return false;
        const uint32_t size = velo_clusters.bound[event];
        return size >= min_event_size && size <= max_event_size;
    }
};
