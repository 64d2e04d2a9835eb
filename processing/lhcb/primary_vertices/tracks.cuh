// The tracks that may make primary vertices, as the kernels of the vertex finder share them.
#pragma once

#include "framework/device/batch.cuh"
#include "lhcb/velo/geometry.cuh"

namespace hlt {

/// Sums over tracks run in this many lanes, whatever the block size: lane l adds the tracks l, l + 32, ... in order,
/// and the lanes are added in a fixed tree. So a sum has the same bits for every number of threads.
constexpr uint32_t pv_lanes = 32;

/// First place of an event in the pv_track_* arrays. An event has room for its tracks and for padding to full lanes.
__device__ uint32_t pv_first_track(const uint32_t* velo_cluster_offset, uint32_t event)
{
    return (velo_cluster_offset[event] / 2 / pv_lanes + event) * pv_lanes;
}

__device__ uint32_t pv_padded(uint32_t n_tracks) { return (n_tracks + pv_lanes - 1) / pv_lanes * pv_lanes; }

/// A primary vertex: position (mm), its covariance (mm^2), sum of the weights of its tracks.
struct primary_vertex {
    float x, y, z;
    float c00, c10, c11, c20, c21, c22;
    float n_tracks;
};

constexpr uint32_t max_pv_seeds = 64;
constexpr uint32_t max_pvs = 32;

constexpr float pv_z_min = -541.f;    // mm, of the histogram
constexpr float pv_z_smog2 = -341.f;  // mm, below: the gas cell, with fewer tracks and larger errors
constexpr float pv_z_max = 307.f;     // mm

}  // namespace hlt
