// Written by tools/generate_device_headers.py from lhcb/primary_vertices/halves/find_vertices.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/primary_vertices/generated/pv_types.h"
#include "lhcb/velo/generated/velo_types.h"

struct velo_halves_find_vertices_parameters {
    const hlt::batch_header* batch;
    const hlt::velo_geometry* velo_geometry;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint32_t* counts;
        const float* x;
        const float* y;
        const float* z;
        const float* tx;
        const float* ty;
        const float* weight;
        const float* fit_weight;
        __device__ uint32_t first(uint32_t event) const { return (velo_clusters_offset[event] / 64u + event * 2u) * 32u; }
    } half_tracks;
    struct {
        uint32_t* flags;
    } events;
    struct {
        hlt::primary_vertex* vertex;
        uint8_t* side;
        uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return event * 64u; }
    } half_vertices;
    struct {
        const uint32_t* bound;
    } velo_clusters;
    struct {
        const uint32_t* velo_clusters_offset;
        float* tracks;
        __device__ uint32_t first(uint32_t event) const { return (velo_clusters_offset[event] / 64u + event * 2u) * 32u; }
    } half_tracks_scratch;
    struct {
        float* seed_z;
        float* fitted;
        __device__ uint32_t first(uint32_t event) const { return event * 64u; }
    } half_vertices_scratch;
    float max_track_chi2;
    float max_z_error;
    float max_z_error_smog2;
    float min_integral;
    float min_integral_smog2;
    float min_dip;
    float max_chi2;
    float chi2_cut;
    float max_dz_converged;
    float max_rho2;
    uint32_t max_iterations;
    uint32_t min_tracks;
    uint32_t min_tracks_smog2;
    float min_separation_chi2;
    uint32_t min_event_size;
    uint32_t max_event_size;

    __device__ bool takes(uint32_t event) const
    {
        if (!(event < batch->n_events)) return false;
        const uint32_t size = velo_clusters.bound[event];
        return size >= min_event_size && size <= max_event_size;
    }
};
