// View of a UT raw bank for the decoders (docs/formats/ut-banks.md): its board, the number of its hits, their places.
//
// Version 3 lists clusters behind a header, version 4 single strips in lines of two hits per lane. A bank whose hits
// would reach beyond its fragment has no hits.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/raw_data/generated/raw_data_types.h"
#include "lhcb/ut/generated/ut_types.h"

namespace hlt {

constexpr uint32_t ut_header_v3 = 4;
constexpr uint32_t ut_header_v4 = 8;
constexpr uint32_t ut_line_words_v4 = 16;
constexpr uint32_t ut_bad_lane_v4 = 255;

/// Hits of a lane of version 4: lanes 0 to 3 are bytes 4 to 7 of the header, lanes 4 and 5 bytes 0 and 1.
__device__ uint32_t ut_lane_hits_v4(const uint8_t* header, uint32_t lane) { return header[(lane + 4u) % 8u]; }

/// Hit `k` of a lane among the 16-bit words behind the header.
__device__ uint32_t ut_slot_v4(uint32_t lane, uint32_t k)
{
    return ut_line_words_v4 * (k / 2u) + 2u * (n_ut_lanes - 1u - lane) + k % 2u;
}

/// A bank; an absent one has no hits.
struct ut_bank {
    const uint8_t* payload;
    uint32_t version;
    uint32_t board;
    uint32_t n_hits;
    bool broken;
};

/// Hits that a version 4 bank announces. A bank with a bad lane has none; a bank that is too short for its hits is
/// broken.
__device__ uint32_t count_ut_hits_v4(const fragment_view& fragment, bool& broken)
{
    if (fragment.size % 2u != 0u || fragment.size < ut_header_v4) {
        broken = true;
        return 0;
    }
    const uint32_t n_words = (fragment.size - ut_header_v4) / 2u;
    // Without a complete first line the counts have no meaning: the board had no data to send.
    if (n_words < 2u * n_ut_lanes) return 0;
    uint32_t n_hits = 0;
    bool truncated = false;
    for (uint32_t lane = 0; lane < n_ut_lanes; ++lane) {
        const uint32_t n = ut_lane_hits_v4(fragment.data, lane);
        if (n == ut_bad_lane_v4) return 0;
        truncated |= n > 0u && ut_slot_v4(lane, n - 1u) >= n_words;
        n_hits += n;
    }
    broken |= truncated;
    return truncated ? 0u : n_hits;
}

__device__ ut_bank ut_bank_of(const fragment_view& fragment, const mfp_row& row)
{
    ut_bank bank{fragment.data, row.version, n_ut_boards, 0, false};
    if (fragment.type == no_bank) return bank;
    // Version 4 stores half the number of the board, counted from 1, and its lowest bit separately.
    const uint32_t number = row.source_id & 0x7ffu;
    const uint32_t board = row.version == ut_version_strips ? ((number & 0xffu) - 1u) * 2u + (number >> 10) : number;
    bank.broken = fragment.type != ut_bank_type || board >= n_ut_boards;
    if (bank.broken) return bank;
    bank.board = board;
    if (row.version == ut_version_strips) {
        bank.n_hits = count_ut_hits_v4(fragment, bank.broken);
    } else if (row.version == ut_version_clusters && fragment.size >= ut_header_v3) {
        const uint32_t n = load_u16(fragment.data);
        bank.broken = ut_header_v3 + 2u * n > fragment.size;
        bank.n_hits = bank.broken ? 0u : n;
    } else {
        bank.broken = true;
    }
    return bank;
}

/// MFPs of the UT in the MEP of an event: both halves are neighbours, because rows are sorted by source id.
__device__ row_range ut_rows_of(const raw_banks& banks, uint32_t mep)
{
    const row_range side_a = rows_of(banks, mep, ut_a);
    const row_range side_c = rows_of(banks, mep, ut_c);
    return {side_a.count > 0u ? side_a.first : side_c.first, side_a.count + side_c.count};
}

}  // namespace hlt
