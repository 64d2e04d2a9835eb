// Written by tools/generate_device_headers.py from lhcb/velo/tracking/extend_downstream.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/velo/generated/velo_types.h"

struct velo_extend_downstream_parameters {
    const hlt::batch_header* batch;
    const hlt::velo_geometry* velo_geometry;
    struct {
        const uint32_t* count;
        const uint32_t* bound;
    } velo_clusters;
    struct {
        const uint32_t* velo_clusters_offset;
        const float* x;
        const float* y;
        const float* z;
        const int16_t* phi;
        const uint32_t* id;
        const uint32_t* module_pair_offset;
        const uint16_t* phi_bin_offset;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } velo_hits;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint32_t* count;
        uint8_t* hit_count;
        uint16_t* hits;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_tracks;
    struct {
        const uint32_t* velo_clusters_offset;
        float* points;
        uint32_t* taken;
        uint32_t* hit_bid;
        uint32_t* found;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } scratch;
    float max_scatter;
    uint32_t max_skipped_pairs;
    uint32_t min_event_size;
    uint32_t max_event_size;

    __device__ bool takes(uint32_t event) const
    {
        if (!(event < batch->n_events)) return false;
        const uint32_t size = velo_clusters.bound[event];
        return size >= min_event_size && size <= max_event_size;
    }
};
