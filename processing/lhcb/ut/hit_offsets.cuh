// Where the UT hits of each event lie: prefix sum of the bounds, with some places left free behind each event.
//
// An event with more hits than a 16-bit index reaches, or that no longer fits in the buffers, gets bound 0 and is
// flagged: it is kept, without hits.
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
