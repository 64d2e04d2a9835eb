// Index of the hits of a SciFi zone by x: bins give a place at most a few hits away, cells exclude places without a
// hit. The forward search indexes all hits, the seeding the unused ones.
#pragma once

#include "framework/device/vector8.cuh"
#include "lhcb/scifi/generated/scifi_types.h"
#include "lhcb/tracks/long/generated/long_types.h"

namespace hlt {

/// The cell of a zone at x: rises with x; 0 for NaN.
__device__ uint32_t scifi_cell(float x)
{
    const float at = (x - scifi_bins_begin) * scifi_cells_per_mm;
    constexpr float last = static_cast<float>(n_scifi_bins * scifi_cells_per_bin - 1u);
    return static_cast<uint32_t>(at > 0.f ? (at < last ? at : last) : 0.f);
}

#if !HLT_ON_GPU
/// Copy the value of the bin before into each bin without hits, eight bins at a time.
inline void carry_scifi_bins(uint16_t* bins)
{
    uint8x16 carried{};
    for (uint32_t bin = 0; bin < scifi_bin_stride; bin += 8u) {
        const uint8x16 none{};
        uint8x16 eight, moved;
        load8(eight, bins + bin);
        moved = __builtin_shufflevector(none, eight, 0, 8, 9, 10, 11, 12, 13, 14);
        eight = eight > moved ? eight : moved;
        moved = __builtin_shufflevector(none, eight, 0, 0, 8, 9, 10, 11, 12, 13);
        eight = eight > moved ? eight : moved;
        moved = __builtin_shufflevector(none, eight, 0, 0, 0, 0, 8, 9, 10, 11);
        eight = eight > moved ? eight : moved;
        eight = eight > carried ? eight : carried;
        carried = __builtin_shufflevector(eight, eight, 7, 7, 7, 7, 7, 7, 7, 7);
        std::memcpy(bins + bin, &eight, sizeof eight);
    }
}
#endif

/// The threads of a block fill the bins and cells of all zones; zone k has the hits [ends[k], ends[k + 1]). Bin
/// n_scifi_bins of a zone is the end of its hits. Bins never refer to other hits, even if the hits do not ascend.
__device__ void fill_scifi_zones(const event_column<const float>& x, const uint16_t* ends,
                                 const event_column<uint16_t>& bins, uint32_t* cells)
{
    zero_words(cells, scifi_cell_stride);
#if HLT_ON_GPU
    // A hit fills the bins that begin with it; if hits do not ascend, some bins stay unchanged.
    for (uint32_t i = threadIdx.x; i < n_scifi_zones * scifi_bin_stride; i += blockDim.x) bins[i] = 0;
    block_barrier();
    for (uint32_t zone = 0; zone < n_scifi_zones; ++zone) {
        const event_column<uint16_t> of_zone = bins.from(zone * scifi_bin_stride);
        const uint32_t begin = ends[zone], end = ends[zone + 1u];
        for (uint32_t i = begin + threadIdx.x; i <= end; i += blockDim.x) {
            const uint32_t from = i == begin ? 0u : scifi_cell(x[i - 1u]) / scifi_cells_per_bin + 1u;
            const uint32_t cell = i == end ? 0u : scifi_cell(x[i]);
            const uint32_t to = i == end ? scifi_bin_stride - 1u : cell / scifi_cells_per_bin;
            for (uint32_t bin = from; bin <= to; ++bin) of_zone[bin] = static_cast<uint16_t>(i);
            if (i < end)
                atomicOr(&cells[zone * n_scifi_bins + cell / scifi_cells_per_bin], 1u << cell % scifi_cells_per_bin);
        }
    }
#else
    // The last hit of a bin gives the start of the next one; a pass over empty bins copies this value, eight bins at a
    // time.
    static_assert(scifi_bin_stride > n_scifi_bins && scifi_bin_stride % 8u == 0u);
    for (uint32_t zone = 0; zone < n_scifi_zones; ++zone) {
        uint16_t* const first = &bins[zone * scifi_bin_stride];
        uint32_t* const cells_of_zone = cells + zone * n_scifi_bins;
        const uint32_t begin = ends[zone], end = ends[zone + 1u];
        for (uint32_t bin = 0; bin < scifi_bin_stride; ++bin) first[bin] = static_cast<uint16_t>(begin);
        for (uint32_t base = begin; base < end; base += 8u) {
            uint32_t at[8];  // scifi_hit_padding: hits behind the last one may be read
            for (uint32_t lane = 0; lane < 8u; ++lane) at[lane] = scifi_cell(x[base + lane]);
            const uint32_t n = min_of(8u, end - base);
            for (uint32_t lane = 0; lane < n; ++lane) {
                const uint32_t bin = at[lane] / scifi_cells_per_bin;
                cells_of_zone[bin] |= 1u << at[lane] % scifi_cells_per_bin;
                first[bin + 1u] = static_cast<uint16_t>(base + lane + 1u);
            }
        }
        carry_scifi_bins(first);
    }
#endif
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

/// At least 25 bits of a column of words from a given bit on, across the border of words.
__device__ uint32_t bits_from(const event_column<const uint32_t>& words, uint32_t bit)
{
    const uint32_t word = bit / 32u;
    return static_cast<uint32_t>((static_cast<uint64_t>(words[word + 1u]) << 32u | words[word]) >> bit % 32u);
}

/// Returns false if the zone has no hit closer to x than `most`.
__device__ bool may_have_hit(const scifi_event& hits, uint32_t zone, float x, float most)
{
    const uint32_t first = scifi_cell(x - (most + cell_margin));
    const uint32_t n_more = scifi_cell(x + (most + cell_margin)) - first;
    const uint32_t bits = bits_from(hits.cells, first + zone * (n_scifi_bins * scifi_cells_per_bin));
    const uint32_t beyond = 2u << (n_more & 31u);
    return ((bits & (beyond - 1u)) != 0u) | (n_more >= max_cells_at_once);
}

/// Hits of one layer in one half.
class scifi_zone {
  public:
    __device__ scifi_zone(const scifi_event& hits, uint32_t layer, uint32_t half)
        : scifi_zone(hits.x, hits.bins, hits.cells, 2u * layer + half)
    {
    }
    __device__ scifi_zone(const event_column<const float>& x, const event_column<const uint16_t>& bins,
                          const event_column<const uint32_t>& cells, uint32_t zone)
        : x_(x), first_(bins.from(zone * scifi_bin_stride)), cells_(cells.from(zone * n_scifi_bins))
    {
    }

    __device__ uint32_t begin() const { return first_[0]; }
    __device__ uint32_t end() const { return first_[n_scifi_bins]; }

    /// The first hit with this x or more.
    __device__ uint32_t from(float x) const
    {
        // The hits of its bin before it: one for each earlier cell with hits, or a few more.
        const uint32_t cell = scifi_cell(x), bin = cell / scifi_cells_per_bin;
        const uint32_t before = cells_[bin] & ((1u << cell % scifi_cells_per_bin) - 1u), end = this->end();
        uint32_t at = first_[bin] + static_cast<uint32_t>(__popc(before));
#if HLT_ON_GPU
        while (at < end && x_[at] < x) ++at;
        return at;
#else
        // Eight hits at a time; hits behind the last one of the zone are loaded and ignored.
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
        // Both neighbours are compared without branches, which would be mispredicted half of the time.
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
