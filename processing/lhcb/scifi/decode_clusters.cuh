// SciFi banks (type 64) to hits, each at its place in the order of x of its zone.
//
// scifi_count_hits has found where the hits of each mat stand. Those of a bank rise with the channel, so they are
// written one behind the other from the first place of their mat on, or, where x falls with the channel, backwards from
// its last one: nothing is compared or moved. x and z are where the fibre, extended, passes y = 0.
// In:  the fragments of the SciFi rows, scifi_mats, scifi_read_out, scifi_hits.{bound, bank_hits, mat_offset}.
// Out: scifi_hits.{x, z, id, info}, scifi_hits.count [event], scifi_hits.zone_offset [event][32].
// One block per event; threads stride over the banks, each decodes its own.
// Bounds: the hits of each mat were counted by the same rules; an event of bound 0 and a bank of 0 hits are skipped.
#pragma once

#include "framework/generated/launch_types.h"
#include "lhcb/scifi/bank.cuh"
#include "lhcb/scifi/generated/scifi_decode_clusters.h"

namespace hlt {

/// The hits of a bank: take(channel, fraction, pseudo-size) for each, in the order of the channels.
template <scifi_rule rule, typename Take>
__device__ void take_hits_of_bank(const scifi_bank& bank, Take take)
{
    for (uint32_t i = 0; i < bank.n_words; ++i) {
        const scifi_word word = bank[i];
        if (i + 1u < bank.n_words && are_scifi_edges<rule>(word, bank[i + 1u])) {
            take_hits_of_edges<rule>({word, bank[i + 1u]}, take);
            ++i;
        } else {
            take(word.channel(), word.fraction(), scifi_size_of<rule>(word));
        }
    }
}

}  // namespace hlt

HLT_KERNEL(scifi_decode_clusters)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;

    const hlt::scifi_read_out& read_out = *p.scifi_read_out;
    const uint32_t bound = p.scifi_hits.bound[event];
    const uint16_t* __restrict__ mat_offset = p.scifi_hits.mat_offset + event * hlt::scifi_mat_stride;
    uint16_t* __restrict__ zone_offset = p.scifi_hits.zone_offset + event * hlt::scifi_zone_stride;
    for (uint32_t zone = threadIdx.x; zone < hlt::scifi_zone_stride; zone += blockDim.x)
        zone_offset[zone] = bound > 0u ? mat_offset[read_out.first_place[zone]] : uint16_t{0};
    if (threadIdx.x == 0) p.scifi_hits.count[event] = bound;
    if (bound == 0u) return;

    const uint32_t first = p.scifi_hits.first(event);
    float* __restrict__ x = p.scifi_hits.x + first;
    float* __restrict__ z = p.scifi_hits.z + first;
    uint32_t* __restrict__ id = p.scifi_hits.id + first;
    uint16_t* __restrict__ info = p.scifi_hits.info + first;
    const uint16_t* __restrict__ bank_hits = p.scifi_hits.bank_hits + event * hlt::n_scifi_banks;
    const hlt::event_row at = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::scifi_rows_of(p.raw_banks, at.mep);
    for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + i];
        const hlt::scifi_bank bank = hlt::scifi_bank_of(hlt::fragment_of(p.raw_banks, row, at.index), row);
        if (bank.n_words == 0u || bank_hits[bank.number] == 0u) continue;
        const uint32_t first_mat = read_out.first_mat[bank.number];
        hlt::scifi_mat mat{};
        uint32_t mat_index = hlt::no_scifi_hit, to = 0, step = 0;
        const auto take = [&](uint32_t channel, uint32_t fraction, uint32_t size) {
            const uint32_t index = first_mat + channel / hlt::scifi_channels_per_mat;
            if (index != mat_index) {
                mat_index = index;
                mat = p.scifi_mats[index];
                to = mat.falls != 0u ? mat_offset[mat.place + 1u] - 1u : mat_offset[mat.place];
                step = mat.falls != 0u ? ~0u : 1u;
            }
            const uint32_t cell = channel & 0x7fu, sipm = channel >> 7 & 3u;
            const float u = static_cast<float>(2u * cell + fraction) * mat.half_pitch +
                            static_cast<float>(cell >> 6) * mat.die_gap + static_cast<float>(sipm) * mat.sipm_pitch;
            x[to] = mat.x_first + mat.dx_du * u;
            z[to] = mat.z_first + mat.dz_du * u;
            id[to] = hlt::scifi_detector << 28 | ((hlt::first_scifi_mat << 9) + (first_mat << 9) + channel);
            info[to] = static_cast<uint16_t>(index | size << 11);
            to += step;
        };
        if ((bank_hits[bank.number] & hlt::one_scifi_hit_per_word) != 0u)
            hlt::take_hits_of_bank<hlt::scifi_rule::one_hit_per_word>(bank, take);
        else if (bank.version == 5u)
            hlt::take_hits_of_bank<hlt::scifi_rule::version_5>(bank, take);
        else
            hlt::take_hits_of_bank<hlt::scifi_rule::version_6>(bank, take);
    }
}
