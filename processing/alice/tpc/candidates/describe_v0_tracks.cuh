// Circles and bins of merged tracks that do not point to the beam line.
//
// In:  tpc_merged_tracks.track. Out: tpc_merged_tracks.v0_track and v0_bin. A track takes part if the beam line is
// farther from its circle than min_significance errors, and it has min_clusters clusters. The error grows with
// 1 / pT: tracks scatter in the walls of the TPC, which the covariance at the innermost cluster does not know. The
// record of a track without part is not written. Blocks of an event share its merged tracks. Bounds: those of the
// tracks.
#pragma once

#include "alice/tpc/candidates/generated/tpc_candidate_types.h"
#include "alice/tpc/candidates/generated/tpc_describe_v0_tracks.h"
#include "alice/tpc/candidates/helix.cuh"

namespace hlt {

/// The bin of a place. Places beyond the last bins in z are in these.
__device__ uint32_t v0_bin_of(float x, float y, float z)
{
    constexpr float phi_step = 6.28318531f / static_cast<float>(tpc_v0_phi_bins), z_step = 10.f;
    const float phi = (angle_at(x, y) + 3.14159265f) / phi_step;
    const float along = z / z_step + 0.5f * static_cast<float>(tpc_v0_z_bins);
    const uint32_t column = phi > 0.f ? static_cast<uint32_t>(phi) % tpc_v0_phi_bins : 0u;
    const uint32_t line = along > 0.f ? min_of(static_cast<uint32_t>(along), tpc_v0_z_bins - 1u) : 0u;
    return line * tpc_v0_phi_bins + column;
}

/// The circle of a helix, and its distance from the beam line over the error.
__device__ tpc_v0_track v0_track_of(const tpc_helix& helix, float pt, float dca_constant, float dca_scattering)
{
    const float k = helix.curvature, left_x = -helix.along_y, left_y = helix.along_x;
    const float e = left_x * helix.x + left_y * helix.y + 0.5f * k * (square(helix.x) + square(helix.y));
    const float mx = left_x + k * helix.x, my = left_y + k * helix.y;
    const float distance = 2.f * (e < 0.f ? -e : e) / (1.f + square_root(mx * mx + my * my));
    const float error = square_root(square(dca_constant) + square(dca_scattering / pt));
    const float z_beam = helix.z - helix.slope * square_root(square(helix.x) + square(helix.y));
    return {helix.x, helix.y, helix.z, mx, my, e, k, helix.slope, z_beam, pt, distance / error};
}

}  // namespace hlt

HLT_KERNEL(tpc_describe_v0_tracks)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t event = p.event_of(blockIdx.x), part = blockIdx.x - event * hlt::tpc_merging_parts;
    const uint32_t first = p.tpc_merged_tracks.first(event), n = p.tpc_merged_tracks.count[event];
    for (uint32_t i = part * blockDim.x + threadIdx.x; i < n; i += hlt::tpc_merging_parts * blockDim.x) {
        const hlt::tpc_merged_track& track = p.tpc_merged_tracks.track[first + i];
        const float size = track.q_pt < 0.f ? -track.q_pt : track.q_pt;
        uint32_t bin = hlt::tpc_v0_no_bin;
        if (size * static_cast<float>(hlt::tpc_max_v0_pt) > 1.f && track.n_clusters >= p.min_clusters) {
            const hlt::tpc_helix helix = hlt::helix_of(track, p.tpc.geometry + hlt::tpc_rows);
            const hlt::tpc_v0_track own = hlt::v0_track_of(helix, 1.f / size, p.dca_constant, p.dca_scattering);
            if (own.significance >= p.min_significance) {
                p.tpc_merged_tracks.v0_track[first + i] = own;
                bin = hlt::v0_bin_of(own.x, own.y, own.z) + (track.q_pt > 0.f ? hlt::tpc_v0_positive : 0u);
            }
        }
        p.tpc_merged_tracks.v0_bin[first + i] = static_cast<uint16_t>(bin);
    }
}
