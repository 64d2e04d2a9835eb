// Where the muon hits of each event lie: prefix sum of their numbers, with some places left free behind each event.
//
// An event with more hits than a 16-bit index reaches, or that no longer fits in the buffers, gets bound 0 and is
// flagged: it is kept, without muon hits.
// In:  muon_hits.bound [event]. Out: muon_hits.offset [event + 1]; muon_hits.bound, events.flags.
// One block; threads stride over the events.
// Bounds: offsets never exceed max_muon_hits, the size of every buffer of muon hits.
#pragma once

#include "framework/device/platform.cuh"
#include "lhcb/muon/generated/muon_hit_offsets.h"
#include "lhcb/muon/generated/muon_types.h"

HLT_KERNEL(muon_hit_offsets)
{
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t n = p.batch->n_events;

    uint32_t running = 0;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t event = base + threadIdx.x;
        const uint32_t wanted = event < n ? p.muon_hits.bound[event] : 0;
        const uint32_t bound = wanted <= hlt::max_muon_hits_of_event ? wanted : 0;
        uint32_t total;
        const uint32_t places = bound > 0u ? bound + hlt::muon_hit_padding : 0u;
        const uint32_t offset = running + hlt::block_exclusive_sum(places, scratch, total);
        const bool fits = offset <= p.max_muon_hits && places <= p.max_muon_hits - offset;
        if (event < n) {
            p.muon_hits.offset[event] = hlt::min_of(offset, p.max_muon_hits);
            p.muon_hits.bound[event] = fits ? bound : 0;
            if (!fits || bound != wanted) p.events.flags[event] |= hlt::overflow;
        }
        running = hlt::min_of(running + total, p.max_muon_hits + 1u);
    }
    if (threadIdx.x == 0) p.muon_hits.offset[n] = hlt::min_of(running, p.max_muon_hits);
}
