// Clusters of the calorimeter on the CPU: eight cells are compared with the minimum of a seed at once, and a cell that
// has no other seed beside it is found without the bits of the seeds.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/calorimeter/find_clusters.cuh"

namespace hlt {

struct ecal_seeds_in_lanes : ecal_seeds {
    // Of each cell 1 for a seed. A number of a cell has 13 bits, no_ecal_cell is more than all.
    static constexpr uint32_t n_numbers = 1u << 13;
    static_assert(n_ecal_cells < n_numbers - 1u && (no_ecal_cell & (n_numbers - 1u)) >= n_ecal_cells);
    mutable uint8_t is_seed[n_numbers] = {};

    ecal_seeds_in_lanes(const ecal_geometry& of_geometry, const int16_t* of_adc, const uint32_t* of_bits)
        : ecal_seeds{of_geometry, of_adc, of_bits}
    {
    }

    uint32_t seeds_of_word(uint32_t first, int32_t min_seed_adc) const
    {
        uint32_t found = 0;
        for (uint32_t k = 0; k < 32u; k += 8u) {
            int8x16 values;
            load8(values, adc + first + k);
            found |= bits_of((int8x16)(values > static_cast<int16_t>(min_seed_adc - 1))) << k;
        }
        for (uint32_t left = found; left != 0u; left &= left - 1u) {
            const uint32_t cell = first + lowest_bit(left);
            if (energy(cell) > 0.f && is_maximum(cell))
                is_seed[cell] = 1;
            else
                found &= ~(left & (0u - left));
        }
        return found;
    }

    float energy_of_others(uint32_t seed, uint32_t cell) const
    {
        uint32_t any = 0;
        for (const uint16_t other : geometry.neighbours[cell])
            any |= static_cast<uint32_t>(is_seed[other & (n_numbers - 1u)]) & static_cast<uint32_t>(other != seed);
        return any == 0u ? 0.f : ecal_seeds::energy_of_others(seed, cell);
    }
};

}  // namespace hlt

HLT_CPU_FORM(ecal_find_clusters)
{
    if (!hlt::compares_eight_lanes) return ecal_find_clusters(p, dim3{event, 1, 1});
    uint32_t seed_bits[hlt::ecal_seeds::n_words];
    uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    hlt::find_ecal_clusters<hlt::ecal_seeds_in_lanes>(p, event, seed_bits, scratch);
}
