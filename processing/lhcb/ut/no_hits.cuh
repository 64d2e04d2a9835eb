// Empty UT hits for all events: the input of algorithms that also run in sequences without the UT.
//
// Out: ut_hits.offset, ut_hits.count; the other columns of ut_hits are empty. One block; threads stride over the
// events.
#pragma once

#include "lhcb/ut/generated/ut_no_hits.h"

HLT_KERNEL(ut_no_hits)
{
    const uint32_t n = p.batch->n_events;
    for (uint32_t event = threadIdx.x; event <= n; event += blockDim.x) {
        p.ut_hits.offset[event] = 0;
        if (event < n) p.ut_hits.count[event] = 0;
    }
}
