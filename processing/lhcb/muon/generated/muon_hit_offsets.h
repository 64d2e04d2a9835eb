// Written by tools/generate_device_headers.py from lhcb/muon/hit_offsets.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct muon_hit_offsets_parameters {
    const hlt::batch_header* batch;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* bound;
        uint32_t* offset;
    } muon_hits;
    uint32_t max_muon_hits;
};
