// Written by tools/generate_device_headers.py from alice/tpc/merging/segments/keep_places.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/generated/tpc_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_keep_places_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint16_t* row_counts;
        const hlt::tpc_box* boxes;
    } tpc_slices;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        const uint32_t* places;
        const uint32_t* inputs;
        __device__ uint32_t first(uint32_t part_in_batch) const { return tpc_slices_first_cluster[part_in_batch]; }
    } tpc_clusters;
    struct {
        const uint32_t* events_first_cluster;
        uint32_t* place;
        uint8_t* row;
        __device__ uint32_t first(uint32_t event) const { return events_first_cluster[event]; }
    } tpc_event_clusters;

    static constexpr uint32_t n_parts = 36u;
    __device__ uint32_t event_of(uint32_t part_in_batch) const { return part_in_batch / n_parts; }
    __device__ bool takes(uint32_t part_in_batch) const { return event_of(part_in_batch) < batch->n_events; }
};
