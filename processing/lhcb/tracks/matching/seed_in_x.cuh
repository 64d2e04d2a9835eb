// Curves x(z) through the hits of the x layers of the SciFi tracker, in each of its halves.
//
// A pair of hits in the two x layers of one station gives place and slope. The tangent at z = 0 has a distance x0 that
// is about proportional to q/p for tracks from the collisions, so x0 predicts the curvature. The pair is followed into
// the four other x layers like in a Kalman filter, with gains from the tables. One layer may have no hit. A first
// search begins with pairs of the last station. A second one, with pairs of the first station, finds curves without a
// hit in the last station, from first hits that are on no curve yet. A hit belongs to the curve with the smallest
// score; a curve is dropped if too many of its hits belong to others.
// In:  seeding_hits. Out: x_seeds.
// One block per event. Threads stride over the first hits of pairs and keep the two best curves of each hit. A prefix
// sum gives the places, so curves are in the order of hits for every number of threads.
// Bounds: max_x_seeds for each event, more flag it. A half with more than max_zone_hits hits in one zone has no curves,
// and flags it too. A hit has at most max_partners partners and begins at most max_begun curves in each of the first
// two steps; a window has at most max_in_window hits. Real events are far below these limits.
#pragma once

#include "lhcb/tracks/matching/generated/matching_seed_in_x.h"
#include "lhcb/tracks/matching/x_pair_search.cuh"

HLT_KERNEL(matching_seed_in_x)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t first = p.seeding_hits.first(event);
    const uint32_t first_seed = p.x_seeds.first(event);
    const hlt::seeding_hit_view hits{{p.seeding_hits.x, first},
                                     {p.seeding_hits.bins, event * hlt::n_scifi_zones * hlt::scifi_bin_stride},
                                     {p.seeding_hits.cells, event * hlt::scifi_cell_stride}};
    const uint32_t* const cells = p.seeding_hits.cells + event * hlt::scifi_cell_stride;
    uint32_t* owner = p.scratch.owner + first;
    uint8_t* taken = p.scratch.taken + first;
    const hlt::x_seed_columns seeds{p.x_seeds.a + first_seed,         p.x_seeds.b + first_seed,
                                    p.x_seeds.c + first_seed,         p.x_seeds.score + first_seed,
                                    p.x_seeds.hit_count + first_seed, p.x_seeds.hits + first_seed * hlt::n_x_layers};
    __shared__ uint32_t sums[hlt::max_block_size / hlt::warp_size];

    const uint32_t n_hits = hits.count();
    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) taken[i] = 0;
    hlt::block_barrier();
    uint32_t n = 0;
    bool overflows = false;
    for (uint32_t number = 0; number < hlt::n_x_searches; ++number) {
        const hlt::x_search& search = p.seeding_tables->searches[number];
        for (uint32_t half = 0; half < 2u; ++half) {
            if (hlt::largest_zone(hits, half) > p.max_zone_hits) {
                overflows = true;
                continue;
            }
            const hlt::scifi_zone zone = hits.zone(search.first_layer, half);
            for (uint32_t base = zone.begin(); base < zone.end(); base += blockDim.x * hlt::firsts_together) {
                const uint32_t of_thread = base + threadIdx.x * hlt::firsts_together;
                hlt::two_curves best[hlt::firsts_together];
                uint32_t n_of_thread = 0, n_found = 0;
                if (of_thread < zone.end()) {
                    n_of_thread = hlt::min_of(hlt::firsts_together, zone.end() - of_thread);
                    hlt::x_pair_search pairs(search, hits, cells, half,
                                             {p.max_x0, p.max_magnet_x, p.max_chi2, p.missing_hit_penalty},
                                             number != 0u);
                    pairs.run(of_thread, n_of_thread, taken, best);
                }
                for (uint32_t k = 0; k < n_of_thread; ++k) n_found += best[k].n;
                uint32_t total = 0;
                uint32_t place = n + hlt::block_exclusive_sum(n_found, sums, total);
                for (uint32_t k = 0; k < n_of_thread; ++k)
                    for (uint32_t i = 0; i < best[k].n; ++i, ++place)
                        if (place < hlt::max_x_seeds) hlt::store(seeds, place, best[k].curves[i], search);
                n += total;
                if (n > hlt::max_x_seeds) {
                    n = hlt::max_x_seeds;
                    overflows = true;
                }
            }
        }
        hlt::block_barrier();
        hlt::drop_clones(seeds, n, owner, n_hits, p.max_shared_hits);
        for (uint32_t k = threadIdx.x; number == 0u && k < n * hlt::n_x_layers; k += blockDim.x)
            if (seeds.hit_count[k / hlt::n_x_layers] != 0u && seeds.hits[k] != hlt::no_scifi_hit)
                taken[seeds.hits[k]] = 1;
        hlt::block_barrier();
    }
    n = hlt::close_gaps(seeds, n, sums);
    if (threadIdx.x == 0) {
        p.x_seeds.count[event] = n;
        if (overflows) p.events.flags[event] |= hlt::overflow;
    }
}
