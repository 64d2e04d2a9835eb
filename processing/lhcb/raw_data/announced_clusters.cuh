// Clusters that a bank of UT or SciFi announces, as far as its size allows: what the global event cut counts. Nothing
// is checked or flagged here; decoders do that.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/raw_data/generated/raw_data_types.h"
#include "lhcb/ut/generated/ut_types.h"

namespace hlt {

/// Words of a SciFi bank behind its header; one of padding counts too (docs/formats/scifi-banks.md).
__device__ uint32_t announced_scifi_clusters(const fragment_view& fragment)
{
    const uint32_t words = fragment.size / 2u;
    return fragment.type == scifi_bank_type && words > 2u ? words - 2u : 0u;
}

/// The count of a UT bank of version 3, or the sum of those of the lanes of version 4 (docs/formats/ut-banks.md); 0 for
/// more words than it has, and for one with a bad lane.
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
