// Written by tools/generate_device_headers.py from lhcb/raw_data/missing_detectors.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"

struct missing_detectors_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        uint32_t* flags;
    } events;
    uint32_t velo;
    uint32_t ut;
    uint32_t scifi;
    uint32_t muon;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
