// Written by tools/generate_device_headers.py from mu3e/tracks/extend_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "mu3e/tracks/generated/track_types.h"

struct mu3e_extend_tracks_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint64_t* hit;
        const float* x;
        const float* y;
        const float* z;
        const uint32_t* group_begin;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } mu3e_hits;
    struct {
        const uint64_t* fitted;
        const uint32_t* count;
        hlt::mu3e_track* track;
        __device__ uint32_t first(uint32_t event) const { return event * 512u; }
    } mu3e_tracks;
    uint32_t length;
    uint32_t time_window;
    uint32_t hit_window;
    uint32_t recurl_window;
    float scattering;
    float hit_error;
    float mev_per_mm;
    float max_xy23;
    float max_z23;
    float max_chi2_long;
    float max_recurl_xy;
    float max_recurl_z;
    float max_chi2_recurl;
    float energy_loss;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
