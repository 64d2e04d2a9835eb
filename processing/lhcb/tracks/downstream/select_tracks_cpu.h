// The selection of downstream tracks on the CPU: the continued seeds of an event are packed into the lanes of vector
// registers, for the logarithms and the network of their ghost probabilities.
#pragma once

#include "lhcb/networks/one_hidden_layer_cpu.h"
#include "lhcb/tracks/downstream/select_tracks.cuh"

namespace hlt {

/// As downstream_probabilities, `width` seeds at once.
struct downstream_probabilities_in_lanes {
    static constexpr uint32_t width = 16;

    template <typename Parameters>
    static void compute(const Parameters& p, uint32_t first_seed, uint32_t n_seeds, float* probability)
    {
        // Lanes without a seed have numbers from before.
        float inputs[n_downstream_inputs][width] = {};
        uint32_t seeds[width];
        uint32_t n = 0;
        for (uint32_t seed = 0; seed < n_seeds; ++seed) {
            if (p.downstream_candidates.found[first_seed + seed] != 0u) {
                downstream_inputs(p, first_seed + seed,
                                  [&](uint32_t number, float value) { inputs[number][n] = value; });
                seeds[n++] = seed;
            }
            if (n != width && (n == 0u || seed + 1u != n_seeds)) continue;
            downstream_logarithms([&](uint32_t number, auto logarithm_of) {
                for (uint32_t i = 0; i < width; ++i) inputs[number][i] = logarithm_of(inputs[number][i]);
            });
            float responses[width];
            network_responses(*p.downstream_network, inputs, responses);
            for (uint32_t i = 0; i < n; ++i) probability[seeds[i]] = responses[i];
            n = 0;
        }
    }
};

}  // namespace hlt

HLT_CPU_FORM(downstream_select_tracks)
{
    uint32_t sums[hlt::max_block_size / hlt::warp_size];
    hlt::select_downstream<hlt::downstream_probabilities_in_lanes>(p, event, sums);
}
