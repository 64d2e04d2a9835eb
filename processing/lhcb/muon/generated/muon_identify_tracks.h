// Written by tools/generate_device_headers.py from lhcb/muon/identify_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/muon/generated/muon_network_types.h"

struct muon_identify_tracks_parameters {
    const hlt::batch_header* batch;
    const hlt::muon_network* muon_network;
    struct {
        const uint32_t* count;
        const float* qop;
        const float* tx;
        const float* ty;
        const uint16_t* muon_hits;
        const float* muon_chi2;
        const float* muon_features;
        const float* muon_stub;
        const float* ecal_energy;
        float* muon_nn;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    uint32_t weights;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
