// Written by tools/generate_device_headers.py from lhcb/primary_vertices/multi_fit.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/primary_vertices/generated/pv_types.h"
#include "lhcb/velo/generated/velo_types.h"

struct pv_beamline_multi_fit_parameters {
    const hlt::batch_header* batch;
    const hlt::velo_geometry* velo_geometry;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint32_t* count;
        const float* x;
        const float* y;
        const float* z;
        const float* tx;
        const float* ty;
        const float* fit_weight;
        __device__ uint32_t first(uint32_t event) const { return (velo_clusters_offset[event] / 64u + event) * 32u; }
    } pv_tracks;
    struct {
        const float* z;
        const uint32_t* count;
        hlt::primary_vertex* fitted;
        __device__ uint32_t first(uint32_t event) const { return event * 64u; }
    } pv_seeds;
    struct {
        const uint32_t* bound;
    } velo_clusters;
    struct {
        const uint32_t* velo_clusters_offset;
        float* tracks;
        __device__ uint32_t first(uint32_t event) const { return (velo_clusters_offset[event] / 64u + event) * 32u; }
    } scratch;
    float max_chi2;
    float chi2_cut;
    float max_dz_converged;
    float max_rho2;
    uint32_t max_iterations;
    uint32_t min_tracks;
    uint32_t min_tracks_smog2;
    uint32_t min_event_size;
    uint32_t max_event_size;

    __device__ bool takes(uint32_t event) const
    {
        if (!(event < batch->n_events)) return false;
        const uint32_t size = velo_clusters.bound[event];
        return size >= min_event_size && size <= max_event_size;
    }
};
