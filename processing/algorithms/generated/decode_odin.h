// Written by tools/generate_device_headers.py from algorithms/decode_odin.py. Do not edit.
// clang-format off
#pragma once

#include "algorithms/generated/odin_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"

struct decode_odin_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        uint32_t* flags;
        hlt::odin_data* odin;
    } events;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
