// Written by tools/generate_device_headers.py from lhcb/luminosity/decode_plume.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"

struct luminosity_decode_plume_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        uint32_t* flags;
        uint16_t* plume_adc;
        uint32_t* plume_over_threshold;
        uint32_t* plume_read;
    } events;
    uint32_t required;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
