// Written by tools/generate_device_headers.py from alice/tpc/clusters/find_slices.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/generated/tpc_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"

struct tpc_find_slices_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        uint32_t* flags;
        uint32_t* number;
    } events;
    struct {
        hlt::tpc_slice_input* input;
    } tpc_slices;
    struct {
        uint32_t* count;
    } all_tpc_clusters;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
