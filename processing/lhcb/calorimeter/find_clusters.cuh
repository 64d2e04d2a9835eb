// Clusters of the calorimeter: each local maximum with the neighbours that have energy (docs/physics/calorimeter.md).
//
// A seed has a minimum ADC value, and a larger one than each of its neighbours that was read out. A cell that is a
// neighbour of several seeds is shared in proportion to the energies of these seeds. Clusters ascend by seed.
// In:  events.{ecal_adc, ecal_cells}, ecal_geometry. An event without cells is not searched.
// Out: ecal_clusters.{count [event], seed, x, y, energy, et, e19}; events.flags.
// One block per event; threads stride over cells, then over clusters.
// Bounds: at most max_ecal_clusters seeds, one in each block of 2 by 2 neighbours. A geometry without these neighbours
// may have more: the first ones are kept, and the event is flagged.
#pragma once

#include "framework/generated/launch_types.h"
#include "lhcb/calorimeter/cells.cuh"
#include "lhcb/calorimeter/generated/ecal_find_clusters.h"

namespace hlt {

/// The cells of an event, and a bit for each seed.
struct ecal_seeds {
    static constexpr uint32_t n_words = n_ecal_cells / 32u;

    const ecal_geometry& geometry;
    const int16_t* adc;
    const uint32_t* bits;

    __device__ bool is_maximum(uint32_t cell) const
    {
        for (const uint16_t neighbour : geometry.neighbours[cell])
            if (neighbour != no_ecal_cell && adc[neighbour] >= adc[cell]) return false;
        return true;
    }

    /// Bits of those of 32 cells that are seeds; `first`: the first cell.
    __device__ uint32_t seeds_of_word(uint32_t first, int32_t min_seed_adc) const
    {
        uint32_t found = 0;
        for (uint32_t i = 0; i < 32u; ++i)
            if (adc[first + i] >= min_seed_adc && energy(first + i) > 0.f && is_maximum(first + i)) found |= 1u << i;
        return found;
    }

    __device__ float energy(uint32_t cell) const { return ecal_cell_energy(geometry, cell, adc[cell]); }

    /// Energy of the other seeds that have `cell` as a neighbour.
    __device__ float energy_of_others(uint32_t seed, uint32_t cell) const
    {
        float sum = 0.f;
        for (const uint16_t other : geometry.neighbours[cell])
            if (other != no_ecal_cell && other != seed && (bits[other / 32u] >> other % 32u & 1u) != 0u)
                sum += energy(other);
        return sum;
    }
};

/// Find the clusters of an event. `Seeds`: ecal_seeds or another form of it. `seed_bits`, `scratch`: shared memory, for
/// ecal_seeds::n_words words and for block_exclusive_sum.
template <typename Seeds, typename Parameters>
__device__ void find_ecal_clusters(const Parameters& p, uint32_t event, uint32_t* seed_bits, uint32_t* scratch)
{
    if (!p.takes(event)) return;
    constexpr uint32_t n_words = ecal_seeds::n_words;
    if (p.events.ecal_cells[event] == 0u) {
        if (threadIdx.x == 0) p.ecal_clusters.count[event] = 0;
        return;
    }
    const ecal_geometry& geometry = *p.ecal_geometry;
    const Seeds seeds{geometry, p.events.ecal_adc + event * n_ecal_cells, seed_bits};
    const uint32_t first = p.ecal_clusters.first(event);
    const int32_t min_seed_adc = static_cast<int32_t>(p.min_seed_adc);
    const int32_t min_neighbour_adc = static_cast<int32_t>(p.min_neighbour_adc);

    // Each thread tests the cells of a word.
    uint32_t n_seeds = 0;
    for (uint32_t base = 0; base < n_words; base += blockDim.x) {
        const uint32_t word = base + threadIdx.x;
        const uint32_t found = word < n_words ? seeds.seeds_of_word(32u * word, min_seed_adc) : 0u;
        if (word < n_words) seed_bits[word] = found;
        uint32_t total;
        uint32_t at = n_seeds + block_exclusive_sum(static_cast<uint32_t>(__popc(found)), scratch, total);
        for (uint32_t left = found; left != 0u && at < max_ecal_clusters; left &= left - 1u) {
            const uint32_t i = static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1u;
            p.ecal_clusters.seed[first + at++] = static_cast<uint16_t>(32u * word + i);
        }
        n_seeds += total;
    }
    __syncthreads();
    const uint32_t n_clusters = min_of(n_seeds, max_ecal_clusters);
    if (threadIdx.x == 0) {
        p.ecal_clusters.count[event] = n_clusters;
        if (n_seeds > n_clusters) p.events.flags[event] |= overflow;
    }

    for (uint32_t i = first + threadIdx.x; i < first + n_clusters; i += blockDim.x) {
        const uint32_t seed = p.ecal_clusters.seed[i];
        const float of_seed = seeds.energy(seed);
        float energy = of_seed, to_x = 0.f, to_y = 0.f;
        for (const uint16_t cell : geometry.neighbours[seed]) {
            if (cell == no_ecal_cell || seeds.adc[cell] <= min_neighbour_adc) continue;
            float of_cell = seeds.energy(cell);
            if (p.share != 0u) of_cell *= of_seed / (of_seed + seeds.energy_of_others(seed, cell));
            energy += of_cell;
            to_x += of_cell * (geometry.x[cell] - geometry.x[seed]);
            to_y += of_cell * (geometry.y[cell] - geometry.y[seed]);
        }
        const float x = geometry.x[seed] + to_x / energy, y = geometry.y[seed] + to_y / energy;
        const float radius2 = x * x + y * y;
        constexpr float z = ecal_shower_maximum_z;
        p.ecal_clusters.x[i] = x;
        p.ecal_clusters.y[i] = y;
        p.ecal_clusters.energy[i] = energy;
        p.ecal_clusters.et[i] = energy * sqrtf(radius2 / (radius2 + z * z));
        p.ecal_clusters.e19[i] = of_seed / energy;
    }
}

}  // namespace hlt

HLT_KERNEL(ecal_find_clusters)
{
    __shared__ uint32_t seed_bits[hlt::ecal_seeds::n_words];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    hlt::find_ecal_clusters<hlt::ecal_seeds>(p, blockIdx.x, seed_bits, scratch);
}
