// Written by tools/generate_device_headers.py from framework/batch.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_subdetectors = 32;
constexpr uint32_t no_bank = 255;
constexpr uint32_t broken_bank = 256;

enum event_flag : uint32_t {
    bank_error = 1,
    overflow = 2,
    incomplete = 4,
    odin_error = 8,
    backend_error = 16,
    not_processed = 64,
    candidates_left_out = 512,
    list_left_out = 1024,
    prefiltered = 2048,
};

struct batch_header {
    uint32_t n_events;
    uint32_t n_rows;  // MFPs in the batch
    uint32_t n_meps;
    uint32_t n_fragments;  // sum of n_fragments over the rows
};
static_assert(sizeof(batch_header) == 16);

struct mfp_row {
    uint32_t data_offset;  // byte offset of the MFP header in the raw input
    uint32_t source_id;  // top 5 bits sub-detector, low 11 bits number
    uint32_t fragment_base;  // number of its first fragment
    uint32_t n_fragments;  // events of its MEP
    uint32_t version;  // bank version of its fragments
    uint32_t packet_size;  // bytes, header included
    uint32_t first_event;  // number of the first event of its MEP in the batch
};
static_assert(sizeof(mfp_row) == 28);

struct event_row {
    uint32_t mep;
    uint32_t index;  // in its MEP
};
static_assert(sizeof(event_row) == 8);

struct fragment_row {
    uint32_t offset;
    uint16_t size;
    uint16_t type;
};
static_assert(sizeof(fragment_row) == 8);

struct row_range {
    uint32_t first;
    uint32_t count;
};
static_assert(sizeof(row_range) == 8);

}  // namespace hlt
