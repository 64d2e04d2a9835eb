// Written by tools/generate_device_headers.py from lhcb/secondary_vertices/downstream/find_v0s.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/primary_vertices/generated/pv_types.h"
#include "lhcb/secondary_vertices/downstream/generated/v0_field_types.h"

struct downstream_find_v0s_parameters {
    const hlt::batch_header* batch;
    const hlt::v0_field* v0_field;
    struct {
        const uint32_t* count;
        const float* x;
        const float* y;
        const float* tx;
        const float* ty;
        const float* qop;
        const float* y_distance;
        __device__ uint32_t first(uint32_t event) const { return event * 256u; }
    } downstream_tracks;
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
        float* chi2;
        float* doca;
        float* ip;
        float* px;
        float* py;
        float* pz;
        float* pt;
        float* min_pt;
        float* m_pipi;
        float* m_ppi;
        float* m_ee;
        __device__ uint32_t first(uint32_t event) const { return event * 128u; }
    } downstream_v0s;
    float min_z;
    float max_z;
    float max_doca;
    float max_chi2;
    float max_ip;
    float ks_min_mass;
    float ks_max_mass;
    float lambda_max_mass;
    float photon_max_mass;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
