// Upper bound of the SciFi hits of each event, and their places: prefix sum of the bounds, with some free places.
//
// Most words make one hit, two edges of a cluster mostly one or two: real events have 0.9 hits per word. Only two edges
// more than eight channels apart make more hits than words; the bound leaves room for a quarter more. An event gets
// bound 0 if it has more hits than a 16-bit index reaches, or if it no longer fits in the buffers. It is flagged and
// kept, without hits. Skipped events (skipped_events.cuh) also get bound 0.
// In:  events.scifi_clusters, events.flags.
// Out: scifi_hits.bound [event], scifi_hits.offset [event + 1]; events.flags.
// One block; threads stride over the events.
// Bounds: offsets never exceed max_scifi_hits, the size of every buffer of hits.
#pragma once

#include "framework/device/event_places.cuh"
#include "lhcb/raw_data/skipped_events.cuh"
#include "lhcb/scifi/generated/scifi_hit_offsets.h"
#include "lhcb/scifi/generated/scifi_types.h"

HLT_KERNEL(scifi_hit_offsets)
{
    constexpr uint32_t spare = 64;  // for events of few words: two edges of one link make at most 32 hits
    const auto wanted = [&](uint32_t event) {
        const bool cut = hlt::is_skipped(p.events.flags[event]);
        const uint32_t words = cut ? 0u : p.events.scifi_clusters[event];
        return words > 0u ? words + spare : 0u;
    };
    // Padding behind the hits, for whole vectors, and before and behind the codes of decode_clusters.
    hlt::place_events(p.batch->n_events, wanted, hlt::max_scifi_hits_of_event, 2u * hlt::scifi_hit_padding,
                      p.max_scifi_hits, p.scifi_hits.bound, p.scifi_hits.offset, p.events.flags);
}
