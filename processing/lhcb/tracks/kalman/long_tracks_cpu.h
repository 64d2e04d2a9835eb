// Long tracks in lanes, and their VELO hits, for the fits on the CPU.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/tracks/kalman/velo_filter.cuh"
#include "lhcb/tracks/long/generated/long_types.h"

namespace hlt {

/// Consecutive tracks; lanes behind the last track repeat it. Columns have room for whole groups.
struct long_tracks_in_lanes {
    uint32_t first, n;

    uint32_t in_lane(uint32_t l) const { return first + min_of(l, n - 1u); }

    template <typename Of>
    float_wide each(const Of& of_track) const
    {
        float values[n_wide];
        for (uint32_t l = 0; l < n_wide; ++l) values[l] = of_track(in_lane(l));
        float_wide lanes;
        load_wide(lanes, values);
        return lanes;
    }
    float_wide of(const float* column) const
    {
        float_wide lanes;
        load_wide(lanes, column + first);
        return lanes;
    }
    void put(float* column, const float_wide& lanes) const { store_wide(column + first, lanes); }
};
static_assert(max_long_tracks % n_wide == 0u);

/// velo_hits_of_track of each lane; in rows behind the last hit of a track this hit again.
class velo_hits_in_lanes {
  public:
    uint32_t rows = 1;

    /// `p`: the parameters of a kernel.
    template <typename Parameters>
    velo_hits_in_lanes(const Parameters& p, uint32_t event, const long_tracks_in_lanes& tracks, bool reversed)
    {
        const uint32_t first_track = p.velo_tracks.first(event), first_hit = p.velo_hits.first(event);
        const float *const x = p.velo_hits.x + first_hit, *const y = p.velo_hits.y + first_hit,
                           *const z = p.velo_hits.z + first_hit;
        const uint16_t* indices[n_wide];
        uint32_t counts[n_wide];
        for (uint32_t l = 0; l < n_wide; ++l) {
            const uint32_t track = first_track + p.long_tracks.velo_track[tracks.in_lane(l)];
            indices[l] = p.velo_tracks.hits + track * max_velo_track_hits;
            counts[l] = max_of(static_cast<uint32_t>(p.velo_tracks.hit_count[track]), 1u);
            rows = max_of(rows, counts[l]);
        }
        load_wide(counts_, counts);
        for (uint32_t k = 0; k < rows; ++k)
            for (uint32_t l = 0; l < n_wide; ++l) {
                const uint32_t last = counts[l] - 1u, at = min_of(k, last);
                const uint32_t hit = indices[l][reversed ? last - at : at];
                x_[k][l] = x[hit];
                y_[k][l] = y[hit];
                z_[k][l] = z[hit];
            }
    }

    int_wide has(uint32_t k) const { return counts_ > k; }
    velo_hit_of_track<float_wide> at(uint32_t k) const
    {
        velo_hit_of_track<float_wide> hit;
        load_wide(hit.x, x_[k]);
        load_wide(hit.y, y_[k]);
        load_wide(hit.z, z_[k]);
        return hit;
    }
    const uint_wide& counts() const { return counts_; }

  private:
    uint_wide counts_;
    float x_[max_velo_track_hits][n_wide], y_[max_velo_track_hits][n_wide], z_[max_velo_track_hits][n_wide];
};

}  // namespace hlt
