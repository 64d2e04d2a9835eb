// Written by tools/generate_device_headers.py from alice/tpc/tracks/select_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/generated/tpc_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_select_tracks_parameters {
    const hlt::batch_header* batch;
    struct {
        const float* geometry;
    } tpc;
    struct {
        const uint16_t* row_counts;
        const hlt::tpc_box* boxes;
        const uint32_t* start_hits;
        const hlt::tpc_slice_input* input;
        uint32_t* tracks;
        uint32_t* track_clusters;
    } tpc_slices;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        const uint32_t* places;
        const uint32_t* inputs;
        const uint16_t* next;
        const uint32_t* weights;
        const uint16_t* charges;
        __device__ uint32_t first(uint32_t part_in_batch) const { return tpc_slices_first_cluster[part_in_batch]; }
    } tpc_clusters;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        const uint16_t* begin;
        __device__ uint32_t first(uint32_t part_in_batch) const { return (tpc_slices_first_cluster[part_in_batch] / 2u + part_in_batch * 81u) * 2u; }
    } tpc_bins;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        const uint32_t* cluster;
        const uint32_t* owned;
        __device__ uint32_t first(uint32_t part_in_batch) const { return tpc_slices_first_cluster[part_in_batch] / 4u; }
    } tpc_start_hits;
    struct {
        uint32_t* flags;
    } events;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        hlt::tpc_track* track;
        __device__ uint32_t first(uint32_t part_in_batch) const { return (tpc_slices_first_cluster[part_in_batch] / 16u + part_in_batch); }
    } tpc_slice_tracks;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        uint32_t* cluster;
        __device__ uint32_t first(uint32_t part_in_batch) const { return (tpc_slices_first_cluster[part_in_batch] / 2u + part_in_batch * 8u) * 3u; }
    } tpc_slice_hits;
    uint32_t max_missed_rows;
    uint32_t min_clusters;
    float max_seed_chi2;
    float max_chi2;
    float max_outlier_chi2;
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
    float max_shared;

    static constexpr uint32_t n_parts = 36u;
    __device__ uint32_t event_of(uint32_t part_in_batch) const { return part_in_batch / n_parts; }
    __device__ bool takes(uint32_t part_in_batch) const { return event_of(part_in_batch) < batch->n_events; }
};
