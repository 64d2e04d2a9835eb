// Written by tools/generate_device_headers.py from lhcb/ut/search_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/ut/generated/ut_types.h"

struct ut_search_tracks_parameters {
    const hlt::batch_header* batch;
    const hlt::ut_geometry* ut_geometry;
    const hlt::ut_tables* ut_tables;
    struct {
        const uint32_t* offset;
        const float* x;
        const float* z;
        const float* y_begin;
        const float* y_end;
        const float* weight;
        const uint16_t* sector_offset;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } ut_hits;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint8_t* backward;
        const uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_tracks;
    struct {
        const uint32_t* velo_clusters_offset;
        const float* x;
        const float* y;
        const float* tx;
        const float* ty;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_end;
    struct {
        uint32_t* flags;
    } events;
    struct {
        const uint32_t* velo_clusters_offset;
        uint8_t* hit_count;
        uint16_t* hits;
        float* quality;
        float* qop;
        float* x;
        float* z;
        float* tx;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } ut_candidates;
    float min_p;
    float min_pt;
    float sufficient_p;
    float max_tx;
    float max_ty;
    float min_radius;
    float max_slope_difference;
    float max_kink_distance;
    float max_distance;
    float three_hits_penalty;
    float max_search_chi2;
    float max_chi2;
    uint32_t max_pairs;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
