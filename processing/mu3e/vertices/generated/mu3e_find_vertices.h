// Written by tools/generate_device_headers.py from mu3e/vertices/find_vertices.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "mu3e/tracks/generated/track_types.h"
#include "mu3e/vertices/generated/vertex_types.h"

struct mu3e_find_vertices_parameters {
    const hlt::batch_header* batch;
    struct {
        const hlt::mu3e_track* track;
        const uint32_t* count;
        const uint32_t* own;
        __device__ uint32_t first(uint32_t event) const { return event * 512u; }
    } mu3e_tracks;
    struct {
        uint32_t* flags;
    } events;
    struct {
        hlt::mu3e_vertex* vertex;
        uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return event * 32u; }
    } mu3e_vertices;
    struct {
        hlt::mu3e_window* window;
        uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return event * 8u; }
    } mu3e_windows;
    uint32_t length;
    uint32_t time_window;
    uint32_t hit_window;
    uint32_t recurl_window;
    float scattering;
    float hit_error;
    float mev_per_mm;
    float angle_error;
    float electron_mass;
    float muon_mass;
    float target_radius;
    float target_slope;
    float target_error;
    float max_radius;
    float max_z;
    float max_path;
    float max_gap;
    float max_distance;
    float max_z_apart;
    float max_chi2;
    float energy_window;
    float max_sum;
    uint32_t min_hits;
    uint32_t padding;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
