// Banks of the calorimeter to the ADC value of each cell, the number of these cells, and their energy
// (docs/formats/ecal-banks.md).
//
// The threads first walk over the banks, one each, and note where the data of each card are; then they decode one card
// each. A malformed bank gives no card, and a card that an event has twice gives no cell: both flag the event, as does
// an event without any bank of the calorimeter, if banks are required. Events that are not reconstructed are not read:
// no cell has a value.
// In:  the fragments of the rows of the calorimeter, ecal_geometry, events.flags.
// Out: events.{ecal_adc [event][6016], ecal_cells, ecal_energy, ecal_energy_mev, ecal_max_adc};
//      events.flags.
// One block per event.
// Bounds: a card is below geometry.n_cards <= 256, a cell below 6016 or no_ecal_cell.
#pragma once

#include "framework/generated/launch_types.h"
#include "lhcb/calorimeter/bank.cuh"
#include "lhcb/calorimeter/generated/ecal_decode_cells.h"
#include "lhcb/raw_data/skipped_events.cuh"

namespace hlt {

constexpr uint32_t n_ecal_sums = 188;  // sums of 32 cells, added in a fixed order, so that each block size rounds alike
static_assert(n_ecal_cells % n_ecal_sums == 0u);
constexpr float max_ecal_energy = 2e9f;  // MeV; fits in a signed integer

/// Shared memory of ecal_decode_cells.
struct ecal_decoding_scratch {
    uint32_t n_of_card[max_ecal_cards];
    uint32_t place_of_card[max_ecal_cards];  // word of the input << 2 | ecal_bank_kind
    float sums[n_ecal_sums];
    uint32_t of_warps[max_block_size / warp_size];
    uint32_t is_broken;
    uint32_t max_adc;
};

/// Cells one by one.
struct ecal_cells_alone {
    /// As hlt::for_packed_channels.
    template <typename Work>
    __device__ static void for_packed_channels(const uint8_t* data, Work work)
    {
        hlt::for_packed_channels(data, work);
    }

    /// Add n_ecal_sums cells from `first` on to the sums, their number to `n_cells`, and take the largest value.
    __device__ static void add(const ecal_geometry& geometry, const int16_t* adc, uint32_t first, float* sums,
                               uint32_t& n_cells, int32_t& largest)
    {
        for (uint32_t i = threadIdx.x; i < n_ecal_sums; i += blockDim.x) {
            const int32_t value = adc[first + i];
            const bool is_read = value != no_ecal_adc;
            n_cells += is_read ? 1u : 0u;
            largest = max_of(largest, value);
            sums[i] += is_read ? ecal_cell_energy(geometry, first + i, value) : 0.f;
        }
    }
};

/// Decode the cells of an event. `Cells`: ecal_cells_alone or another form of it.
template <typename Cells, typename Parameters>
__device__ void decode_ecal_cells(const Parameters& p, uint32_t event, ecal_decoding_scratch& scratch)
{
    if (!p.takes(event)) return;
    uint32_t *const n_of_card = scratch.n_of_card, *const place_of_card = scratch.place_of_card;
    float* const sums = scratch.sums;
    const ecal_geometry& geometry = *p.ecal_geometry;
    int16_t* const adc = p.events.ecal_adc + event * n_ecal_cells;

    for (uint32_t i = threadIdx.x; i < n_ecal_cells; i += blockDim.x) adc[i] = static_cast<int16_t>(no_ecal_adc);
    for (uint32_t i = threadIdx.x; i < geometry.n_cards; i += blockDim.x) n_of_card[i] = 0;
    if (threadIdx.x == 0) scratch.is_broken = scratch.max_adc = 0;
    __syncthreads();

    if (is_skipped(p.events.flags[event])) {
        if (threadIdx.x != 0) return;
        p.events.ecal_cells[event] = 0;
        p.events.ecal_energy[event] = 0.f;
        p.events.ecal_energy_mev[event] = 0;
        p.events.ecal_max_adc[event] = 0;
        return;
    }
    const event_row place = p.raw_banks.event_rows[event];
    const row_range rows = rows_of(p.raw_banks, place.mep, ecal);
    prefetch_fragments(p.raw_banks, rows, place.index);
    uint32_t n_banks = 0;
    for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x) {
        const mfp_row row = p.raw_banks.mfp_rows[rows.first + i];
        const fragment_view fragment = fragment_of(p.raw_banks, row, place.index);
        const ecal_bank bank = ecal_bank_of(fragment, row, geometry);
        if (bank.kind != ecal_bank_kind::absent) ++n_banks;
        const uint32_t first_word = static_cast<uint32_t>(fragment.data - p.raw_banks.bytes) / 4u;
        const bool sound = bank.for_cards(geometry, [&](uint32_t card, uint32_t word) {
            atomicAdd(&n_of_card[card], 1u);
            atomicExch(&place_of_card[card], (first_word + word) << 2 | static_cast<uint32_t>(bank.kind));
        });
        if (!sound) atomicOr(&scratch.is_broken, 1u);
    }
    uint32_t n_banks_of_all;
    block_exclusive_sum(n_banks, scratch.of_warps, n_banks_of_all);
    __syncthreads();

    for (uint32_t card = threadIdx.x; card < geometry.n_cards; card += blockDim.x) {
        if (n_of_card[card] == 0u) continue;
        if (n_of_card[card] > 1u) {
            atomicOr(&scratch.is_broken, 1u);
            continue;
        }
        const uint16_t* const cells = geometry.cell_of_channel[card];
        const auto store = [&](uint32_t channel, int32_t value) {
            const uint32_t cell = cells[channel];
            if (cell != no_ecal_cell) adc[cell] = static_cast<int16_t>(value);
        };
        const uint8_t* const data = p.raw_banks.bytes + (place_of_card[card] >> 2) * 4u;
        const auto kind = static_cast<ecal_bank_kind>(place_of_card[card] & 3u);
        if (kind == ecal_bank_kind::cards)
            Cells::for_packed_channels(data, store);
        else
            for_board_channels(data, kind == ecal_bank_kind::big_endian_boards, store);
    }
    __syncthreads();

    for (uint32_t i = threadIdx.x; i < n_ecal_sums; i += blockDim.x) sums[i] = 0.f;
    uint32_t n_cells = 0;
    int32_t largest = 0;
    // A thread has the same sums in each round, so no barrier is needed.
    for (uint32_t first = 0; first < n_ecal_cells; first += n_ecal_sums)
        Cells::add(geometry, adc, first, sums, n_cells, largest);
    atomicMax(&scratch.max_adc, static_cast<uint32_t>(largest));
    uint32_t n_cells_of_all;
    block_exclusive_sum(n_cells, scratch.of_warps, n_cells_of_all);
    __syncthreads();
    if (threadIdx.x != 0) return;
    float energy = 0.f;
    for (uint32_t i = 0; i < n_ecal_sums; ++i) energy += sums[i];
    p.events.ecal_cells[event] = n_cells_of_all;
    p.events.ecal_energy[event] = energy;
    p.events.ecal_max_adc[event] = scratch.max_adc;
    const float limited = min_of(max_of(energy + 0.5f, 0.f), max_ecal_energy);
    p.events.ecal_energy_mev[event] = static_cast<uint32_t>(static_cast<int32_t>(limited));
    uint32_t flags = scratch.is_broken != 0u ? static_cast<uint32_t>(bank_error) : 0u;
    if (p.required != 0u && n_banks_of_all == 0u) flags |= missing_detector;
    if (flags != 0u) p.events.flags[event] |= flags;
}

}  // namespace hlt

HLT_KERNEL(ecal_decode_cells)
{
    __shared__ hlt::ecal_decoding_scratch scratch;
    hlt::decode_ecal_cells<hlt::ecal_cells_alone>(p, blockIdx.x, scratch);
}
