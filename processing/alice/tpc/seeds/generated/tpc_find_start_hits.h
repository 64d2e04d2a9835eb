// Written by tools/generate_device_headers.py from alice/tpc/seeds/find_start_hits.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/generated/tpc_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_find_start_hits_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint16_t* row_counts;
        const hlt::tpc_box* boxes;
        uint32_t* start_hits;
    } tpc_slices;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        const uint16_t* up;
        const uint16_t* down;
        const uint16_t* next;
        __device__ uint32_t first(uint32_t part_in_batch) const { return tpc_slices_first_cluster[part_in_batch]; }
    } tpc_clusters;
    struct {
        uint32_t* flags;
    } events;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        uint32_t* cluster;
        __device__ uint32_t first(uint32_t part_in_batch) const { return tpc_slices_first_cluster[part_in_batch] / 4u; }
    } tpc_start_hits;
    uint32_t min_seed;

    static constexpr uint32_t n_parts = 36u;
    __device__ uint32_t event_of(uint32_t part_in_batch) const { return part_in_batch / n_parts; }
    __device__ bool takes(uint32_t part_in_batch) const { return event_of(part_in_batch) < batch->n_events; }
};
