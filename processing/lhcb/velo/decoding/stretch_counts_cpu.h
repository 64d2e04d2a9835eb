// Super-pixels in a list of an event, and whether they could fill a stretch of the table of the common kernel. The CPU
// forms of clustering have no such table, but give the flags of the common kernel.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/velo/decoding/super_pixel_table.cuh"

namespace hlt {

/// A super-pixel in a list of the event: its word, with the sensor in place of the bits above the column.
template <typename Words>
struct listed_super_pixel {
    Words word;

    Words pattern() const { return word & 0xffu; }
    Words row() const { return word >> 8 & 0x3fu; }
    Words column() const { return word >> 14 & 0x1ffu; }
    Words sensor() const { return word >> 23; }
    Words key() const { return (word >> 8) + 1u; }  // super_pixel_table::key_of
};

/// Number of super-pixels that hash to each stretch of the table that the common kernel would fill.
class stretch_counts {
  public:
    explicit stretch_counts(uint32_t places) : bits_(31u - static_cast<uint32_t>(__builtin_clz(places)))
    {
        std::memset(counts_, 0, (n_stretches() + 1u) * sizeof *counts_);
    }

    /// Count the first n super-pixels of a vector.
    void add(const listed_super_pixel<uint_wide>& pixels, uint32_t n)
    {
        uint32_t stretch[n_wide];
        store_wide(stretch, pixels.key() * 2654435769u >> (32u - bits_) >> 5u);
        for (uint32_t i = 0; i < n; ++i) ++counts_[stretch[i]];
    }

    /// True if a stretch could be full. A run of occupied places that covers a stretch begins in it or before it. Each
    /// place of the run, up to the end of the stretch, has a super-pixel that hashes into the run. So 32 super-pixels
    /// hash into the stretch itself, or more than 32 k into it and the k stretches before it. The latter needs more
    /// than 32 in two neighbours or 32 in one.
    bool may_be_full()
    {
        const uint32_t n = n_stretches();
        if (n > 1u) counts_[n] = counts_[0];
        uint32_t most = 0;
        for (uint32_t i = 0; i < n; ++i) most = max_of<uint32_t>(most, counts_[i] + counts_[i + 1u]);
        return most >= table_stretch;
    }

  private:
    uint32_t n_stretches() const { return max_of((1u << bits_) / table_stretch, 1u); }

    uint32_t bits_;
    uint16_t counts_[4u * (max_velo_clusters_of_event + 1u) / table_stretch + 1u];
};

}  // namespace hlt
