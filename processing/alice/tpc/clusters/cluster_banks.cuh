// Banks of clusters (docs/formats/tpc-clusters.md).
#pragma once

#include "alice/tpc/generated/tpc_types.h"
#include "framework/device/raw_banks.cuh"

namespace hlt {

/// Slice of a source of the TPC; tpc_slices or more for a source that does not exist.
__device__ uint32_t tpc_slice_of(uint32_t source_id) { return (source_id & 0x7FFu) / tpc_sources_of_slice; }

/// Clusters of a bank; 0 for a bank that is not used.
__device__ uint32_t clusters_of_bank(const fragment_view& bank, const mfp_row& row)
{
    const bool sound = bank.type == tpc_clusters_bank && row.version == tpc_version &&
                       bank.size % tpc_cluster_bytes == 0u && tpc_slice_of(row.source_id) < tpc_slices;
    return sound ? bank.size / tpc_cluster_bytes : 0u;
}

/// Whether a bank is there, but not used. An empty bank has any size.
__device__ bool is_bad_bank(const fragment_view& bank, const mfp_row& row)
{
    return bank.type != no_bank && (bank.type != tpc_clusters_bank || row.version != tpc_version ||
                                    bank.size % tpc_cluster_bytes != 0u || tpc_slice_of(row.source_id) >= tpc_slices);
}

/// One cluster: its row, z in the upper and y in the lower 16 bits, and its charge.
struct tpc_cluster {
    uint32_t row, place, charge;
};

__device__ tpc_cluster load_cluster(const uint8_t* bytes)
{
    const uint32_t low = load_u32(bytes), high = load_u32(bytes + 4);
    return {low & 0xFFFFu, low >> 16 | high << 16, high >> 16};
}

}  // namespace hlt
