// The downstream tracks of an event: continued seeds that are no ghosts and no clones, stored without gaps.
//
// A network gives the ghost probability of each continued seed. A hit belongs to the track with the lowest ghost
// probability; a track with more than some hits of others is a clone.
// In:  downstream_candidates, scifi_seeds, downstream_network. Out: downstream_tracks, ascending by seed; events.flags.
// One block per event; threads stride over hits, then over seeds. Threads share only minima of words that hold
// probability and number of a seed, so the result does not depend on their order.
// Bounds: max_downstream_tracks for each event; the first ones are kept and the event is flagged.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/networks/one_hidden_layer.cuh"
#include "lhcb/scifi/generated/scifi_types.h"
#include "lhcb/tracks/downstream/generated/downstream_field_types.h"
#include "lhcb/tracks/downstream/generated/downstream_network_types.h"
#include "lhcb/tracks/downstream/generated/downstream_select_tracks.h"
#include "lhcb/tracks/downstream/generated/downstream_types.h"
#include "lhcb/tracks/long/generated/long_types.h"

namespace hlt {

/// Sort key of candidates, the best first: the upper bits of the ghost probability, then the number of the seed.
__device__ uint32_t downstream_rank(float probability, uint32_t seed)
{
    return (__float_as_uint(probability) & 0xffff0000u) | seed;
}

/// The ghost probability of a candidate. `Parameters`: those of the kernel.
template <typename Parameters>
__device__ float downstream_ghost_probability(const Parameters& p, uint32_t at)
{
    const auto& found = p.downstream_candidates;
    const float x = found.x[at], y = found.y[at], tx = found.tx[at], ty = found.ty[at];
    const float inputs[n_downstream_inputs] = {
        network_logarithm(found.chi2[at]),
        network_logarithm(network_size(found.magnet_distance[at])),
        network_logarithm(network_size(found.y_distance[at])),
        network_logarithm(network_size(found.stereo_distance[at])),
        found.used_ut_hits[at],
        network_logarithm(p.scifi_seeds.quality[at]),
        static_cast<float>(p.scifi_seeds.hit_count[at]),
        network_logarithm(network_size(found.qop[at]), 1e-6f, 0.1f),
        network_logarithm(tx * tx + ty * ty, 1e-6f, 1.f),
        network_logarithm(x * x + y * y, 1.f, 1e7f),
        network_logarithm(network_size(x - tx * z_downstream_ut)),
        network_logarithm(network_size(y - ty * z_downstream_ut)),
    };
    return network_response(*p.downstream_network, inputs);
}

}  // namespace hlt

HLT_KERNEL(downstream_select_tracks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t first_seed = p.scifi_seeds.first(event), n_seeds = p.scifi_seeds.count[event];
    const uint32_t first_track = p.downstream_tracks.first(event);
    const uint32_t n_ut = p.ut_hits.count[event], n_scifi = p.scifi_hits.count[event];
    uint32_t* const ut_owner = p.ut_hits_scratch.ut_owner + p.ut_hits_scratch.first(event);
    uint32_t* const scifi_owner = p.scifi_hits_scratch.scifi_owner + p.scifi_hits_scratch.first(event);
    float* const probability = p.downstream_candidates_scratch.probability + first_seed;
    const uint16_t* const ut_hits = p.downstream_candidates.ut_hits + first_seed * hlt::n_long_ut_layers;
    const uint16_t* const scifi_hits = p.scifi_seeds.hits + first_seed * hlt::max_scifi_track_hits;
    __shared__ uint32_t sums[hlt::max_block_size / hlt::warp_size];

    for (uint32_t i = threadIdx.x; i < n_ut; i += blockDim.x) ut_owner[i] = 0xffffffffu;
    for (uint32_t i = threadIdx.x; i < n_scifi; i += blockDim.x) scifi_owner[i] = 0xffffffffu;
    hlt::block_barrier();
    // A candidate that is no track owns no hits.
    for (uint32_t seed = threadIdx.x; seed < n_seeds; seed += blockDim.x) {
        probability[seed] = 2.f;
        if (p.downstream_candidates.found[first_seed + seed] == 0u) continue;
        const float of_seed = hlt::downstream_ghost_probability(p, first_seed + seed);
        if (!(of_seed <= p.max_ghost_probability)) continue;
        probability[seed] = of_seed;
        const uint32_t rank = hlt::downstream_rank(of_seed, seed);
        for (uint32_t k = 0; k < hlt::n_long_ut_layers; ++k)
            atomicMin(&ut_owner[ut_hits[seed * hlt::n_long_ut_layers + k]], rank);
        for (uint32_t k = 0; k < hlt::max_scifi_track_hits; ++k) {
            const uint32_t hit = scifi_hits[seed * hlt::max_scifi_track_hits + k];
            if (hit != hlt::no_scifi_hit) atomicMin(&scifi_owner[hit], rank);
        }
    }
    hlt::block_barrier();

    uint32_t n_tracks = 0;
    for (uint32_t base = 0; base < n_seeds; base += blockDim.x) {
        const uint32_t seed = base + threadIdx.x;
        bool kept = seed < n_seeds && probability[seed] < 2.f;
        if (kept) {
            const uint32_t rank = hlt::downstream_rank(probability[seed], seed);
            uint32_t n_shared = 0, n_shared_ut = 0;
            for (uint32_t k = 0; k < hlt::n_long_ut_layers; ++k)
                n_shared_ut += ut_owner[ut_hits[seed * hlt::n_long_ut_layers + k]] != rank ? 1u : 0u;
            for (uint32_t k = 0; k < hlt::max_scifi_track_hits; ++k) {
                const uint32_t hit = scifi_hits[seed * hlt::max_scifi_track_hits + k];
                if (hit != hlt::no_scifi_hit && scifi_owner[hit] != rank) ++n_shared;
            }
            kept = n_shared_ut <= p.max_shared_ut_hits && n_shared <= p.max_shared_scifi_hits;
        }
        uint32_t total = 0;
        const uint32_t place = n_tracks + hlt::block_exclusive_count(kept, sums, total);
        n_tracks += total;
        if (!kept || place >= hlt::max_downstream_tracks) continue;
        const uint32_t to = first_track + place, from = first_seed + seed;
        p.downstream_tracks.seed[to] = static_cast<uint16_t>(seed);
        p.downstream_tracks.x[to] = p.downstream_candidates.x[from];
        p.downstream_tracks.y[to] = p.downstream_candidates.y[from];
        p.downstream_tracks.tx[to] = p.downstream_candidates.tx[from];
        p.downstream_tracks.ty[to] = p.downstream_candidates.ty[from];
        p.downstream_tracks.qop[to] = p.downstream_candidates.qop[from];
        p.downstream_tracks.chi2[to] = p.downstream_candidates.chi2[from];
        p.downstream_tracks.magnet_distance[to] = p.downstream_candidates.magnet_distance[from];
        p.downstream_tracks.y_distance[to] = p.downstream_candidates.y_distance[from];
        p.downstream_tracks.stereo_distance[to] = p.downstream_candidates.stereo_distance[from];
        p.downstream_tracks.used_ut_hits[to] = p.downstream_candidates.used_ut_hits[from];
        p.downstream_tracks.seed_quality[to] = p.scifi_seeds.quality[from];
        p.downstream_tracks.ghost_probability[to] = probability[seed];
        p.downstream_tracks.hit_count[to] = p.scifi_seeds.hit_count[from];
        for (uint32_t k = 0; k < hlt::max_scifi_track_hits; ++k)
            p.downstream_tracks.hits[to * hlt::max_scifi_track_hits + k] =
                scifi_hits[seed * hlt::max_scifi_track_hits + k];
        for (uint32_t k = 0; k < hlt::n_long_ut_layers; ++k)
            p.downstream_tracks.ut_hits[to * hlt::n_long_ut_layers + k] = ut_hits[seed * hlt::n_long_ut_layers + k];
    }
    if (threadIdx.x == 0) {
        p.downstream_tracks.count[event] = hlt::min_of(n_tracks, hlt::max_downstream_tracks);
        if (n_tracks > hlt::max_downstream_tracks) p.events.flags[event] |= hlt::overflow;
    }
}
