// Written by tools/generate_device_headers.py from lhcb/jets/find_jets.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct find_jets_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* count;
        const float* beam_tx;
        const float* beam_ty;
        const float* beam_qop;
        const uint8_t* pv;
        const float* ghost_probability;
        const uint16_t* ecal_cell;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    struct {
        const uint32_t* count;
        const float* x;
        const float* y;
        const float* et;
        const float* e19;
        const uint16_t* seed;
        __device__ uint32_t first(uint32_t event) const { return event * 1504u; }
    } ecal_clusters;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
        float* pt;
        float* eta;
        float* phi;
        uint16_t* n_tracks;
        uint16_t* n_photons;
        uint16_t* seed;
        uint8_t* pv;
        __device__ uint32_t first(uint32_t event) const { return event * 16u; }
    } jets;
    float radius;
    float min_seed_pt;
    float min_track_pt;
    float max_ghost_probability;
    float min_photon_et;
    float min_photon_e19;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
