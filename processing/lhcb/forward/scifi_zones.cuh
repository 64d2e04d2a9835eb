// Hits of a SciFi zone by their x: bins lead to a place that is a few hits off at most
// (forward_prepare_candidates).
#pragma once

#include "framework/device/vector8.cuh"
#include "lhcb/long_tracks/generated/long_types.h"
#include "lhcb/scifi/generated/scifi_types.h"

namespace hlt {

/// Larger for larger x, not a number in the first bin.
__device__ uint32_t scifi_bin(float x)
{
    const float at = (x - scifi_bins_begin) * scifi_bins_per_mm;
    constexpr float last = static_cast<float>(n_scifi_bins - 1u);
    return at > 0.f ? static_cast<uint32_t>(at < last ? at : last) : 0u;
}

/// The hits of an event.
struct scifi_event {
    event_column<const float> x;
    event_column<const float> z;
    event_column<const uint16_t> bins;
};

/// Hits of one layer in one half.
class scifi_zone {
  public:
    __device__ scifi_zone(const scifi_event& hits, uint32_t layer, uint32_t half)
        : x_(hits.x), first_(hits.bins.from((2u * layer + half) * scifi_bin_stride))
    {
    }

    __device__ uint32_t begin() const { return first_[0]; }
    __device__ uint32_t end() const { return first_[n_scifi_bins]; }

    /// The first hit with at least this x.
    __device__ uint32_t from(float x) const
    {
        const uint32_t bin = scifi_bin(x);
        uint32_t at = first_[bin];
        const uint32_t end = first_[bin + 1u];
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
        while (at < end && x_[at] < x) ++at;
        return at;
#else
        // Eight hits at a time; those behind the last one of the bin are read and not used.
        for (;; at += 8u) {
            float8 eight;
            load8(eight, &x_[at]);
            const uint32_t n_left = max_of(end, at) - at;
            const uint32_t used = n_left < 8u ? (1u << n_left) - 1u : 0xffu;
            const uint32_t n_before = static_cast<uint32_t>(__popc(bits_of(eight < x) & used));
            if (n_before < 8u || n_left <= 8u) return at + n_before;
        }
#endif
    }

    /// The hit nearest to x if it is closer than `most`.
    __device__ uint32_t nearest(float x, float most) const
    {
        // Both neighbours are looked at without branches, which would be taken as often as not.
        const uint32_t at = from(x), first = begin(), before = max_of(at, first + 1u) - 1u;
        const float above = at < end() ? x_[at] - x : most;
        const float below = at > first ? x - x_[before] : most;
        const bool is_above = above < most && !(below < most && below <= above);
        return is_above ? at : below < most ? before : no_scifi_hit;
    }

  private:
    event_column<const float> x_;
    event_column<const uint16_t> first_;
};

}  // namespace hlt
