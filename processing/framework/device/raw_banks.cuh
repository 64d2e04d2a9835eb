// The raw banks of a batch as decoders read them: whole MFPs as they came from the wire, found through small tables
// that the host writes when it seals a slot, and through the offsets that fragment_offsets has made.
#pragma once

#include "framework/generated/batch_types.h"
#include "framework/generated/raw_banks.h"

namespace hlt {

/// The bytes of one fragment.
struct fragment_view {
    const uint8_t* data;
    uint32_t size;
    uint32_t type;
};

/// The fragment of event `event_index` of its MEP in one MFP.
__device__ fragment_view fragment_of(const raw_banks& banks, const mfp_row& row, uint32_t event_index)
{
    const uint32_t fragment = row.fragment_base + event_index;
    return {banks.bytes + banks.fragments_offset[fragment], banks.fragments_size[fragment],
            banks.fragments_type[fragment]};
}

/// MFPs of a sub-detector in a MEP.
__device__ row_range rows_of(const raw_banks& banks, uint32_t mep, uint32_t subdetector)
{
    return banks.mep_rows[mep * n_subdetectors + subdetector];
}

}  // namespace hlt
