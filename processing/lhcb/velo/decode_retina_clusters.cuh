// Retina clusters (bank type 73) to hits. The clustering was done in the FPGAs; a word holds column, row and centre of
// one cluster (docs/formats/velo-banks.md).
//
// Hits come out in the order of the banks, not sorted. A word of 0 is a filler and one with a column beyond the sensor
// is broken: both leave a place marked no_module_pair, and the latter flags the event. A bank whose count lies gives no
// hits. In:  the fragments of the VELO rows, velo_geometry. Out: velo_unsorted.{x, y, z, phi, id, module_pair} and
// velo_unsorted.count [event]; events.flags. One block per event; a thread decodes one bank at a time, places come from
// a prefix sum over the banks. Bounds: the words of all banks of the event were counted into velo_clusters.bound; an
// event of bound 0 is skipped.
#pragma once

#include "lhcb/velo/bank.cuh"
#include "lhcb/velo/generated/velo_decode_retina_clusters.h"
#include "lhcb/velo/hit.cuh"

namespace hlt {

/// Where hits are written, moved to the first place of the event or of a bank.
struct unsorted_hits {
    float* __restrict__ x;
    float* __restrict__ y;
    float* __restrict__ z;
    uint32_t* __restrict__ id;
    uint8_t* __restrict__ module_pair;
};

/// Decode the words of one bank; `fraction_bits` per coordinate. Returns whether a column does not exist.
template <uint32_t fraction_bits, bool sensor_pairs>
__device__ bool decode_retina_words(const uint8_t* words, uint32_t n, uint32_t first_sensor,
                                    const velo_geometry& geometry, const unsorted_hits& out)
{
    constexpr uint32_t fraction_mask = (1u << fraction_bits) - 1u;
    constexpr uint32_t row_bit = fraction_bits;
    constexpr uint32_t column_bit = 2u * fraction_bits + 8u;
    constexpr float fraction_unit = 1.f / static_cast<float>(1u << fraction_bits);
    uint32_t broken = 0;
    for (uint32_t j = 0; j < n; ++j) {
        const uint32_t word = load_u32(words + 4u * j);
        const uint32_t wanted = word >> column_bit & 0x3ffu;
        const uint32_t column = min_of(wanted, n_velo_columns - 1u);
        const uint32_t row = word >> row_bit & 0xffu;
        const uint32_t eighths_x = word >> (row_bit + 8u) & fraction_mask;
        const uint32_t eighths_y = word & fraction_mask;
        const uint32_t sensor = sensor_pairs ? first_sensor + (word >> 22 & 1u) : first_sensor;
        const velo_point point = velo_position(geometry, sensor, column, static_cast<float>(eighths_x) * fraction_unit,
                                               row, static_cast<float>(eighths_y) * fraction_unit);
        out.x[j] = point.x;
        out.y[j] = point.y;
        out.z[j] = point.z;
        out.id[j] = velo_lhcb_id(sensor, column, row, eighths_x != 0u, eighths_y != 0u);
        const uint32_t beyond = wanted >= n_velo_columns ? 1u : 0u;
        broken |= beyond;
        out.module_pair[j] = static_cast<uint8_t>(word == 0u || beyond != 0u ? no_module_pair : sensor / 8u);
    }
    return broken != 0u;
}

}  // namespace hlt

HLT_KERNEL(velo_decode_retina_clusters)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t first = p.velo_unsorted.first(event);
    const bool fits = p.velo_clusters.bound[event] > 0u;
    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::velo_rows_of(p.raw_banks, place.mep);
    const uint32_t n_banks = fits ? rows.count : 0;

    uint32_t n_hits = 0;
    for (uint32_t base = 0; base < n_banks; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        hlt::velo_bank bank{};
        uint32_t n_words = 0;
        bool broken = false;
        if (i < n_banks) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + i];
            bank = hlt::velo_bank_of(hlt::fragment_of(p.raw_banks, row, place.index), row);
            if (bank.kind == hlt::velo_bank_kind::retina) n_words = bank.count_words(broken);
        }
        uint32_t total;
        const uint32_t at = first + n_hits + hlt::block_exclusive_sum(n_words, scratch, total);
        if (n_words > 0u) {
            const hlt::unsorted_hits out{p.velo_unsorted.x + at, p.velo_unsorted.y + at, p.velo_unsorted.z + at,
                                         p.velo_unsorted.id + at, p.velo_unsorted.module_pair + at};
            const uint8_t* words = bank.words();
            if (bank.version == 2u)
                broken = hlt::decode_retina_words<3, false>(words, n_words, bank.sensor, *p.velo_geometry, out);
            else if (bank.version == 3u)
                broken = hlt::decode_retina_words<2, false>(words, n_words, bank.sensor, *p.velo_geometry, out);
            else
                broken = hlt::decode_retina_words<2, true>(words, n_words, bank.sensor, *p.velo_geometry, out);
        }
        if (broken) atomicOr(&p.events.flags[event], static_cast<uint32_t>(hlt::bank_error));
        n_hits += total;
    }
    __syncthreads();

    // Apart from the loop above so that it runs over full vectors: banks are short.
    for (uint32_t i = first + threadIdx.x; i < first + n_hits; i += blockDim.x)
        p.velo_unsorted.phi[i] = hlt::velo_phi(p.velo_unsorted.x[i], p.velo_unsorted.y[i]);
    if (threadIdx.x == 0) p.velo_unsorted.count[event] = n_hits;
}
