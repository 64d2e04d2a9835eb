// Written by tools/generate_device_headers.py from lhcb/velo/tracking/filter_three_hit_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct velo_filter_three_hit_tracks_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* velo_clusters_offset;
        const float* x;
        const float* y;
        const float* z;
        const uint32_t* used;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } velo_hits;
    struct {
        const uint32_t* count;
        const uint32_t* bound;
    } velo_clusters;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint32_t* count;
        uint16_t* hits;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } velo_seeds;
    struct {
        const uint32_t* velo_clusters_offset;
        uint32_t* hit_owner;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } scratch;
    float max_chi2;
    uint32_t min_event_size;
    uint32_t max_event_size;

    __device__ bool takes(uint32_t event) const
    {
        if (!(event < batch->n_events)) return false;
        const uint32_t size = velo_clusters.bound[event];
        return size >= min_event_size && size <= max_event_size;
    }
};
