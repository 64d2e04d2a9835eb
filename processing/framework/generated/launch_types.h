// Written by tools/generate_device_headers.py from framework/declaration.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t max_block_size = 256;

enum class grid : uint32_t {
    one = 0,
    rows = 1,
    events = 2,
    parts = 3,
    fragments = 4,
};

}  // namespace hlt
