// Written by tools/generate_device_headers.py from lhcb/velo/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t velo_version_eighths = 2;
constexpr uint32_t velo_version_quarters = 3;
constexpr uint32_t velo_version_sensor_pairs = 4;
constexpr uint32_t n_velo_modules = 52;
constexpr uint32_t n_velo_module_pairs = 26;
constexpr uint32_t n_velo_sensors = 208;
constexpr uint32_t n_velo_columns = 768;
constexpr uint32_t n_velo_rows = 256;
constexpr float velo_pixel_pitch = 0.055f;
constexpr uint32_t phi_bin_bits = 7;
constexpr uint32_t n_phi_bins = 3328;
constexpr uint32_t phi_bin_stride = 3336;
constexpr uint32_t max_velo_track_hits = 26;
constexpr uint32_t max_velo_clusters_of_event = 65535;
constexpr uint32_t velo_hit_padding = 8;
constexpr uint32_t no_module_pair = 255;
constexpr uint32_t no_pv = 255;
constexpr uint32_t n_retina_keys = 1024;

enum seed_fate : uint32_t {
    seed_left = 0,
    seed_extended = 1,
    seed_accepted = 2,
};

enum retina_pattern : uint32_t {
    retina_isolated = 0,
    retina_square = 1,
    retina_square_reversed = 2,
};

struct velo_geometry {
    float module_z[52];  // mm
    float local_x[768];  // mm, centre of the column
    float x_pitch[768];  // mm, wider at the chip borders
    float local_to_global[208][12];  // rotation row-major, then translation in mm
    float beamline_x;  // mm, at z = 0
    float beamline_y;  // mm, at z = 0
    float beamline_slope_x;  // dx/dz
    float beamline_slope_y;  // dy/dz
    uint32_t n_masked_asics;
    uint32_t masked_asics[26];  // bit 4 s + a: ASIC a of sensor s
};
static_assert(sizeof(velo_geometry) == 16460);

}  // namespace hlt
