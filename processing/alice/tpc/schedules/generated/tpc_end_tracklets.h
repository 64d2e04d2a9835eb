// Written by tools/generate_device_headers.py from alice/tpc/schedules/end_tracklets.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/generated/tpc_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_end_tracklets_parameters {
    const hlt::batch_header* batch;
    struct {
        const float* geometry;
    } tpc;
    struct {
        const uint16_t* row_counts;
        const hlt::tpc_box* boxes;
        const uint32_t* start_hits;
        uint32_t* tracklets;
    } tpc_slices;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        const uint32_t* places;
        const uint16_t* next;
        uint32_t* weights;
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
        uint32_t* owned;
        __device__ uint32_t first(uint32_t part_in_batch) const { return tpc_slices_first_cluster[part_in_batch] / 4u; }
    } tpc_start_hits;
    struct {
        uint32_t* flags;
    } events;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        uint16_t* at;
        float* state;
        uint16_t* steps;
        uint16_t* rows;
        __device__ uint32_t first(uint32_t part_in_batch) const { return (tpc_slices_first_cluster[part_in_batch] / 16u + part_in_batch); }
    } tpc_parked;
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

    static constexpr uint32_t n_parts = 36u;
    __device__ uint32_t event_of(uint32_t part_in_batch) const { return part_in_batch / n_parts; }
    __device__ bool takes(uint32_t part_in_batch) const { return event_of(part_in_batch) < batch->n_events; }
};
