// Clusters that a UT, SciFi or VELO bank announces, within the limit of its size, for the global event cut. The
// decoders check and flag banks, not this count.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/raw_data/generated/raw_data_types.h"
#include "lhcb/ut/generated/ut_types.h"
#include "lhcb/velo/decoding/bank.cuh"
#include "lhcb/velo/decoding/super_pixel.cuh"

namespace hlt {

/// Words of a SciFi bank behind its header, on request with a padding word (docs/formats/scifi-banks.md).
__device__ uint32_t announced_scifi_clusters(const fragment_view& fragment, bool count_padding)
{
    const uint32_t words = fragment.size / 2u;
    if (fragment.type != scifi_bank_type || words <= 2u) return 0;
    const bool padded = !count_padding && load_u16(fragment.data + 2u * (words - 1u)) == 0u;
    return words - (padded ? 3u : 2u);
}

/// The words of a bank of retina clusters. A super-pixel counts the clusters that its own pattern allows, because its
/// neighbours are not known before the decoding.
__device__ uint32_t announced_velo_clusters(const raw_banks& banks, const mfp_row& row, uint32_t event_index)
{
    const velo_bank bank = velo_bank_of(fragment_of(banks, row, event_index), row);
    if (bank.kind != velo_bank_kind::retina && bank.kind != velo_bank_kind::super_pixels) return 0;
    bool broken = false;
    const uint32_t n_words = bank.count_words(broken);
    if (bank.kind == velo_bank_kind::retina) return n_words;
    uint32_t clusters = 0;
    for (uint32_t i = 0; i < n_words; ++i) {
        const super_pixel pixels{bank.words(banks).word(banks, i)};
        clusters += static_cast<uint32_t>(__popc(candidates_of_pattern(pixels.pattern())));
    }
    return clusters;
}

/// The count of a UT bank of version 3, or the sum over the lanes of version 4 (docs/formats/ut-banks.md); 0 if the
/// bank is too short for its count, or has a bad lane.
__device__ uint32_t announced_ut_clusters(const fragment_view& fragment, uint32_t version)
{
    constexpr uint32_t header_v3 = 4, header_v4 = 8, first_line_v4 = 24, bad_lane = 255;
    if (fragment.type != ut_bank_type) return 0;
    uint32_t clusters = 0, header = header_v3;
    if (version == ut_version_clusters && fragment.size >= header_v3) {
        clusters = load_u16(fragment.data);
    } else if (version == ut_version_strips && fragment.size >= header_v4 + first_line_v4) {
        header = header_v4;
        for (uint32_t lane = 0; lane < 6u; ++lane) {
            const uint32_t of_lane = fragment.data[(lane + 4u) % 8u];
            if (of_lane == bad_lane) return 0;
            clusters += of_lane;
        }
    }
    return header + 2u * clusters <= fragment.size ? clusters : 0u;
}

}  // namespace hlt
