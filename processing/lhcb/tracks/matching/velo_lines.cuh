// VELO tracks in bins of their y in the SciFi tracker.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/tracks/long/bend.cuh"
#include "lhcb/velo/generated/velo_types.h"

namespace hlt {

constexpr uint32_t n_track_bins = 128;
constexpr float track_bin_width = 40.f;  // mm

#if HLT_ON_GPU
constexpr uint32_t line_lanes = 1;
#else
constexpr uint32_t line_lanes =
    velo_hit_padding;  // number of tracks compared at once; tracks behind the last one may be loaded
#endif

__device__ uint32_t track_bin_of(float y)
{
    const float bin = (y + 0.5f * track_bin_width * static_cast<float>(n_track_bins)) * (1.f / track_bin_width);
    const float last = static_cast<float>(n_track_bins - 1u);
    return bin > 0.f ? static_cast<uint32_t>(min_of(bin, last)) : 0u;
}

__device__ float y_at_seeds(const velo_line& line) { return line.y_at(z_scifi_reference); }

/// The lines of some tracks of an event, by bins of y_at_seeds.
struct binned_lines {
    uint16_t* track;
    float *x, *y, *tx, *ty;
    uint32_t* bin_begin;  // n_track_bins + 1

    __device__ velo_line line(uint32_t i) const { return {x[i], y[i], tx[i], ty[i]}; }

    /// The threads of a block sort the tracks that `takes` accepts into bins, in no particular order inside a bin.
    /// Returns their number.
    template <typename Takes, typename LineOf>
    __device__ uint32_t fill(uint32_t n_tracks, Takes takes, LineOf line_of, uint32_t* sums) const
    {
        for (uint32_t bin = threadIdx.x; bin <= n_track_bins; bin += blockDim.x) bin_begin[bin] = 0;
        block_barrier();
        for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x)
            if (takes(i)) atomicAdd(&bin_begin[track_bin_of(y_at_seeds(line_of(i)))], 1u);
        block_barrier();
        // The value is now the end of each bin; filling the bin from behind turns it into the start.
        uint32_t n = 0;
        for (uint32_t base = 0; base < n_track_bins; base += blockDim.x) {
            const uint32_t bin = base + threadIdx.x;
            const uint32_t count = bin < n_track_bins ? bin_begin[bin] : 0u;
            uint32_t total = 0;
            const uint32_t before = block_exclusive_sum(count, sums, total);
            if (bin < n_track_bins) bin_begin[bin] = n + before + count;
            n += total;
        }
        if (threadIdx.x == 0) bin_begin[n_track_bins] = n;
        block_barrier();
        for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x) {
            if (!takes(i)) continue;
            const velo_line of_track = line_of(i);
            const uint32_t place = atomicAdd(&bin_begin[track_bin_of(y_at_seeds(of_track))], 0xffffffffu) - 1u;
            track[place] = static_cast<uint16_t>(i);
            x[place] = of_track.x;
            y[place] = of_track.y;
            tx[place] = of_track.tx;
            ty[place] = of_track.ty;
        }
        block_barrier();
        return n;
    }
};

}  // namespace hlt
