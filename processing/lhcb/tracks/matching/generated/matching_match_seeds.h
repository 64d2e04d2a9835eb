// Written by tools/generate_device_headers.py from lhcb/tracks/matching/match_seeds.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/matching/generated/seeding_types.h"

struct matching_match_seeds_parameters {
    const hlt::batch_header* batch;
    const hlt::seeding_tables* seeding_tables;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint32_t* count;
        const uint8_t* backward;
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
        const uint32_t* count;
    } scifi_hits;
    struct {
        const uint32_t* offset;
        const uint32_t* count;
        const float* x;
        const float* z;
        const float* y_begin;
        const float* y_end;
        uint32_t* bin_begin;
        uint16_t* bin_order;
        float* bin_x;
        float* bin_z;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } ut_hits;
    struct {
        const uint32_t* count;
        const float* x;
        const float* y;
        const float* tx;
        const float* ty;
        const float* curvature;
        const uint8_t* hit_count;
        const uint16_t* hits;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } scifi_seeds;
    struct {
        const uint32_t* count;
        const uint16_t* velo_track;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
        uint16_t* velo_track;
        uint16_t* seed;
        float* qop;
        float* quality;
        uint16_t* ut_hits;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } matched_tracks;
    struct {
        const uint32_t* velo_clusters_offset;
        uint8_t* busy;
        uint16_t* track;
        float* x;
        float* y;
        float* tx;
        float* ty;
        uint32_t* best;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_tracks_scratch;
    struct {
        const uint32_t* scifi_hits_offset;
        uint32_t* owner;
        __device__ uint32_t first(uint32_t event) const { return scifi_hits_offset[event]; }
    } scifi_hits_scratch;
    struct {
        uint16_t* confirmed_track;
        uint16_t* confirmed_hits;
        float* confirmed_score;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } scifi_seeds_scratch;
    float max_chi2;
    float max_score;
    uint32_t max_shared_hits;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
