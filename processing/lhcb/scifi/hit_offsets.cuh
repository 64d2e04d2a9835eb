// How many SciFi hits an event may have, and where they lie: prefix sum of the bounds, with some places left free.
//
// Most words are a hit, two edges of a cluster mostly one or two: real events have 0.9 hits for each word. Only two
// edges more than eight channels apart make more hits than words; the bound leaves room for a quarter more. An event
// with more than a 16-bit index reaches, or that no longer fits in the buffers, gets bound 0 and is flagged: it is
// kept, without hits. One that the global event cut took gets bound 0, too. In:  events.scifi_clusters, events.flags.
// Out: scifi_hits.bound [event], scifi_hits.offset [event + 1]; events.flags. One block; threads stride over the
// events. Bounds: offsets never exceed max_scifi_hits, the size of every buffer of hits.
#pragma once

#include "framework/device/event_places.cuh"
#include "lhcb/raw_data/generated/flags.h"
#include "lhcb/scifi/generated/scifi_hit_offsets.h"
#include "lhcb/scifi/generated/scifi_types.h"

HLT_KERNEL(scifi_hit_offsets)
{
    constexpr uint32_t spare = 64;  // for events of few words: two edges of one link are 32 hits at most
    const auto wanted = [&](uint32_t event) {
        const bool cut = (p.events.flags[event] & hlt::global_event_cut) != 0u;
        const uint32_t words = cut ? 0u : p.events.scifi_clusters[event];
        return words > 0u ? words + spare : 0u;
    };
    // Padding behind the hits, for whole vectors, and before and behind the codes of decode_clusters.
    hlt::place_events(p.batch->n_events, wanted, hlt::max_scifi_hits_of_event, 2u * hlt::scifi_hit_padding,
                      p.max_scifi_hits, p.scifi_hits.bound, p.scifi_hits.offset, p.events.flags);
}
