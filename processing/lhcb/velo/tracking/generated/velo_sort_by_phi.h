// Written by tools/generate_device_headers.py from lhcb/velo/tracking/sort_by_phi.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/velo/generated/velo_types.h"

struct velo_sort_by_phi_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* velo_clusters_offset;
        const float* x;
        const float* y;
        const float* z;
        const int16_t* phi;
        const uint32_t* id;
        const uint32_t* count;
        uint8_t* module_pair;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } velo_unsorted;
    const hlt::velo_geometry* velo_geometry;
    struct {
        uint32_t* flags;
    } events;
    struct {
        const uint32_t* velo_clusters_offset;
        float* x;
        float* y;
        float* z;
        int16_t* phi;
        uint32_t* id;
        uint32_t* module_pair_offset;
        uint16_t* phi_bin_offset;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } velo_hits;
    struct {
        uint32_t* count;
        const uint32_t* bound;
    } velo_clusters;
    struct {
        const uint32_t* velo_clusters_offset;
        uint64_t* sort_key;
        uint16_t* sort_index;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } scratch;
    uint32_t min_event_size;
    uint32_t max_event_size;

    __device__ bool takes(uint32_t event) const
    {
        if (!(event < batch->n_events)) return false;
        const uint32_t size = velo_clusters.bound[event];
        return size >= min_event_size && size <= max_event_size;
    }
};
