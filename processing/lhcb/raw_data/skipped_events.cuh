// Events that are not reconstructed: the global event cut rejected them, or no line needs them (prefilters).
//
// The kernels that size the buffers of each detector give them no places, so nothing of them is decoded.
#pragma once

#include "framework/generated/batch_types.h"
#include "lhcb/raw_data/generated/flags.h"

namespace hlt {

/// Whether the flags of an event end its reconstruction.
__device__ __forceinline__ bool is_skipped(uint32_t flags) { return (flags & (global_event_cut | prefiltered)) != 0u; }

}  // namespace hlt
