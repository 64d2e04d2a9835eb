// Written by tools/generate_device_headers.py from lhcb/scifi/decode_clusters.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"
#include "lhcb/scifi/generated/scifi_types.h"

struct scifi_decode_clusters_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    const hlt::scifi_mat* scifi_mats;
    const hlt::scifi_read_out* scifi_read_out;
    const hlt::scifi_sipms* scifi_sipms;
    struct {
        const uint32_t* offset;
        const uint32_t* bound;
        uint32_t* count;
        uint16_t* zone_offset;
        float* x;
        float* z;
        uint32_t* id;
        uint16_t* info;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } scifi_hits;
    struct {
        uint32_t* flags;
    } events;
    struct {
        const uint32_t* scifi_hits_offset;
        uint16_t* codes;
        __device__ uint32_t first(uint32_t event) const { return scifi_hits_offset[event]; }
    } scratch;
    uint32_t lossy;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
