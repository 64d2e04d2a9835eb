// Hits of a SciFi zone by their x: bins lead to a place that is a few hits off at most, cells say at once that a hit is
// not there (forward_prepare_candidates).
#pragma once

#include "framework/device/lanes.cuh"
#include "lhcb/long_tracks/generated/long_types.h"
#include "lhcb/scifi/generated/scifi_types.h"

namespace hlt {

/// The cell of a zone at x: larger for larger x, 0 for what is not a number.
template <typename Lanes>
__device__ auto scifi_cell(const Lanes& x)
{
    const Lanes at = (x - scifi_bins_begin) * scifi_cells_per_mm;
    constexpr float largest = static_cast<float>(n_scifi_bins * scifi_cells_per_bin - 1u);
    const Lanes zero{}, last = zero + largest;
    return truncated(at > zero ? (at < last ? at : last) : zero);
}

/// The hits of an event.
struct scifi_event {
    event_column<const float> x;
    event_column<const float> z;
    event_column<const uint16_t> bins;
    event_column<const uint32_t> cells;
};

constexpr uint32_t max_cells_at_once = 24;
constexpr float cell_margin = 0.01f;  // mm, more than the rounding of x

/// For each lane: false if a zone has no hit closer to x than `most`.
__device__ auto may_have_hit(const scifi_event& hits, uint32_t zone, const float_lanes& x, const float_lanes& most)
{
    const uint_lanes first = scifi_cell(x - (most + cell_margin));
    const uint_lanes n_more = scifi_cell(x + (most + cell_margin)) - first;
    const uint_lanes bits = bits_from(hits.cells, first + zone * (n_scifi_bins * scifi_cells_per_bin));
    const uint_lanes beyond = in_all_lanes<uint_lanes>(2u) << (n_more & 31u);
    return ((bits & (beyond - 1u)) != 0u) | (n_more >= max_cells_at_once);
}

/// Hits of one layer in one half.
class scifi_zone {
  public:
    __device__ scifi_zone(const scifi_event& hits, uint32_t layer, uint32_t half)
        : x_(hits.x),
          first_(hits.bins.from((2u * layer + half) * scifi_bin_stride)),
          cells_(hits.cells.from((2u * layer + half) * n_scifi_bins))
    {
    }

    __device__ uint32_t begin() const { return first_[0]; }
    __device__ uint32_t end() const { return first_[n_scifi_bins]; }

    /// The first hit with at least this x.
    __device__ uint32_t from(float x) const
    {
        // Behind as many hits of its bin as there are cells with hits before its own, or a few more.
        const uint32_t cell = scifi_cell(x), bin = cell / scifi_cells_per_bin;
        const uint32_t before = cells_[bin] & ((1u << cell % scifi_cells_per_bin) - 1u), end = this->end();
        uint32_t at = first_[bin] + static_cast<uint32_t>(__popc(before));
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
        while (at < end && x_[at] < x) ++at;
        return at;
#else
        // Eight hits at a time; those behind the last one of the zone are read and not used.
        for (;; at += 8u) {
            float8 eight;
            load8(eight, &x_[at]);
            const uint32_t n_left = max_of(end, at) - at;
            const uint32_t used = n_left < 8u ? (1u << n_left) - 1u : 0xffu;
            const uint32_t n_before = static_cast<uint32_t>(__popc(bits_of(eight < x) & used));
            if (n_before < 8u) return at + n_before;
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
    event_column<const uint32_t> cells_;
};

}  // namespace hlt
