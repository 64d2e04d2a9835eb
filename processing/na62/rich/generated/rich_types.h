// Written by tools/generate_device_headers.py from na62/rich/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t rich_subdetector = 1;
constexpr uint32_t rich_source = 2048;
constexpr uint32_t rich_version = 1;
constexpr uint32_t rich_hits_bank = 1;
constexpr uint32_t rich_max_hits = 64;
constexpr uint32_t rich_max_rings = 6;
constexpr uint32_t rich_pmts = 1934;
constexpr float min_mean_square = 0.001f;

enum rich_fit : uint32_t {
    fit_least_squares = 0,
    fit_taubin = 1,
    fit_pratt = 2,
};

struct rich_ring {
    float x;  // centre, mm
    float y;  // centre, mm
    float radius;  // mm
    float chi2;  // sum over its hits
    uint32_t hits;
};
static_assert(sizeof(rich_ring) == 20);

}  // namespace hlt
