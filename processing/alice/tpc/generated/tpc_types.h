// Written by tools/generate_device_headers.py from alice/tpc/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t tpc_subdetector = 1;
constexpr uint32_t tpc_version = 1;
constexpr uint32_t tpc_clusters_bank = 1;
constexpr uint32_t tpc_sources_of_slice = 48;
constexpr uint32_t tpc_slices = 36;
constexpr uint32_t tpc_rows = 159;
constexpr uint32_t tpc_chambers = 6;
constexpr uint32_t tpc_cluster_bytes = 8;
constexpr uint32_t tpc_max_slice_clusters = 393168;
constexpr float tpc_y_step = 0.0015f;
constexpr uint32_t tpc_y_offset = 32768;
constexpr float tpc_z_step = 0.004f;
constexpr float tpc_half_width_over_x = 0.17632698f;
constexpr float tpc_border_tolerance = 2.0f;
constexpr float tpc_z_start = -6.0f;
constexpr uint32_t tpc_no_cluster = 65535;
constexpr uint32_t tpc_max_window = 128;
constexpr uint32_t tpc_max_read = 512;
constexpr uint32_t tpc_max_nearest = 256;
constexpr uint32_t tpc_numbers_after_rows = 4;
constexpr uint32_t tpc_clusters_per_track = 16;
constexpr uint32_t tpc_row_block = 40;
constexpr uint32_t tpc_row_blocks = 4;

struct tpc_slice_input {
    uint32_t first_row;  // the first of its MFPs in the batch
    uint32_t n_rows;  // its MFPs
    uint32_t first_cluster;  // number of its first cluster in the event
    uint32_t n_clusters;  // clusters of its banks
};
static_assert(sizeof(tpc_slice_input) == 16);

struct tpc_box {
    uint16_t y_min;  // coordinates as in the banks
    uint16_t y_max;
    uint16_t z_min;
    uint16_t z_max;
};
static_assert(sizeof(tpc_box) == 8);

struct tpc_track {
    float x;  // of the innermost cluster, cm; y and z: of the track there, slice frame, z as in the global frame
    float y;
    float z;
    float sin_phi;  // angle of the transverse momentum to the x axis of the slice
    float tan_lambda;  // pz / pT
    float q_pt;  // c/GeV
    float c_yy;  // covariance: y, z, s = sin_phi, l = tan_lambda, q = q_pt; other terms are 0
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
    uint16_t slice;
    uint16_t n_clusters;
};
static_assert(sizeof(tpc_track) == 72);

}  // namespace hlt
