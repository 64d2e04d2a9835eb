// Written by tools/generate_device_headers.py from lhcb/raw_data/decode_odin.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"
#include "lhcb/raw_data/generated/raw_data_types.h"

struct decode_odin_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        uint32_t* flags;
        hlt::odin_data* odin;
    } events;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
