// Written by tools/generate_device_headers.py from lhcb/secondary_vertices/fit_vertices.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/primary_vertices/generated/pv_types.h"
#include "lhcb/tracks/kalman/generated/kalman_types.h"

struct secondary_vertices_fit_vertices_parameters {
    const hlt::batch_header* batch;
    const hlt::velo_field* velo_field;
    struct {
        const uint32_t* count;
        const uint16_t* tracks;
        const uint8_t* kind;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } vertex_pairs;
    struct {
        const float* beam_x;
        const float* beam_y;
        const float* beam_z;
        const float* beam_tx;
        const float* beam_ty;
        const float* beam_qop;
        const float* beam_c00;
        const float* beam_c20;
        const float* beam_c22;
        const float* beam_c11;
        const float* beam_c31;
        const float* beam_c33;
        const float* ip;
        const float* ip_chi2;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    struct {
        const hlt::primary_vertex* vertex;
        const uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return event * 32u; }
    } pvs;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
        uint16_t* tracks;
        uint8_t* kind;
        uint8_t* pv;
        float* x;
        float* y;
        float* z;
        float* c00;
        float* c10;
        float* c11;
        float* c20;
        float* c21;
        float* c22;
        float* chi2;
        float* doca;
        float* px;
        float* py;
        float* pz;
        float* pt;
        float* ip;
        float* fd;
        float* fd_chi2;
        float* eta;
        float* dira;
        float* m_corr;
        float* m_pipi;
        float* m_kpi;
        float* m_pik;
        float* m_kk;
        float* m_ppi;
        float* m_pip;
        float* m_mumu;
        float* min_pt;
        float* sum_pt;
        float* min_p;
        float* min_ip;
        float* min_ip_chi2;
        __device__ uint32_t first(uint32_t event) const { return event * 512u; }
    } two_track_vertices;
    float max_chi2;
    float min_z;
    float max_z;
    float ks_min_mass;
    float ks_max_mass;
    float lambda_max_mass;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
