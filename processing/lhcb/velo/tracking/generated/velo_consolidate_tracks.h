// Written by tools/generate_device_headers.py from lhcb/velo/tracking/consolidate_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct velo_consolidate_tracks_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* bound;
        const uint32_t* offset;
    } velo_clusters;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint32_t* candidate_count;
        uint16_t* hits;
        uint8_t* hit_count;
        uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_tracks;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint16_t* hits;
        const uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } velo_seeds;
    struct {
        uint32_t* flags;
    } events;
    uint32_t min_event_size;
    uint32_t max_event_size;

    __device__ bool takes(uint32_t event) const
    {
        if (!(event < batch->n_events)) return false;
        const uint32_t size = velo_clusters.bound[event];
        return size >= min_event_size && size <= max_event_size;
    }
};
