// Written by tools/generate_device_headers.py from lhcb/velo/tracking/follow_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct velo_follow_tracks_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* bound;
        const uint32_t* count;
    } velo_clusters;
    struct {
        const uint32_t* velo_clusters_offset;
        const float* x;
        const float* y;
        const float* z;
        const int16_t* phi;
        const uint32_t* id;
        const uint32_t* module_pair_offset;
        uint32_t* used;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } velo_hits;
    struct {
        uint32_t* flags;
    } events;
    struct {
        const uint32_t* velo_clusters_offset;
        uint16_t* hits;
        uint8_t* hit_count;
        uint32_t* candidate_count;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_tracks;
    struct {
        const uint32_t* velo_clusters_offset;
        uint16_t* hits;
        uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } velo_seeds;
    struct {
        const uint32_t* velo_clusters_offset;
        uint32_t* candidates;
        uint32_t* found;
        uint32_t* hit_bid;
        float* planes;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } scratch;
    float max_seed_scatter;
    float max_follow_scatter;
    float max_shared_scatter;
    float max_seed_slope;
    float max_displaced_slope;
    uint32_t seed_phi_tolerance;
    uint32_t displaced_phi_tolerance;
    uint32_t max_skipped_pairs;
    uint32_t seed_partners;
    uint32_t plane_kind;
    uint32_t min_event_size;
    uint32_t max_event_size;

    __device__ bool takes(uint32_t event) const
    {
        if (!(event < batch->n_events)) return false;
        const uint32_t size = velo_clusters.bound[event];
        return size >= min_event_size && size <= max_event_size;
    }
};
