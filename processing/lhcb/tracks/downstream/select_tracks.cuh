// The downstream tracks of an event: continued seeds that are no ghosts and no clones, stored without gaps.
//
// A network gives the ghost probability of each continued seed. A hit belongs to the track with the lowest ghost
// probability; a track with more than some hits of others is a clone.
// In:  downstream_candidates, scifi_seeds, downstream_network. Out: downstream_tracks, ascending by seed; events.flags.
// One block per event; threads stride over seeds. Threads share only minima of words that hold the ghost
// probability and the number of a seed, so the result does not depend on their order.
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

/// Probability of a seed that is no track.
constexpr float no_downstream_track = 2.f;

/// The inputs of the network for a candidate; those of downstream_logarithms are no logarithms yet. `Parameters`: those
/// of the kernel; `Store`: called with the number of an input and its value.
template <typename Parameters, typename Store>
__device__ __forceinline__ void downstream_inputs(const Parameters& p, uint32_t at, Store store)
{
    const auto& found = p.downstream_candidates;
    const float x = found.x[at], y = found.y[at], tx = found.tx[at], ty = found.ty[at];
    store(0u, found.chi2[at]);
    store(1u, network_size(found.magnet_distance[at]));
    store(2u, network_size(found.y_distance[at]));
    store(3u, network_size(found.stereo_distance[at]));
    store(4u, found.used_ut_hits[at]);
    store(5u, p.scifi_seeds.quality[at]);
    store(6u, static_cast<float>(p.scifi_seeds.hit_count[at]));
    store(7u, network_size(found.qop[at]));
    store(8u, tx * tx + ty * ty);
    store(9u, x * x + y * y);
    store(10u, network_size(x - tx * z_downstream_ut));
    store(11u, network_size(y - ty * z_downstream_ut));
}

/// The inputs that the network takes as logarithms. `Change`: called with the number of an input and the function of
/// its value.
template <typename Change>
__device__ __forceinline__ void downstream_logarithms(Change change)
{
    static_assert(n_downstream_inputs == 12u);
    const auto of_1_and = [](float value) { return network_logarithm(value); };
    for (uint32_t number = 0; number < 4u; ++number) change(number, of_1_and);
    change(5u, of_1_and);
    change(7u, [](float value) { return network_logarithm(value, 1e-6f, 0.1f); });
    change(8u, [](float value) { return network_logarithm(value, 1e-6f, 1.f); });
    change(9u, [](float value) { return network_logarithm(value, 1.f, 1e7f); });
    change(10u, of_1_and);
    change(11u, of_1_and);
}

/// The ghost probabilities of the continued seeds of an event. Other seeds have none.
struct downstream_probabilities {
    template <typename Parameters>
    __device__ static void compute(const Parameters& p, uint32_t first_seed, uint32_t n_seeds, float* probability)
    {
        for (uint32_t seed = threadIdx.x; seed < n_seeds; seed += blockDim.x) {
            if (p.downstream_candidates.found[first_seed + seed] == 0u) continue;
            float inputs[n_downstream_inputs];
            downstream_inputs(p, first_seed + seed, [&](uint32_t number, float value) { inputs[number] = value; });
            downstream_logarithms(
                [&](uint32_t number, auto logarithm_of) { inputs[number] = logarithm_of(inputs[number]); });
            probability[seed] = network_response(*p.downstream_network, inputs);
        }
    }
};

/// Select the tracks of an event. `Probabilities`: downstream_probabilities or another form of it, in which each thread
/// computes those of its seeds.
template <typename Probabilities, typename Parameters>
__device__ __forceinline__ void select_downstream(const Parameters& p, uint32_t event, uint32_t* sums)
{
    if (!p.takes(event)) return;
    const uint32_t first_seed = p.scifi_seeds.first(event), n_seeds = p.scifi_seeds.count[event];
    const uint32_t first_track = p.downstream_tracks.first(event);
    uint32_t* const ut_owner = p.ut_hits_scratch.ut_owner + p.ut_hits_scratch.first(event);
    uint32_t* const scifi_owner = p.scifi_hits_scratch.scifi_owner + p.scifi_hits_scratch.first(event);
    float* const probability = p.downstream_candidates_scratch.probability + first_seed;
    const uint16_t* const ut_hits = p.downstream_candidates.ut_hits + first_seed * n_long_ut_layers;
    const uint16_t* const scifi_hits = p.scifi_seeds.hits + first_seed * max_scifi_track_hits;

    // Only hits of continued seeds have owners.
    for (uint32_t seed = threadIdx.x; seed < n_seeds; seed += blockDim.x) {
        if (p.downstream_candidates.found[first_seed + seed] == 0u) continue;
        for (uint32_t k = 0; k < n_long_ut_layers; ++k) ut_owner[ut_hits[seed * n_long_ut_layers + k]] = 0xffffffffu;
        for (uint32_t k = 0; k < max_scifi_track_hits; ++k) {
            const uint32_t hit = scifi_hits[seed * max_scifi_track_hits + k];
            if (hit != no_scifi_hit) scifi_owner[hit] = 0xffffffffu;
        }
    }
    Probabilities::compute(p, first_seed, n_seeds, probability);
    block_barrier();
    // A candidate that is no track owns no hits.
    for (uint32_t seed = threadIdx.x; seed < n_seeds; seed += blockDim.x) {
        if (p.downstream_candidates.found[first_seed + seed] == 0u || !(probability[seed] <= p.max_ghost_probability)) {
            probability[seed] = no_downstream_track;
            continue;
        }
        const uint32_t rank = downstream_rank(probability[seed], seed);
        for (uint32_t k = 0; k < n_long_ut_layers; ++k)
            atomicMin(&ut_owner[ut_hits[seed * n_long_ut_layers + k]], rank);
        for (uint32_t k = 0; k < max_scifi_track_hits; ++k) {
            const uint32_t hit = scifi_hits[seed * max_scifi_track_hits + k];
            if (hit != no_scifi_hit) atomicMin(&scifi_owner[hit], rank);
        }
    }
    block_barrier();

    uint32_t n_tracks = 0;
    for (uint32_t base = 0; base < n_seeds; base += blockDim.x) {
        const uint32_t seed = base + threadIdx.x;
        bool kept = seed < n_seeds && probability[seed] < no_downstream_track;
        if (kept) {
            const uint32_t rank = downstream_rank(probability[seed], seed);
            uint32_t n_shared = 0, n_shared_ut = 0;
            for (uint32_t k = 0; k < n_long_ut_layers; ++k)
                n_shared_ut += ut_owner[ut_hits[seed * n_long_ut_layers + k]] != rank ? 1u : 0u;
            for (uint32_t k = 0; k < max_scifi_track_hits; ++k) {
                const uint32_t hit = scifi_hits[seed * max_scifi_track_hits + k];
                if (hit != no_scifi_hit && scifi_owner[hit] != rank) ++n_shared;
            }
            kept = n_shared_ut <= p.max_shared_ut_hits && n_shared <= p.max_shared_scifi_hits;
        }
        uint32_t total = 0;
        const uint32_t place = n_tracks + block_exclusive_count(kept, sums, total);
        n_tracks += total;
        if (!kept || place >= max_downstream_tracks) continue;
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
        for (uint32_t k = 0; k < max_scifi_track_hits; ++k)
            p.downstream_tracks.hits[to * max_scifi_track_hits + k] = scifi_hits[seed * max_scifi_track_hits + k];
        for (uint32_t k = 0; k < n_long_ut_layers; ++k)
            p.downstream_tracks.ut_hits[to * n_long_ut_layers + k] = ut_hits[seed * n_long_ut_layers + k];
    }
    if (threadIdx.x == 0) {
        p.downstream_tracks.count[event] = min_of(n_tracks, max_downstream_tracks);
        if (n_tracks > max_downstream_tracks) p.events.flags[event] |= overflow;
    }
}

}  // namespace hlt

HLT_KERNEL(downstream_select_tracks)
{
    __shared__ uint32_t sums[hlt::max_block_size / hlt::warp_size];
    hlt::select_downstream<hlt::downstream_probabilities>(p, blockIdx.x, sums);
}
