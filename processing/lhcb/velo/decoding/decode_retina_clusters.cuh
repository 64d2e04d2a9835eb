// Retina clusters (bank type 73) to hits. The FPGAs of the readout did the clustering; a word holds column, row and
// centre of one cluster (docs/formats/velo-banks.md).
//
// Hits are written in the order of the banks, not sorted. A word of 0 is a filler, and a word with a column beyond the
// sensor is broken: both leave a place marked no_module_pair, and a broken word flags the event. A bank whose count
// exceeds its fragment gives no hits.
// In:  the fragments of the VELO rows, velo_geometry.
// Out: velo_unsorted.{x, y, z, phi, id, module_pair}, velo_unsorted.count [event]; events.flags.
// One block per event; a thread finds one bank at a time, places come from a prefix sum over the banks, and the lanes
// of a warp share the words of its banks.
// Bounds: velo_clusters.bound counts the words of all banks of the event; an event of bound 0 is skipped.
#pragma once

#include "framework/device/warp_runs.cuh"
#include "lhcb/velo/decoding/bank.cuh"
#include "lhcb/velo/decoding/generated/velo_decode_retina_clusters.h"
#include "lhcb/velo/decoding/retina_words.cuh"
#include "lhcb/velo/hit.cuh"

namespace hlt {

struct retina_hit {
    velo_point point;
    uint32_t id;
    uint32_t module_pair;
    bool broken;  // the column does not exist
};

__device__ __forceinline__ retina_hit decode_retina_word(uint32_t word, const retina_format& format,
                                                         uint32_t first_sensor, const velo_geometry& geometry)
{
    const uint32_t fraction_mask = (1u << format.fraction_bits) - 1u;
    const uint32_t wanted = word >> (2u * format.fraction_bits + 8u) & 0x3ffu;
    const uint32_t column = min_of(wanted, n_velo_columns - 1u);
    const uint32_t row = word >> format.fraction_bits & 0xffu;
    const uint32_t fraction_x = word >> (format.fraction_bits + 8u) & fraction_mask;
    const uint32_t fraction_y = word & fraction_mask;
    const uint32_t sensor = first_sensor + (format.sensor_pairs ? word >> 22 & 1u : 0u);
    const bool broken = wanted >= n_velo_columns;
    return {velo_position(geometry, sensor, column, static_cast<float>(fraction_x) * format.fraction_unit, row,
                          static_cast<float>(fraction_y) * format.fraction_unit),
            velo_lhcb_id(sensor, column, row, fraction_x != 0u, fraction_y != 0u),
            word == 0u || broken ? no_module_pair : sensor / 8u, broken};
}

/// Destination of the hits.
struct unsorted_hits {
    float* __restrict__ x;
    float* __restrict__ y;
    float* __restrict__ z;
    int16_t* __restrict__ phi;
    uint32_t* __restrict__ id;
    uint8_t* __restrict__ module_pair;

    __device__ __forceinline__ void store(uint32_t at, const retina_hit& hit) const
    {
        x[at] = hit.point.x;
        y[at] = hit.point.y;
        z[at] = hit.point.z;
        phi[at] = velo_phi(hit.point.x, hit.point.y);
        id[at] = hit.id;
        module_pair[at] = static_cast<uint8_t>(hit.module_pair);
    }
};

/// The words of a bank, and the place of the hit of the first word.
struct retina_words {
    velo_words words;
    uint32_t first;
};

/// Decode the banks of the lanes of a warp; the bank of this lane has `n` words. Returns true if a word is broken.
__device__ bool decode_retina_banks(const raw_banks& banks, warp_runs<retina_words>* runs, const retina_words& bank,
                                    uint32_t n, const velo_geometry& geometry, const unsorted_hits& out)
{
    bool broken = false;
    share_runs(runs[threadIdx.x / warp_size], n, bank, [&](const retina_words& of, uint32_t i) {
        const retina_hit hit =
            decode_retina_word(of.words.word(banks, i), retina_format_of(of.words.version), of.words.sensor, geometry);
        out.store(of.first + i, hit);
        if (hit.broken) broken = true;
    });
    return broken;
}

}  // namespace hlt

HLT_KERNEL(velo_decode_retina_clusters)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ hlt::warp_runs<hlt::retina_words> runs[hlt::max_block_size / hlt::warp_size];

    const uint32_t first = p.velo_unsorted.first(event);
    const bool has_words = p.velo_clusters.bound[event] > p.velo_clusters.super_pixel_bound[event];
    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::velo_rows_of(p.raw_banks, place.mep);
    const uint32_t n_banks = has_words ? rows.count : 0;
    hlt::prefetch_fragments(p.raw_banks, {rows.first, n_banks}, place.index);
    const hlt::unsorted_hits out{p.velo_unsorted.x,   p.velo_unsorted.y,  p.velo_unsorted.z,
                                 p.velo_unsorted.phi, p.velo_unsorted.id, p.velo_unsorted.module_pair};

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
        broken |=
            hlt::decode_retina_banks(p.raw_banks, runs, {bank.words(p.raw_banks), at}, n_words, *p.velo_geometry, out);
        if (broken) atomicOr(&p.events.flags[event], static_cast<uint32_t>(hlt::bank_error));
        n_hits += total;
    }
    if (threadIdx.x == 0) p.velo_unsorted.count[event] = n_hits;
}
