// Written by tools/generate_device_headers.py from lhcb/velo/kill_clones.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct velo_kill_clones_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* count;
    } velo_clusters;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint32_t* candidate_count;
        const uint16_t* hits;
        uint8_t* hit_count;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_tracks;
    struct {
        const uint32_t* velo_clusters_offset;
        uint32_t* hit_owner;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } scratch;
    float max_shared_fraction;
};
