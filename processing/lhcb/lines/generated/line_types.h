// Written by tools/generate_device_headers.py from lhcb/lines/kinds.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

enum class line_kind : uint32_t {
    none = 0,
    passthrough = 1,
    velo_micro_bias = 2,
    n_displaced_velo_tracks = 3,
    odin_event_type = 4,
};

}  // namespace hlt
