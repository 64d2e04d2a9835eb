// Written by tools/generate_device_headers.py from alice/tpc/merging/fit/fit_merged_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/generated/tpc_types.h"
#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_fit_merged_tracks_parameters {
    const hlt::batch_header* batch;
    struct {
        const float* geometry;
    } tpc;
    struct {
        const uint32_t* events_first_cluster;
        const hlt::tpc_track* track;
        const uint32_t* first_hit;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_tracks;
    struct {
        const uint32_t* events_first_cluster;
        const uint32_t* cluster;
        const hlt::tpc_track_hit* hit;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 2u + event * 288u) * 3u; }
    } tpc_track_clusters;
    struct {
        const uint32_t* events_first_cluster;
        const uint32_t* count;
        const uint32_t* first_segment;
        const uint16_t* size;
        const uint16_t* run;
        hlt::tpc_merged_track* track;
        uint8_t* particle;
        float* ionisation;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_merged_tracks;
    struct {
        const uint32_t* events_first_cluster;
        const uint32_t* segment;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_merged_segments;
    float y_constant;
    float y_drift;
    float y_angle;
    float z_constant;
    float z_drift;
    float z_angle;
    float max_sin_phi;
    float radiation_length;
    float mass;
    float max_fit_chi2;
    float energy_loss;
    float mip_charge;
    float kept_charges;
    float max_charge;
    uint32_t min_charges;
    float separation;
    float kaon_mass;
    float proton_mass;

    static constexpr uint32_t n_parts = 36u;
    __device__ uint32_t event_of(uint32_t part_in_batch) const { return part_in_batch / n_parts; }
    __device__ bool takes(uint32_t part_in_batch) const { return event_of(part_in_batch) < batch->n_events; }
};
