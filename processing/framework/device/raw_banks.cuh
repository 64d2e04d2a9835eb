// Raw banks of a batch for decoders: unchanged MFPs from the wire. Decoders find them through small tables, which the
// host writes when it seals a slot, and through the offsets of fragment_offsets.
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
    const fragment_row fragment = banks.fragments_rows[row.fragment_base + event_index];
    return {banks.bytes + fragment.offset, fragment.size, fragment.type};
}

/// Prefetch the fragments of an event: they lie far apart, and a CPU would wait for memory at each one. A GPU runs
/// other threads meanwhile.
__device__ __forceinline__ void prefetch_fragments([[maybe_unused]] const raw_banks& banks,
                                                   [[maybe_unused]] const row_range& rows,
                                                   [[maybe_unused]] uint32_t event_index)
{
#if !HLT_ON_GPU
    for (uint32_t i = rows.first; i < rows.first + rows.count; ++i) {
        const fragment_view fragment = fragment_of(banks, banks.mfp_rows[i], event_index);
        prefetch(fragment.data);
        prefetch(fragment.data + fragment.size);
    }
#endif
}

/// MFPs of a sub-detector in a MEP.
__device__ row_range rows_of(const raw_banks& banks, uint32_t mep, uint32_t subdetector)
{
    return banks.mep_rows[mep * n_subdetectors + subdetector];
}

}  // namespace hlt
