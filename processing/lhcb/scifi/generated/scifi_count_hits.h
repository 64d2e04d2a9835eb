// Written by tools/generate_device_headers.py from lhcb/scifi/count_hits.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"
#include "lhcb/scifi/generated/scifi_types.h"

struct scifi_count_hits_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    const hlt::scifi_read_out* scifi_read_out;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* bound;
        uint16_t* bank_hits;
        uint16_t* mat_offset;
    } scifi_hits;
    uint32_t lossy;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
