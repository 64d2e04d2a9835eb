// Written by tools/generate_device_headers.py from alice/tpc/merging/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t tpc_slope_bins = 64;
constexpr uint32_t tpc_direction_bins = 64;
constexpr uint32_t tpc_direction_reach = 5;
constexpr uint32_t tpc_slope_reach = 2;
constexpr uint32_t tpc_segment_bins = 4096;
constexpr uint32_t tpc_cell_size = 20;
constexpr uint32_t tpc_cells_of_axis = 16;
constexpr uint32_t tpc_free_cells = 4096;
constexpr uint32_t tpc_max_free_ends = 4096;
constexpr uint32_t tpc_max_cut_segments = 128;
constexpr uint32_t tpc_max_segments = 32;
constexpr uint32_t tpc_no_end = 4294967295;
constexpr uint32_t tpc_merging_parts = 36;

struct tpc_segment_end {
    float x;  // global frame, cm, as y and z
    float y;
    float z;
    float along_x;  // direction out of the segment, of length 1
    float along_y;
    float curvature;  // of the way out, 1/cm; positive ones turn to the left
    float slope;  // change of z for each cm of the way out
    float dd;  // covariance: d = distance to the left, f = angle, k = curvature, z, l = slope; other terms are 0
    float df;
    float ff;
    float dk;
    float fk;
    float kk;
    float zz;
    float lz;
    float ll;
};
static_assert(sizeof(tpc_segment_end) == 64);

struct tpc_merged_track {
    float x;  // of the innermost cluster of the fit, cm; y and z: of the track there, as in tpc_track
    float y;
    float z;
    float sin_phi;
    float tan_lambda;
    float q_pt;
    float c_yy;
    float c_zz;
    float c_sy;
    float c_ss;
    float c_lz;
    float c_ll;
    float c_qy;
    float c_qs;
    float c_qq;
    float chi2;
    uint32_t charge;  // sum of its clusters, ADC counts
    uint16_t slice;  // in whose frame the parameters are
    uint16_t n_clusters;  // those of all segments; one that two segments share counts once
    uint16_t n_fitted;  // clusters that the fit took
    uint16_t n_segments;
};
static_assert(sizeof(tpc_merged_track) == 76);

struct tpc_track_hit {
    uint32_t place;  // z in the upper 16 bits, y in the lower ones, as in the banks
    uint16_t charge;  // ADC counts
    uint8_t row;
    uint8_t unused;
};
static_assert(sizeof(tpc_track_hit) == 8);

struct tpc_free_end {
    float x;  // place of the end, cm, as y and z
    float y;
    float z;
    uint32_t end;  // 2 * segment + (0: inner, 1: outer)
};
static_assert(sizeof(tpc_free_end) == 16);

}  // namespace hlt
