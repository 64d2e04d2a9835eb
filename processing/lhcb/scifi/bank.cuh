// View of a SciFi raw bank for the kernels (docs/formats/scifi-banks.md): its number, its words, and their meaning.
//
// A word is a cluster of up to four neighbouring channels, or the first or last piece of a wider one. From version 5 on
// two words can form one cluster: one hit up to a width of eight channels, several hits above. Up to version 6 the
// channels of the words ascend, and so do those of the hits. A view never reaches beyond its fragment, even if the bank
// is damaged. link_bank.cuh has the banks of versions 7 and 8.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/raw_data/generated/raw_data_types.h"
#include "lhcb/scifi/generated/scifi_types.h"

namespace hlt {

struct scifi_word {
    uint32_t bits;

    __device__ uint32_t edge() const { return bits & 1u; }
    __device__ uint32_t fraction() const { return bits >> 1 & 1u; }
    /// Counted from the first one of the bank.
    __device__ uint32_t channel() const { return bits >> 2; }
    /// Counted from the first one of the bank.
    __device__ uint32_t mat() const { return channel() / scifi_channels_per_mat; }
    __device__ bool on_link_of(scifi_word other) const { return (bits ^ other.bits) >> 9 == 0u; }
};

__device__ constexpr bool is_scifi_rule_of_links(scifi_rule rule)
{
    return rule == scifi_rule::version_7 || rule == scifi_rule::version_8;
}

/// The rule for the words of a bank of this version. `lossy`: each word is a hit, in every version.
__device__ scifi_rule scifi_rule_of(uint32_t version, bool lossy)
{
    return lossy ? scifi_rule::one_hit_per_word : static_cast<scifi_rule>(version);
}

struct scifi_bank {
    const uint8_t* bytes;  // of the first word
    uint32_t n_words;
    uint32_t number;
    uint32_t version;
    bool broken;

    __device__ scifi_word operator[](uint32_t i) const { return {load_u16(bytes + 2u * i)}; }
};

__device__ uint32_t scifi_bank_number(const mfp_row& row) { return row.source_id & 0x7ffu; }

/// A bank as its fragment and source id describe it; an absent fragment has no words. One zero word at the end is
/// padding.
__device__ scifi_bank scifi_bank_of(const fragment_view& fragment, const mfp_row& row)
{
    constexpr uint32_t header = 4;
    scifi_bank bank{fragment.data + header, 0, scifi_bank_number(row), row.version, false};
    if (fragment.type == no_bank) return bank;
    bank.broken = fragment.type != scifi_bank_type ||
                  row.version < static_cast<uint32_t>(scifi_rule::one_hit_per_word) ||
                  row.version > static_cast<uint32_t>(scifi_rule::version_6) || bank.number >= n_scifi_banks ||
                  fragment.size < header || fragment.size % 2u != 0u;
    if (bank.broken) return bank;
    bank.n_words = (fragment.size - header) / 2u;
    if (bank.n_words > 0u && bank[bank.n_words - 1u].bits == 0u) --bank.n_words;
    return bank;
}

/// MFPs of the SciFi in the MEP of an event: both halves are neighbours, because rows are sorted by source id.
__device__ row_range scifi_rows_of(const raw_banks& banks, uint32_t mep)
{
    const row_range side_a = rows_of(banks, mep, scifi_a);
    const row_range side_c = rows_of(banks, mep, scifi_c);
    return {side_a.count > 0u ? side_a.first : side_c.first, side_a.count + side_c.count};
}

/// Bank numbers.
struct scifi_bank_set {
    uint32_t bits[(n_scifi_banks + 31u) / 32u];

    __device__ void clear()
    {
        for (uint32_t i = threadIdx.x; i < sizeof bits / sizeof bits[0]; i += blockDim.x) bits[i] = 0;
    }
    /// Returns true if it was already there.
    __device__ bool add(uint32_t number)
    {
        const uint32_t bit = 1u << number % 32u;
        return (atomicOr(&bits[number / 32u], bit) & bit) != 0u;
    }
    __device__ bool has(uint32_t number) const { return (bits[number / 32u] >> number % 32u & 1u) != 0u; }
};

/// The bank of a row. If two sources have its number, it has no words, and it is broken if it had any.
__device__ scifi_bank read_scifi_bank(const raw_banks& banks, const mfp_row& row, uint32_t event_index,
                                      const scifi_bank_set& twice)
{
    scifi_bank bank = scifi_bank_of(fragment_of(banks, row, event_index), row);
    if (bank.n_words > 0u && twice.has(bank.number)) {
        bank.broken = true;
        bank.n_words = 0;
    }
    return bank;
}

/// A cluster of two words.
struct scifi_edges {
    scifi_word first, last;

    __device__ uint32_t distance() const { return last.channel() - first.channel(); }

    /// True if they ascend, and in version 5 are more than four channels apart.
    template <scifi_rule rule>
    __device__ bool are_possible() const
    {
        const uint32_t least = rule == scifi_rule::version_5 ? scifi_min_edge_distance : 1u;
        return last.channel() >= first.channel() + least;
    }
};

/// True if two consecutive words of a link form one cluster.
template <scifi_rule rule>
__device__ bool are_scifi_edges(scifi_word word, scifi_word next)
{
    if (rule == scifi_rule::one_hit_per_word) return false;
    const uint32_t edges = rule == scifi_rule::version_5 ? word.bits & next.bits & 1u : word.edge();
    if (edges == 0u || !word.on_link_of(next)) return false;
    // Words of earlier versions ascend.
    return !is_scifi_rule_of_links(rule) || next.channel() > word.channel();
}

/// Number of their hits. From version 6 on two words that are not a first and a last piece make no hit.
template <scifi_rule rule>
__device__ uint32_t count_hits_of_edges(scifi_edges edges)
{
    const uint32_t distance = edges.distance();
    if (rule == scifi_rule::version_5) return 1u + (distance - 1u) / scifi_piece;
    const bool fit = rule == scifi_rule::version_7 ? edges.first.fraction() == 0u
                                                   : edges.first.fraction() == 1u && edges.last.fraction() == 0u;
    if (!fit || edges.last.edge() != 1u) return 0;
    const uint32_t width = distance + 2u;
    return width <= 2u * scifi_piece ? 1u : 1u + (width - 1u) / scifi_piece;
}

/// Counted from the first channel of the bank.
struct scifi_bank_hit {
    uint32_t channel;
    uint32_t fraction;
    uint32_t size;  // pseudo-size
};

/// Hit `k` of the `n` hits of two words, in ascending order of channels.
template <scifi_rule rule>
__device__ scifi_bank_hit hit_of_edges(scifi_edges edges, uint32_t n, uint32_t k)
{
    const uint32_t channel = edges.first.channel(), distance = edges.distance();
    if (n == 1u) {
        const uint32_t width =
            rule == scifi_rule::version_5 ? 2u * distance - 1u + edges.last.fraction() : distance + 2u;
        return {channel + (width - 1u) / 2u - 1u, (width - 1u) % 2u, width};
    }
    // Pieces of four channels, except the first one in version 5; then the last piece, or the remaining channels.
    if (k + 1u < n) {
        const uint32_t piece = rule == scifi_rule::version_5 ? k + 1u : k;
        return {channel + scifi_piece * piece, rule == scifi_rule::version_5 ? edges.first.fraction() : 1u,
                scifi_piece_of_wide};
    }
    if (rule == scifi_rule::version_5) return {channel + distance, edges.last.fraction(), scifi_piece_of_wide};
    const uint32_t before = scifi_piece * (n - 1u), left = distance + 2u - before;
    return {channel + before + (left - 1u) / 2u - 1u, (left - 1u) % 2u, scifi_piece_of_wide};
}

/// The hit of a single word.
template <scifi_rule rule>
__device__ scifi_bank_hit hit_of_word(scifi_word word)
{
    const bool piece = rule != scifi_rule::version_5 && word.edge() != 0u;
    return {word.channel(), word.fraction(), piece ? scifi_piece_of_wide : scifi_narrow};
}

}  // namespace hlt
