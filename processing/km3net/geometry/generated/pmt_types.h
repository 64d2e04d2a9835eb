// Written by tools/generate_device_headers.py from km3net/geometry/pmt_table.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t no_line = 65535;
constexpr uint32_t max_pmts = 65536;

struct km3net_pmt {
    float x;  // m
    float y;  // m
    float z;  // m, upwards
    uint16_t line;  // number of the line or tower; no_line: there is no such PMT
    uint8_t floor;  // number within the line, from below
    uint8_t group;  // PMTs of a floor with the same number are adjacent
};
static_assert(sizeof(km3net_pmt) == 16);

}  // namespace hlt
