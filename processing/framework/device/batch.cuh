// The batch as kernels see it: whole MFPs as they came from the wire, and four small tables that the host writes when
// it seals a slot (processing/framework/batch.py writes the same layout).
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

struct batch_header {
    uint32_t n_events;
    uint32_t n_rows;  // MFPs in the batch
    uint32_t n_meps;
    uint32_t n_fragments;  // sum of n_fragments over the rows
};

/// One MFP of the batch. Rows of one MEP stand together, sorted by source id.
struct mfp_row {
    uint32_t data_offset;    // byte offset of the MFP header in raw_input
    uint32_t source_id;      // Run-3 source id: top 5 bits sub-detector, low 11 bits number
    uint32_t fragment_base;  // index of its first fragment in fragment_offset, fragment_size, fragment_type
    uint32_t n_fragments;    // events of its MEP
    uint32_t version;        // bank version of its fragments
    uint32_t packet_size;    // bytes, header included
};

/// Rows of one sub-detector in one MEP.
struct row_range {
    uint32_t first;
    uint32_t count;
};

constexpr uint32_t n_subdetectors = 32;  // the top five bits of a source id

/// Where an event of the batch lies.
struct event_row {
    uint32_t mep;
    uint32_t index;  // in its MEP
};

enum subdetector : uint32_t { odin = 0, velo_a = 2, velo_c = 3 };

/// Reasons for which an event is flagged and kept (processing/framework/flags.py).
enum event_flag : uint32_t {
    bank_error = 1,  // a bank that cannot be decoded
    overflow = 2,    // a declared bound would be exceeded
    incomplete = 4,  // a source was missing
    odin_error = 8,  // no ODIN bank or one that cannot be decoded
};

constexpr uint32_t no_bank = 255;      // fragment type of an absent bank
constexpr uint32_t broken_bank = 254;  // fragment type of a bank that reaches beyond its MFP

/// The bytes of one fragment.
struct fragment_view {
    const uint8_t* data;
    uint32_t size;
    uint32_t type;
};

__device__ fragment_view fragment_of(const uint8_t* raw_input, const uint32_t* fragment_offset,
                                     const uint16_t* fragment_size, const uint8_t* fragment_type, const mfp_row& row,
                                     uint32_t event_index)
{
    const uint32_t fragment = row.fragment_base + event_index;
    return {raw_input + fragment_offset[fragment], fragment_size[fragment], fragment_type[fragment]};
}

}  // namespace hlt
