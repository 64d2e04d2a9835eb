// Written by tools/generate_device_headers.py from alice/tpc/clusters/sort_clusters.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/generated/tpc_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"

struct tpc_sort_clusters_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        const float* geometry;
    } tpc;
    struct {
        const hlt::tpc_slice_input* input;
        uint16_t* row_counts;
        hlt::tpc_box* boxes;
    } tpc_slices;
    struct {
        uint32_t* flags;
    } events;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        uint32_t* places;
        uint32_t* inputs;
        uint16_t* charges;
        __device__ uint32_t first(uint32_t part_in_batch) const { return tpc_slices_first_cluster[part_in_batch]; }
    } tpc_clusters;
    struct {
        const uint32_t* tpc_slices_first_cluster;
        uint16_t* begin;
        __device__ uint32_t first(uint32_t part_in_batch) const { return (tpc_slices_first_cluster[part_in_batch] / 2u + part_in_batch * 81u) * 2u; }
    } tpc_bins;

    static constexpr uint32_t n_parts = 36u;
    __device__ uint32_t event_of(uint32_t part_in_batch) const { return part_in_batch / n_parts; }
    __device__ bool takes(uint32_t part_in_batch) const { return event_of(part_in_batch) < batch->n_events; }
};
