// Written by tools/generate_device_headers.py from lhcb/muon/find_cells.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"
#include "lhcb/muon/generated/muon_types.h"

struct muon_find_cells_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    const hlt::muon_geometry* muon_geometry;
    struct {
        uint32_t* flags;
        uint32_t* muon_cells;
        uint32_t* muon_crossed;
    } events;
    struct {
        uint32_t* bound;
    } muon_hits;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
