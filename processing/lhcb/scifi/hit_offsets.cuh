// How many SciFi hits an event may have, and where they lie: prefix sum of the bounds, with some places left free.
//
// Most words are a hit, two edges of a cluster mostly one or two: real events have 0.9 hits for each word. Only two
// edges more than eight channels apart make more hits than words; the bound leaves room for a quarter more. An event
// with more than a 16-bit index reaches, or that no longer fits in the buffers, gets bound 0 and is flagged: it is
// kept, without hits. One that the global event cut took gets bound 0, too. In:  events.scifi_clusters, events.flags.
// Out: scifi_hits.bound [event], scifi_hits.offset [event + 1]; events.flags. One block; threads stride over the
// events. Bounds: offsets never exceed max_scifi_hits, the size of every buffer of hits.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/scifi/generated/scifi_hit_offsets.h"
#include "lhcb/scifi/generated/scifi_types.h"

HLT_KERNEL(scifi_hit_offsets)
{
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    constexpr uint32_t spare = 64;  // for events of few words: two edges of one link are 32 hits at most
    const uint32_t n = p.batch->n_events;

    uint32_t running = 0;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t event = base + threadIdx.x;
        const bool cut = event >= n || (p.events.flags[event] & hlt::global_event_cut) != 0u;
        const uint32_t words = cut ? 0u : p.events.scifi_clusters[event];
        const uint32_t wanted = words > 0u ? words + spare : 0u;
        const uint32_t bound = wanted <= hlt::max_scifi_hits_of_event ? wanted : 0u;
        uint32_t total;
        // Behind the hits, and before and behind the codes of decode_clusters.
        const uint32_t places = bound > 0u ? bound + 2u * hlt::scifi_hit_padding : 0u;
        const uint32_t offset = running + hlt::block_exclusive_sum(places, scratch, total);
        const bool fits = offset <= p.max_scifi_hits && places <= p.max_scifi_hits - offset;
        if (event < n) {
            p.scifi_hits.offset[event] = hlt::min_of(offset, p.max_scifi_hits);
            p.scifi_hits.bound[event] = fits ? bound : 0;
            if (!fits || bound != wanted) p.events.flags[event] |= hlt::overflow;
        }
        running = hlt::min_of(running + total, p.max_scifi_hits + 1u);
    }
    if (threadIdx.x == 0) p.scifi_hits.offset[n] = hlt::min_of(running, p.max_scifi_hits);
}
