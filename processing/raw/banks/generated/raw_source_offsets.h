// Written by tools/generate_device_headers.py from raw/banks/source_offsets.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct raw_source_offsets_parameters {
    const hlt::batch_header* batch;
    struct {
        const hlt::row_range* mep_rows;
        const hlt::event_row* event_rows;
    } input;
    struct {
        uint32_t* offset;
        uint32_t* count;
    } sources;
};
