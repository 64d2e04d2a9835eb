// View of a SciFi raw bank of version 7 or 8 for the kernels (docs/formats/scifi-banks.md): its words, and the SiPM of
// each of its links. The geometry lists the SiPMs by source id. The words may be in any order.
//
// An event has banks of these versions or of earlier ones, by the versions of most of its sources. The others are
// broken, so that a source with a damaged version does not hide the hits of all others.
#pragma once

#include "lhcb/scifi/bank.cuh"

namespace hlt {

/// `bank.number` counts the listed banks.
struct scifi_link_bank {
    scifi_bank bank;
    const uint16_t* place;  // of the SiPM of each link, or no_scifi_place
};

/// Number of the listed bank of a source; n_banks if there is none.
__device__ uint32_t find_listed_scifi_bank(const scifi_sipms& sipms, uint32_t source)
{
    uint32_t low = 0, high = sipms.n_banks;
    while (low < high) {
        const uint32_t middle = (low + high) / 2u;
        if (sipms.source[middle] < source)
            low = middle + 1u;
        else
            high = middle;
    }
    return low < sipms.n_banks && sipms.source[low] == source ? low : sipms.n_banks;
}

/// True if the geometry lists SiPMs and most rows of an event have banks of links. All threads of the block call it.
__device__ bool are_scifi_rows_of_links(const raw_banks& banks, const row_range& rows, const scifi_sipms& sipms)
{
    if (sipms.n_banks == 0u) return false;
    __shared__ uint32_t scratch[max_block_size / warp_size];
    uint32_t n = 0, of_links;
    for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x) {
        const uint32_t version = banks.mfp_rows[rows.first + i].version;
        if (version == static_cast<uint32_t>(scifi_rule::version_7) ||
            version == static_cast<uint32_t>(scifi_rule::version_8))
            ++n;
    }
    block_exclusive_sum(n, scratch, of_links);
    return 2u * of_links > rows.count;
}

/// The bank of row `i` of an event. An absent bank and one without a complete header have no words. A bank is broken if
/// its source is not listed or has two rows, or if it has more words than its links can send.
__device__ scifi_link_bank read_scifi_link_bank(const raw_banks& banks, const row_range& rows, uint32_t i,
                                                uint32_t event_index, const scifi_sipms& sipms)
{
    constexpr uint32_t header = 4;
    const mfp_row& row = banks.mfp_rows[rows.first + i];
    const fragment_view fragment = fragment_of(banks, row, event_index);
    scifi_link_bank found{{fragment.data + header, 0, 0, row.version, false}, sipms.place};
    scifi_bank& bank = found.bank;
    if (fragment.type == no_bank) return found;
    bank.number = find_listed_scifi_bank(sipms, row.source_id);
    // Rows are sorted by source id.
    const bool twice = (i > 0u && banks.mfp_rows[rows.first + i - 1u].source_id == row.source_id) ||
                       (i + 1u < rows.count && banks.mfp_rows[rows.first + i + 1u].source_id == row.source_id);
    bank.broken = fragment.type != scifi_bank_type || row.version < static_cast<uint32_t>(scifi_rule::version_7) ||
                  row.version > static_cast<uint32_t>(scifi_rule::version_8) || bank.number == sipms.n_banks || twice ||
                  fragment.size % 2u != 0u;
    if (bank.broken || fragment.size <= header) return found;
    found.place = sipms.place + bank.number * scifi_links_of_bank;
    bank.n_words = (fragment.size - header) / 2u;
    if (bank[bank.n_words - 1u].bits == 0u) --bank.n_words;
    if (bank.n_words > max_scifi_words_of_links) {
        bank.broken = true;
        bank.n_words = 0;
    }
    return found;
}

}  // namespace hlt
