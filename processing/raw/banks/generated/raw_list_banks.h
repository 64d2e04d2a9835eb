// Written by tools/generate_device_headers.py from raw/banks/list_banks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"
#include "raw/banks/generated/raw_bank_types.h"

struct raw_list_banks_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        const uint32_t* offset;
        const uint32_t* count;
        hlt::source_bank* bank;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } sources;
    struct {
        uint32_t* flags;
        uint32_t* bank_bytes;
        uint32_t* largest_bank;
        uint32_t* number;
    } events;
    struct {
        uint32_t* count;
    } banks;
    struct {
        uint32_t* count;
    } error_banks;
    struct {
        uint32_t* count;
        uint64_t* time_ns;
        __device__ uint32_t first(uint32_t event) const { return event; }
    } event_times;
    uint32_t min_banks;
    uint32_t max_bank_bytes;
    uint32_t first_known_type;
    uint32_t last_known_type;
    uint32_t number_type;
    uint32_t number_offset;
    uint32_t number_bytes;
    uint32_t time_type;
    uint32_t time_offset;
    uint32_t time_bytes;
    uint32_t time_unit_ns;
    uint32_t time_divisor;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
