// Written by tools/generate_device_headers.py from lhcb/luminosity/fill_counters.py. Do not edit.
// clang-format off
#pragma once

#include "algorithms/generated/odin_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/calorimeter/generated/ecal_types.h"
#include "lhcb/luminosity/generated/lumi_types.h"
#include "lhcb/primary_vertices/generated/pv_types.h"
#include "lhcb/velo/generated/velo_types.h"

struct luminosity_fill_counters_parameters {
    const hlt::batch_header* batch;
    const hlt::lumi_scales* lumi_scales;
    const hlt::velo_geometry* velo_geometry;
    const hlt::ecal_geometry* ecal_geometry;
    struct {
        const hlt::odin_data* odin;
        const int16_t* ecal_adc;
        const float* ecal_energy;
        const uint16_t* plume_adc;
        const uint32_t* plume_over_threshold;
        const uint32_t* plume_read;
        uint32_t* flags;
        uint32_t* lumi_counters;
    } events;
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
        const float* z;
        const float* tx;
        const float* ty;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_beamline;
    struct {
        const uint32_t* count;
        const hlt::primary_vertex* vertex;
        __device__ uint32_t first(uint32_t event) const { return event * 32u; }
    } pvs;
    struct {
        const uint32_t* offset;
        const uint32_t* count;
        const uint32_t* id;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } scifi_hits;
    struct {
        const uint32_t* offset;
        const uint16_t* station_offset;
        const uint32_t* tile;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } muon_hits;
    struct {
        const uint32_t* count;
        const uint8_t* is_muon;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    float max_z;
    float max_distance;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
