// Written by tools/generate_device_headers.py from km3net/hits/sort_hits.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"
#include "km3net/geometry/generated/pmt_types.h"

struct km3net_sort_hits_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        const hlt::km3net_pmt* pmt;
        const int32_t* clock_offset;
    } km3net;
    struct {
        uint32_t* flags;
        uint32_t* number;
    } events;
    struct {
        uint64_t* hit;
        uint32_t* count;
        uint32_t* own;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } km3net_hits;
    uint32_t length;
    uint32_t time_window;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
