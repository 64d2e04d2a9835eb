// VELO tracks in lanes for the forward search on the CPU, and the look-up of track data for lanes.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/tracks/forward/x_hits.cuh"

namespace hlt {

/// Tracks whose SciFi parts are searched, and the data of each before the search.
struct velo_tracks_in_lanes {
    velo_line_of<float_wide> line;
    forward_hypothesis_of<float_wide> where;
    uint32_t slot[n_wide];  // number of the VELO track
    uint32_t used;          // bit l: there is a track in lane l
};

/// For each lane the entry of a table for its track.
class of_track_in_lane {
  public:
    explicit of_track_in_lane(const uint32_t* tracks) { load_wide(track_, tracks); }

    inline __attribute__((always_inline)) float_wide operator()(const float_wide& table) const
    {
        return picked(table, track_);
    }
    inline __attribute__((always_inline)) uint_wide operator()(const uint_wide& table) const
    {
        return (uint_wide)picked((float_wide)table, track_);
    }
    inline __attribute__((always_inline)) velo_line_of<float_wide> operator()(
        const velo_line_of<float_wide>& line) const
    {
        return {(*this)(line.x), (*this)(line.y), (*this)(line.tx), (*this)(line.ty)};
    }
    inline __attribute__((always_inline)) parabola_of<float_wide> operator()(const parabola_of<float_wide>& of) const
    {
        return {(*this)(of.a0), (*this)(of.a1), (*this)(of.a2)};
    }
    inline __attribute__((always_inline)) bend_polynomial_of<float_wide> operator()(
        const bend_polynomial_of<float_wide>& of) const
    {
        return {{(*this)(of.a[0]), (*this)(of.a[1]), (*this)(of.a[2]), (*this)(of.a[3]), (*this)(of.a[4])}};
    }
    /// The functions for the kinks of all lanes.
    inline __attribute__((always_inline)) bend_functions<float_wide> operator()(const track_bend_of<float_wide>& bend,
                                                                                const float_wide& kink) const
    {
        return {kink,
                (*this)(bend.z_magnet)(kink),
                (*this)(bend.curvature)(kink),
                (*this)(bend.cubic)(kink),
                (*this)(bend.y_shift)(kink),
                (*this)(bend.y_slope)(kink)};
    }
    const uint_wide& tracks() const { return track_; }

  private:
    uint_wide track_;
};

}  // namespace hlt
