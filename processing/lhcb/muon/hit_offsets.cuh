// Places of the muon hits of each event: prefix sum of their numbers, with some free places behind each event.
//
// An event gets bound 0 if it has more than max_hits, because identification would take too long, or if it no longer
// fits in the buffers. It is flagged and kept, without muon hits.
// In:  muon_hits.bound [event]. Out: muon_hits.offset [event + 1]; muon_hits.bound, events.flags.
// One block; threads stride over the events.
// Bounds: offsets never exceed max_muon_hits, the size of every buffer of muon hits.
#pragma once

#include "framework/device/event_places.cuh"
#include "lhcb/muon/generated/muon_hit_offsets.h"
#include "lhcb/muon/generated/muon_types.h"

HLT_KERNEL(muon_hit_offsets)
{
    hlt::place_events(
        p.batch->n_events, [&](uint32_t event) { return p.muon_hits.bound[event]; },
        hlt::min_of(p.max_hits, hlt::max_muon_hits_of_event), hlt::muon_hit_padding, p.max_muon_hits, p.muon_hits.bound,
        p.muon_hits.offset, p.events.flags);
}
