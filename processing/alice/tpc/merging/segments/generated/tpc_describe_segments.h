// Written by tools/generate_device_headers.py from alice/tpc/merging/segments/describe_segments.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/generated/tpc_types.h"
#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_describe_segments_parameters {
    const hlt::batch_header* batch;
    struct {
        const float* geometry;
    } tpc;
    struct {
        const uint32_t* tracks;
        const uint32_t* track_clusters;
    } tpc_slices;
    struct {
        const uint32_t* events_first_cluster;
        const hlt::tpc_track* track;
        uint32_t* first_hit;
        hlt::tpc_segment_end* inner;
        hlt::tpc_segment_end* outer;
        uint8_t* rows;
        uint16_t* bin;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_tracks;
    struct {
        const uint32_t* events_first_cluster;
        const uint32_t* cluster;
        hlt::tpc_track_hit* hit;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 2u + event * 288u) * 3u; }
    } tpc_track_clusters;
    struct {
        const uint32_t* events_first_cluster;
        const uint32_t* place;
        const uint8_t* row;
        __device__ uint32_t first(uint32_t event) const { return events_first_cluster[event]; }
    } tpc_event_clusters;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        const uint16_t* charges;
        __device__ uint32_t first(uint32_t part_in_batch) const { return tpc_slices_first_cluster[part_in_batch]; }
    } tpc_clusters;
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

    static constexpr uint32_t n_parts = 36u;
    __device__ uint32_t event_of(uint32_t part_in_batch) const { return part_in_batch / n_parts; }
    __device__ bool takes(uint32_t part_in_batch) const { return event_of(part_in_batch) < batch->n_events; }
};
