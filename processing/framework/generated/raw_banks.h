// Written by tools/generate_device_headers.py from framework/batch.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"

namespace hlt {

struct raw_banks {
    const uint8_t* bytes;
    const hlt::mfp_row* mfp_rows;
    const hlt::row_range* mep_rows;
    const hlt::event_row* event_rows;
    const hlt::fragment_row* fragments_rows;
};

}  // namespace hlt
