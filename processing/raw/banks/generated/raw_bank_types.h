// Written by tools/generate_device_headers.py from raw/banks/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t several_banks = 240;
constexpr uint32_t board_error = 241;
constexpr uint32_t odin_bank = 16;

struct source_bank {
    uint16_t source;  // source id
    uint16_t type;  // no_bank without a bank, broken_bank for one that reaches beyond its MFP
    uint16_t size;  // bytes
    uint8_t version;
    uint8_t subdetector;  // top five bits of the source id
};
static_assert(sizeof(source_bank) == 8);

}  // namespace hlt
