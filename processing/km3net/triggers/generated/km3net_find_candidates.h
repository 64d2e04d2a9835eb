// Written by tools/generate_device_headers.py from km3net/triggers/find_candidates.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "km3net/geometry/generated/pmt_types.h"
#include "km3net/hits/generated/km3net_types.h"

struct km3net_find_candidates_parameters {
    const hlt::batch_header* batch;
    struct {
        const hlt::mfp_row* mfp_rows;
        const hlt::row_range* mep_rows;
        const hlt::event_row* event_rows;
    } input;
    struct {
        const hlt::km3net_pmt* pmt;
    } km3net;
    struct {
        const uint64_t* hit;
        const uint32_t* count;
        const uint32_t* own;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } km3net_hits;
    struct {
        uint32_t* flags;
    } events;
    struct {
        hlt::km3net_candidate* candidate;
        uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return event * 256u; }
    } candidates;
    struct {
        hlt::km3net_window* window;
        uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return event * 16u; }
    } windows;
    uint32_t length;
    uint32_t time_window;
    uint32_t min_hits;
    uint32_t min_pmts;
    uint32_t simple_window;
    uint32_t floor_window;
    uint32_t adjacent_window;
    uint32_t min_charge;
    float ns_per_metre;
    float causal_slack;
    uint32_t min_causal;
    uint32_t required;
    uint32_t padding;
    uint32_t margin_before;
    uint32_t margin_behind;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
