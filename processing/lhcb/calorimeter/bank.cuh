// View of a bank of the calorimeter for the decoder (docs/formats/ecal-banks.md): its validity, and its cards.
//
// EcalPacked banks list cards with a code, a pattern and a stream of bits; Calo banks have twelve words for each board
// of their source. A view never reaches beyond its fragment, and a broken bank gives no card.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/calorimeter/cells.cuh"
#include "lhcb/raw_data/generated/raw_data_types.h"

namespace hlt {

enum class ecal_bank_kind : uint32_t { cards = 0, big_endian_boards = 1, little_endian_boards = 2, absent, broken };

/// A bank as its fragment header and source id describe it. The payload is not read.
struct ecal_bank {
    ecal_bank_kind kind;
    uint32_t source;
    fragment_view fragment;

    /// Call `work(card, word)` for each card; `word` is the place of its data among the words of the bank. Returns
    /// false, without a call, for a bank that is not valid.
    template <typename Work>
    __device__ bool for_cards(const ecal_geometry& geometry, Work work) const
    {
        if (kind == ecal_bank_kind::absent) return true;
        if (kind == ecal_bank_kind::broken || fragment.size % 4u != 0u) return false;
        if (kind != ecal_bank_kind::cards) return for_boards(geometry, work);
        return walk(geometry, [](uint32_t, uint32_t) {}) && walk(geometry, work);
    }

  private:
    __device__ uint32_t word(uint32_t i) const { return load_u32(fragment.data + 4u * i); }

    template <typename Work>
    __device__ bool walk(const ecal_geometry& geometry, Work work) const
    {
        const uint32_t n_words = fragment.size / 4u;
        for (uint32_t at = 0; at < n_words;) {
            const uint32_t header = word(at), card = (header >> 14 & 0x1ffu) - geometry.code_offset;
            const uint32_t pattern_at = at + 1u + ((header & 0x7fu) + 3u) / 4u;
            if (pattern_at >= n_words) return false;
            // 32 values of 4 bits, and 8 bits more for each long one.
            const uint32_t n_stream = 4u + (static_cast<uint32_t>(__popc(word(pattern_at))) + 3u) / 4u;
            at = pattern_at + 1u + n_stream;
            if (at > n_words || (header >> 7 & 0x7fu) != 4u * (1u + n_stream)) return false;
            if (card >= geometry.n_cards || geometry.is_card[card] == 0u) return false;
            work(card, pattern_at);
        }
        return true;
    }

    /// A bank has either all slots of its source, or only those with a board.
    template <typename Work>
    __device__ bool for_boards(const ecal_geometry& geometry, Work work) const
    {
        if (source >= n_ecal_sources) return false;
        const uint16_t* const cards = geometry.card_of_slot[source];
        uint32_t n_used = 0;
        for (uint32_t slot = 0; slot < n_ecal_slots; ++slot) n_used += cards[slot] != no_ecal_card ? 1u : 0u;
        const uint32_t n_words = fragment.size / 4u;
        const bool has_all = n_words == ecal_skipped_words + n_ecal_slots * ecal_board_words;
        if (n_used == 0u || (!has_all && n_words != ecal_skipped_words + n_used * ecal_board_words)) return false;
        uint32_t at = ecal_skipped_words;
        for (uint32_t slot = 0; slot < n_ecal_slots; ++slot) {
            if (cards[slot] != no_ecal_card) work(cards[slot], at);
            if (has_all || cards[slot] != no_ecal_card) at += ecal_board_words;
        }
        return true;
    }
};

__device__ ecal_bank ecal_bank_of(const fragment_view& fragment, const mfp_row& row, const ecal_geometry& geometry)
{
    ecal_bank bank{ecal_bank_kind::broken, row.source_id & 0x7ffu, fragment};
    if (fragment.type == no_bank) {
        bank.kind = ecal_bank_kind::absent;
    } else if (fragment.type == ecal_cards_bank && (geometry.read_out & ecal_read_out_cards) == ecal_read_out_cards) {
        if (row.version == ecal_version_cards) bank.kind = ecal_bank_kind::cards;
    } else if (fragment.type == ecal_boards_bank &&
               (geometry.read_out & ecal_read_out_boards) == ecal_read_out_boards) {
        if (row.version == ecal_version_big_endian) bank.kind = ecal_bank_kind::big_endian_boards;
        if (row.version == ecal_version_little_endian) bank.kind = ecal_bank_kind::little_endian_boards;
    }
    return bank;
}

/// Call `work(channel, adc)` for the channels of a card of an EcalPacked bank, whose pattern is at `data`.
template <typename Work>
__device__ void for_packed_channels(const uint8_t* data, Work work)
{
    const uint32_t pattern = load_u32(data);
    uint32_t bit = 32;
    for (uint32_t channel = 0; channel < n_ecal_channels; ++channel) {
        const bool is_long = (pattern >> channel & 1u) != 0u;
        const uint32_t n_bits = is_long ? 12u : 4u, shift = bit % 32u;
        uint32_t value = load_u32(data + bit / 32u * 4u) >> shift;
        if (shift + n_bits > 32u) value |= load_u32(data + bit / 32u * 4u + 4u) << (32u - shift);
        work(channel, is_long ? static_cast<int32_t>(value & 0xfffu) - 256 : static_cast<int32_t>(value & 0xfu) - 8);
        bit += n_bits;
    }
}

/// Call `work(channel, adc)` for the channels of a board of a Calo bank; a fibre that is off has no_ecal_adc.
template <typename Work>
__device__ void for_board_channels(const uint8_t* data, bool big_endian, Work work)
{
    constexpr uint32_t channels_of_fibre = 8;
    const auto word = [&](uint32_t i) {
        const uint32_t stored = load_u32(data + 4u * i);
        if (!big_endian) return stored;
        return stored >> 24 | (stored >> 8 & 0xff00u) | (stored << 8 & 0xff0000u) | stored << 24;
    };
    for (uint32_t fibre = 0; fibre < n_ecal_channels / channels_of_fibre; ++fibre) {
        const uint32_t words[3] = {word(3u * fibre), word(3u * fibre + 1u), word(3u * fibre + 2u)};
        const bool is_off = words[0] == 0xfff000ffu && words[1] == 0xf000fff0u && words[2] == 0x00fff000u;
        for (uint32_t i = 0; i < channels_of_fibre; ++i) {
            const uint32_t bit = 12u * i, first = bit / 32u, shift = bit % 32u;  // from the most significant bit
            uint32_t value = shift <= 20u ? words[first] >> (20u - shift)
                                          : words[first] << (shift - 20u) | words[first + 1u] >> (52u - shift);
            value &= 0xfffu;
            work(channels_of_fibre * fibre + i, is_off ? no_ecal_adc : static_cast<int32_t>(value) - 256);
        }
    }
}

}  // namespace hlt
