// Written by tools/generate_device_headers.py from lhcb/tracks/matching/seed_in_x.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/matching/generated/seeding_types.h"

struct matching_seed_in_x_parameters {
    const hlt::batch_header* batch;
    const hlt::seeding_tables* seeding_tables;
    struct {
        const uint32_t* scifi_hits_offset;
        const uint16_t* bins;
        const uint32_t* cells;
        const float* x;
        __device__ uint32_t first(uint32_t event) const { return scifi_hits_offset[event]; }
    } seeding_hits;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
        float* a;
        float* b;
        float* c;
        float* score;
        uint8_t* hit_count;
        uint16_t* hits;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } x_seeds;
    struct {
        const uint32_t* scifi_hits_offset;
        uint32_t* owner;
        uint8_t* taken;
        __device__ uint32_t first(uint32_t event) const { return scifi_hits_offset[event]; }
    } scratch;
    float max_x0;
    float max_magnet_x;
    uint32_t max_zone_hits;
    float max_chi2;
    float missing_hit_penalty;
    uint32_t max_shared_hits;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
