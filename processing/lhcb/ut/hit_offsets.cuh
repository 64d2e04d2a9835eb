// Places of the UT hits of each event: prefix sum of the bounds, with some free places behind each event.
//
// An event gets bound 0 if it has more hits than a 16-bit index reaches, or if it no longer fits in the buffers. It is
// flagged and kept, without hits.
// In:  ut_hits.bound [event]. Out: ut_hits.offset [event + 1]; ut_hits.bound, events.flags.
// One block; threads stride over the events.
// Bounds: offsets never exceed max_ut_hits, the size of every buffer of hits.
#pragma once

#include "framework/device/event_places.cuh"
#include "lhcb/ut/generated/ut_hit_offsets.h"
#include "lhcb/ut/generated/ut_types.h"

HLT_KERNEL(ut_hit_offsets)
{
    hlt::place_events(
        p.batch->n_events, [&](uint32_t event) { return p.ut_hits.bound[event]; }, hlt::max_ut_hits_of_event,
        hlt::ut_hit_padding, p.max_ut_hits, p.ut_hits.bound, p.ut_hits.offset, p.events.flags);
}
