// Place of the first cluster of each event: prefix sum of the bounds, with some free places behind each event.
//
// An event gets bound 0 if it has more clusters than a 16-bit index reaches, or if it no longer fits in the buffers. It
// is flagged and kept, without clusters.
// In:  velo_clusters.bound [event]. Out: velo_clusters.offset [event + 1]; velo_clusters.bound, events.flags.
// One block; threads stride over the events.
// Bounds: offsets never exceed max_velo_clusters, the size of every buffer of clusters.
#pragma once

#include "framework/device/event_places.cuh"
#include "lhcb/velo/decoding/generated/velo_hit_offsets.h"
#include "lhcb/velo/hit.cuh"

HLT_KERNEL(velo_hit_offsets)
{
    hlt::place_events(
        p.batch->n_events, [&](uint32_t event) { return p.velo_clusters.bound[event]; },
        hlt::max_velo_clusters_of_event, hlt::velo_hit_padding, p.max_velo_clusters, p.velo_clusters.bound,
        p.velo_clusters.offset, p.events.flags);
}
