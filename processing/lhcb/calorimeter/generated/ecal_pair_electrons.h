// Written by tools/generate_device_headers.py from lhcb/calorimeter/pair_electrons.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/primary_vertices/generated/pv_types.h"
#include "lhcb/tracks/kalman/generated/kalman_types.h"

struct ecal_pair_electrons_parameters {
    const hlt::batch_header* batch;
    const hlt::velo_field* velo_field;
    struct {
        const uint32_t* count;
        const uint8_t* is_electron;
        const float* brem_energy;
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
        uint8_t* same_sign;
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
        float* mass;
        float* m_pipi;
        __device__ uint32_t first(uint32_t event) const { return event * 256u; }
    } dielectrons;
    float max_doca;
    float max_chi2;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
