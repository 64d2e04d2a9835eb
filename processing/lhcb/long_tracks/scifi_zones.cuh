// Hits of a SciFi zone by their x: an index of bins of 51.2 mm leads to a place that is a few hits off at most.
#pragma once

#include "framework/device/vector8.cuh"
#include "lhcb/scifi/generated/scifi_types.h"

namespace hlt {

constexpr uint32_t n_scifi_bins = 127;
constexpr float scifi_bins_begin = -3251.2f;  // mm
constexpr float scifi_bins_per_mm = 1.f / 51.2f;

/// The hits in bins of x: those of bin b of a zone are [b] .. [b + 1], relative to the first hit of the event. Hits
/// beyond the first or last bin belong to it.
struct alignas(16) scifi_zone_index {
    uint16_t first[n_scifi_zones][n_scifi_bins + 1u];
};
static_assert(sizeof(scifi_zone_index) % 16u == 0u);

/// Larger for larger x, not a number in the first bin.
__device__ uint32_t scifi_bin(float x)
{
    const float at = (x - scifi_bins_begin) * scifi_bins_per_mm;
    constexpr float last = static_cast<float>(n_scifi_bins - 1u);
    return at > 0.f ? static_cast<uint32_t>(at < last ? at : last) : 0u;
}

/// The threads of a block fill the index of their event: each hit those bins that begin with it. It is cleared before,
/// so that hits which do not ascend cannot leave a place that leads out of the event.
__device__ void fill_zone_index(scifi_zone_index& index, const event_column<const float>& x,
                                const event_column<const uint16_t>& zone_offset)
{
    zero_words(&index, sizeof index / sizeof(uint32_t));
    block_barrier();
    for (uint32_t zone = 0; zone < n_scifi_zones; ++zone) {
        const uint32_t begin = zone_offset[zone], end = zone_offset[zone + 1u];
        for (uint32_t i = begin + threadIdx.x; i <= end; i += blockDim.x) {
            const uint32_t from = i == begin ? 0u : scifi_bin(x[i - 1u]) + 1u;
            const uint32_t to = i == end ? n_scifi_bins : scifi_bin(x[i]);
            for (uint32_t bin = from; bin <= to; ++bin) index.first[zone][bin] = static_cast<uint16_t>(i);
        }
    }
}

/// The hits of an event.
struct scifi_event {
    event_column<const float> x;
    event_column<const float> z;
    const scifi_zone_index& index;
};

/// Hits of one layer in one half.
class scifi_zone {
  public:
    __device__ scifi_zone(const scifi_event& hits, uint32_t layer, uint32_t half)
        : x_(hits.x), first_(hits.index.first[2u * layer + half])
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
        const uint32_t at = from(x);
        uint32_t found = no_scifi_hit;
        if (at > begin() && x - x_[at - 1u] < most) {
            most = x - x_[at - 1u];
            found = at - 1u;
        }
        if (at < end() && x_[at] - x < most) found = at;
        return found;
    }

  private:
    event_column<const float> x_;
    const uint16_t* first_;
};

}  // namespace hlt
