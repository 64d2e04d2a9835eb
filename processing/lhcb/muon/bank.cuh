// View of a muon raw bank for the decoder (docs/formats/muon-banks.md): its source, its validity, and its digits.
//
// Version 2 holds four batches of digits behind the pads of the readout boards, version 3 the hit maps of the links of
// a stream. The digits of a bank are divided into four parts, for four threads. A view never reaches beyond its
// fragment, even if the bank is damaged, and a broken bank gives no digit.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/muon/generated/muon_types.h"
#include "lhcb/raw_data/generated/raw_data_types.h"

namespace hlt {

constexpr uint32_t n_muon_parts = n_muon_batches;

enum class muon_bank_kind : uint32_t { absent, broken, batches, links };

/// A bank as its fragment header and source id describe it. The payload is not read.
struct muon_bank {
    muon_bank_kind kind;
    uint32_t number;  // of links the stream
    fragment_view fragment;

    /// Call `work(channel, time)` for each digit of a part. Returns true if the whole bank, not only this part, is
    /// valid.
    template <typename Work>
    __device__ bool for_digits(const muon_geometry& geometry, uint32_t part, Work work) const
    {
        if (kind == muon_bank_kind::absent) return true;
        if (kind == muon_bank_kind::batches) return for_batch(geometry, part, work);
        return kind == muon_bank_kind::links && for_links(geometry, part, work);
    }

    template <typename Work>
    __device__ bool for_batch(const muon_geometry& geometry, uint32_t wanted, Work work) const
    {
        const uint32_t n_words = fragment.size / 2u;
        uint32_t at = n_words > 0u ? (word(0) + 3u) & ~1u : 0u;
        bool sound = fragment.size % 2u == 0u && at > 0u;
        uint32_t first = 0, n = 0;
        for (uint32_t batch = 0; batch < n_muon_batches; ++batch) {
            const uint32_t n_digits = sound && at < n_words ? word(at) : n_words;
            if (batch == wanted) {
                first = at + 1u;
                n = n_digits;
            }
            at += 1u + n_digits;
            sound = sound && at <= n_words;
        }
        sound = sound && (at == n_words || (at + 1u == n_words && word(at) == 0u));
        if (!sound) return false;
        const uint32_t first_channel = geometry.first_channel[number];
        const uint32_t n_channels = geometry.first_channel[number + 1u] - first_channel;
        for (uint32_t i = first; i < first + n; ++i) {
            const uint32_t digit = word(i);
            if ((digit & 0xfffu) < n_channels) work(first_channel + (digit & 0xfffu), digit >> 12);
        }
        return true;
    }

    template <typename Work>
    __device__ bool for_links(const muon_geometry& geometry, uint32_t part, Work work) const
    {
        if (fragment.size == 0u) return false;
        const uint32_t first_byte = fragment.data[0];
        if ((first_byte & muon_synchronisation) != 0u) return true;
        const uint32_t n_links = geometry.n_links[number];
        const uint32_t active = (1u << n_links) - 1u;
        uint32_t links = active, at = 1;
        if ((first_byte & muon_link_map) != 0u) {
            at += muon_link_map_size;
            if (fragment.size < at) return false;
            links = static_cast<uint32_t>(fragment.data[1]) << 16 | static_cast<uint32_t>(fragment.data[2]) << 8 |
                    fragment.data[3];
            if ((links & ~active) != 0u) return false;
        }
        const uint32_t begin = at;
        for (uint32_t left = links; left != 0u; left &= left - 1u) {
            if (at >= fragment.size) return false;
            const uint32_t size = link_size(at);
            at += size;
            if (at > fragment.size || (size > 1u && size < muon_link_hits_size)) return false;
        }
        at = begin;
        for (uint32_t left = links; left != 0u; left &= left - 1u) {
            const uint32_t link = static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1u;
            const uint32_t size = link_size(at);
            if (size > 1u && link % n_muon_parts == part)
                for_link(geometry.first_channel[n_muon_banks + number] + link * muon_channels_of_link, at, size, work);
            at += size;
        }
        return true;
    }

  private:
    __device__ uint32_t word(uint32_t i) const { return load_u16(fragment.data + 2u * i); }
    __device__ uint32_t link_size(uint32_t at) const { return (fragment.data[at] >> 4) + 1u; }

    /// The link at byte `at`: 48 bits of channels between two nibbles, then the times of the first channels.
    template <typename Work>
    __device__ void for_link(uint32_t first_channel, uint32_t at, uint32_t size, Work work) const
    {
        const uint32_t n_times = min_of(2u * (size - muon_link_hits_size) + 1u, max_muon_times_of_link);
        uint32_t hit = 0;
        for (uint32_t i = 0; i < muon_channels_of_link; ++i) {
            const uint32_t place = i + 4u;  // bits from that of the last byte
            if ((fragment.data[at + muon_link_hits_size - 1u - place / 8u] >> place % 8u & 1u) == 0u) continue;
            uint32_t time = 0;
            if (hit < n_times) {
                const uint32_t byte = fragment.data[at + muon_link_hits_size - 1u + (hit + 1u) / 2u];
                time = hit % 2u == 0u ? byte & 0xfu : byte >> 4;
            }
            ++hit;
            work(first_channel + i, time);
        }
    }
};

__device__ muon_bank muon_bank_of(const fragment_view& fragment, const mfp_row& row, const muon_geometry& geometry)
{
    muon_bank bank{muon_bank_kind::broken, row.source_id & 0x7ffu, fragment};
    const bool of_links = row.version == muon_version_links, of_batches = row.version == muon_version_batches;
    if (of_links) bank.number &= 0xffu;
    if (fragment.type == no_bank)
        bank.kind = muon_bank_kind::absent;
    else if (fragment.type == muon_bank_type && of_batches && bank.number < geometry.n_banks)
        bank.kind = muon_bank_kind::batches;
    else if (fragment.type == muon_bank_type && of_links && bank.number < geometry.n_streams)
        bank.kind = muon_bank_kind::links;
    return bank;
}

/// MFPs of the muon stations in the MEP of an event: both sides are neighbours, because rows are sorted by source id.
__device__ row_range muon_rows_of(const raw_banks& banks, uint32_t mep)
{
    const row_range side_a = rows_of(banks, mep, muon_a);
    const row_range side_c = rows_of(banks, mep, muon_c);
    return {side_a.count > 0u ? side_a.first : side_c.first, side_a.count + side_c.count};
}

/// The threads of the block call `work(cell, time)` for each digit of an event with a cell. Returns true if this thread
/// found a broken bank.
template <typename Work>
__device__ bool for_muon_digits(const raw_banks& banks, uint32_t event, const muon_geometry& geometry, Work work)
{
    const event_row place = banks.event_rows[event];
    const row_range rows = muon_rows_of(banks, place.mep);
    prefetch_fragments(banks, rows, place.index);
    bool broken = false;
    for (uint32_t i = threadIdx.x; i < rows.count * n_muon_parts; i += blockDim.x) {
        const mfp_row row = banks.mfp_rows[rows.first + i / n_muon_parts];
        const muon_bank bank = muon_bank_of(fragment_of(banks, row, place.index), row, geometry);
        const bool sound = bank.for_digits(geometry, i % n_muon_parts, [&](uint32_t channel, uint32_t time) {
            const uint32_t cell = geometry.cell_of_channel[channel];
            if (cell != no_muon_cell) work(cell, time);
        });
        if (!sound) broken = true;
    }
    return broken;
}

}  // namespace hlt
