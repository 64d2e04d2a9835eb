// Written by tools/generate_device_headers.py from lhcb/calorimeter/decode_cells.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"
#include "lhcb/calorimeter/generated/ecal_types.h"

struct ecal_decode_cells_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    const hlt::ecal_geometry* ecal_geometry;
    struct {
        uint32_t* flags;
        int16_t* ecal_adc;
        uint32_t* ecal_cells;
        float* ecal_energy;
        uint32_t* ecal_energy_mev;
        uint32_t* ecal_max_adc;
    } events;
    uint32_t required;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
