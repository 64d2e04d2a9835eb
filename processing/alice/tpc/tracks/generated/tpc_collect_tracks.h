// Written by tools/generate_device_headers.py from alice/tpc/tracks/collect_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/generated/tpc_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_collect_tracks_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        const hlt::tpc_track* track;
        __device__ uint32_t first(uint32_t part_in_batch) const { return (tpc_slices_first_cluster[part_in_batch] / 16u + part_in_batch); }
    } tpc_slice_tracks;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        const uint32_t* cluster;
        __device__ uint32_t first(uint32_t part_in_batch) const { return (tpc_slices_first_cluster[part_in_batch] / 2u + part_in_batch * 8u) * 3u; }
    } tpc_slice_hits;
    struct {
        const uint32_t* tracks;
        const uint32_t* track_clusters;
        const uint32_t* tracklets;
    } tpc_slices;
    struct {
        const uint32_t* events_first_cluster;
        hlt::tpc_track* track;
        uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_tracks;
    struct {
        const uint32_t* events_first_cluster;
        uint32_t* cluster;
        uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 2u + event * 288u) * 3u; }
    } tpc_track_clusters;
    struct {
        uint32_t* count;
    } tpc_tracklets;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
