// Written by tools/generate_device_headers.py from lhcb/velo/decoding/sparse_ccl.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"
#include "lhcb/velo/generated/velo_types.h"

struct velo_sparse_ccl_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    const hlt::velo_geometry* velo_geometry;
    struct {
        const uint32_t* bound;
        const uint32_t* super_pixel_bound;
    } velo_clusters;
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
        uint8_t* module_pair;
        uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } velo_unsorted;
    struct {
        const uint32_t* velo_clusters_offset;
        uint32_t* super_pixel_table;
        uint32_t* super_pixel_places;
        uint32_t* numbers;
        uint32_t* parents;
        uint32_t* sums;
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
