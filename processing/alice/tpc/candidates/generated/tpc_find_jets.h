// Written by tools/generate_device_headers.py from alice/tpc/candidates/find_jets.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/candidates/generated/tpc_candidate_types.h"
#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_find_jets_parameters {
    const hlt::batch_header* batch;
    struct {
        const float* geometry;
    } tpc;
    struct {
        const uint32_t* events_first_cluster;
        const hlt::tpc_merged_track* track;
        const uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_merged_tracks;
    struct {
        uint32_t* flags;
    } events;
    struct {
        hlt::tpc_jet* jet;
        uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return event * 16u; }
    } tpc_jets;
    float radius;
    float min_pt;
    float min_track_pt;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
