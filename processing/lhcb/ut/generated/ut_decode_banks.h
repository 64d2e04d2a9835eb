// Written by tools/generate_device_headers.py from lhcb/ut/decode_banks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"
#include "lhcb/ut/generated/ut_types.h"

struct ut_decode_banks_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    const hlt::ut_geometry* ut_geometry;
    struct {
        const uint32_t* bound;
        const uint32_t* offset;
        uint32_t* count;
        uint16_t* group_offset;
        uint16_t* sector_offset;
        float* x;
        float* z;
        float* y_begin;
        float* y_end;
        float* weight;
        uint32_t* id;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } ut_hits;
    struct {
        uint32_t* flags;
    } events;
    struct {
        const uint32_t* ut_hits_offset;
        uint32_t* unsorted;
        uint32_t* laid_out;
        __device__ uint32_t first(uint32_t event) const { return ut_hits_offset[event]; }
    } scratch;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
