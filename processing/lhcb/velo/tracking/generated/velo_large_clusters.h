// Written by tools/generate_device_headers.py from lhcb/velo/tracking/large_clusters.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"

struct velo_large_clusters_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    const uint8_t* retina_sizes;
    struct {
        const uint32_t* count;
        const uint32_t* bound;
    } velo_clusters;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint32_t* id;
        uint8_t* pixels;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } velo_hits;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint32_t* count;
        const uint8_t* hit_count;
        const uint16_t* hits;
        const uint8_t* backward;
        uint8_t* large_clusters;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_tracks;
    struct {
        const uint32_t* velo_clusters_offset;
        const float* tx;
        const float* ty;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_beamline;
    struct {
        const uint32_t* velo_clusters_offset;
        uint32_t* is_listed;
        uint16_t* listed;
        uint32_t* words;
        uint32_t* links;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } scratch;
    uint32_t min_pixels;
    uint32_t min_hits;
    float max_slope;
    uint32_t min_event_size;
    uint32_t max_event_size;

    __device__ bool takes(uint32_t event) const
    {
        if (!(event < batch->n_events)) return false;
        const uint32_t size = velo_clusters.bound[event];
        return size >= min_event_size && size <= max_event_size;
    }
};
