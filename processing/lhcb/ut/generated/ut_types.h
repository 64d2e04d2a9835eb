// Written by tools/generate_device_headers.py from lhcb/ut/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t ut_version_clusters = 3;
constexpr uint32_t ut_version_strips = 4;
constexpr uint32_t n_ut_boards = 240;
constexpr uint32_t n_ut_lanes = 6;
constexpr uint32_t n_ut_strips = 512;
constexpr uint32_t n_ut_sectors = 1048;
constexpr uint32_t ut_sector_stride = 1056;
constexpr uint32_t no_ut_sector = 65535;
constexpr uint32_t ut_backwards = 65536;
constexpr uint32_t ut_descending = 131072;
constexpr uint32_t n_ut_x_bins = 128;
constexpr float ut_x_bin = 16.0f;
constexpr float ut_x_half = 1024.0f;
constexpr uint32_t n_ut_y_bins = 96;
constexpr float ut_y_bin = 16.0f;
constexpr float ut_y_half = 768.0f;
constexpr float z_velo_end = 770.0f;
constexpr float ut_middle_z = 2484.6f;
constexpr uint32_t n_ut_ty_steps = 30;
constexpr uint32_t n_ut_origin_bins = 10;
constexpr float ut_max_origin = 250.0f;
constexpr uint32_t n_ut_ty_bins = 30;
constexpr float ut_max_ty = 0.3f;
constexpr uint32_t n_ut_layers = 4;
constexpr uint32_t n_ut_bins = 256;
constexpr uint32_t n_all_ut_bins = 1024;
constexpr uint32_t max_ut_groups = 127;
constexpr uint32_t ut_group_stride = 128;
constexpr uint32_t max_ut_hits_of_event = 65535;
constexpr uint32_t ut_hit_padding = 8;
constexpr uint32_t max_ut_tracks = 1024;
constexpr uint32_t no_ut_hit = 65535;
constexpr uint32_t no_ut_track = 65535;

struct ut_strips {
    float x;  // mm, of the first strip at y = 0
    float y;  // mm, of the first end of the first strip
    float z;  // mm, of the first strip
    float dx;  // mm, from strip to strip
    float dy;
    float dz;
    float height;  // mm, from the first end to the other one
    float weight;  // 12 / pitch^2, 1/mm^2
};
static_assert(sizeof(ut_strips) == 32);

struct ut_interval {
    float low;
    float high;
};
static_assert(sizeof(ut_interval) == 8);

struct ut_sector_range {
    uint8_t first;
    uint8_t end;
};
static_assert(sizeof(ut_sector_range) == 2);

struct ut_geometry {
    ut_strips strips[1048];
    ut_interval group_x[127];  // mm at y = 0, on all strips
    float layer_z[4];  // mm, the middle
    float layer_depth[4];  // mm, largest distance of sectors from the middle
    float dx_dy[4];  // of the strips
    uint32_t channel[1048];  // LHCbID of the first strip
    uint32_t numbering[1048];  // number of the first strip, ut_backwards, ut_descending
    uint32_t first_group[4];  // of each layer
    uint32_t n_groups;
    uint16_t first_sector[128];  // of each group, then the end of the last one
    uint16_t sector_of_lane[1440];  // or no_ut_sector
    uint8_t group_of_x[4][128];  // first group beyond the lower edge of each bin
    ut_sector_range sectors_of_y[127][96];  // sectors that overlap each bin, counted in their group
};
static_assert(sizeof(ut_geometry) == 71036);

struct ut_tables {
    float layer_deflection[31][4];  // displacement at the middle of the UT over that at each layer, by |ty|
    float bending_power[11][31];  // T m from the end of the VELO to the middle of the UT, by z of the origin and ty
    float polarity;  // -1 down, 1 up
};
static_assert(sizeof(ut_tables) == 1864);

}  // namespace hlt
