// Sets the counters of an event to 0. One block per event.
#pragma once

#include "parts/generated/parts_clear_counts.h"

HLT_KERNEL(parts_clear_counts)
{
    if (!p.takes(blockIdx.x) || threadIdx.x != 0) return;
    p.events.fragment_bytes[blockIdx.x] = 0;
    p.events.charge[blockIdx.x] = 0;
}
