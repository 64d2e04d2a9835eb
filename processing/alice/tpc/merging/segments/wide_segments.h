// Clusters of the tracks of an event, and fits of segments, with a track in each lane.
#pragma once

#include "alice/tpc/merging/segments/segment.cuh"
#include "alice/tpc/tracks/wide_search.h"

namespace hlt {

/// A cluster in each lane.
struct wide_hit {
    uint_wide place, others;  // the words of tpc_track_hit

    uint_wide charge() const { return others & 0xFFFFu; }
    uint_wide row() const { return others >> 16 & 0xFFu; }
    uint_wide last_byte() const { return others >> 24; }
};

inline __attribute__((always_inline)) wide_hit hits_at(const tpc_track_hit* hits, const uint_wide& at)
{
    return {words_of<sizeof(tpc_track_hit)>(&hits->place, at), words_of<sizeof(tpc_track_hit)>(&hits->charge, at)};
}

inline __attribute__((always_inline)) tpc_point_of<float_wide> points_of(const tpc_places& places, const wide_hit& hits)
{
    const uint_wide row = hits.row();
    return {floats_of(places.row_x, row), y_of(hits.place), z_of(hits.place), floats_of(places.pads, row)};
}

inline tpc_state state_in_lane(const wide_state& states, uint32_t l)
{
    tpc_state t;
    const char* const read = reinterpret_cast<const char*>(&states) + l * sizeof(float);
    for (uint32_t k = 0; k < sizeof t / sizeof(float); ++k)
        std::memcpy(reinterpret_cast<char*>(&t) + k * sizeof(float), read + k * sizeof(float_wide), sizeof(float));
    return t;
}

inline void set_lane(wide_state& states, uint32_t l, const tpc_state& t)
{
    char* const write = reinterpret_cast<char*>(&states) + l * sizeof(float);
    for (uint32_t k = 0; k < sizeof t / sizeof(float); ++k)
        std::memcpy(write + k * sizeof(float_wide), reinterpret_cast<const char*>(&t) + k * sizeof(float),
                    sizeof(float));
}

/// Numbers of tracks in the order of their numbers of clusters: tracks of the lanes of a vector then end together.
/// `order` has n places.
inline void sort_by_clusters(const uint32_t* n_clusters, uint32_t n, uint16_t* order)
{
    uint16_t of_length[tpc_rows + 1u] = {};
    const auto length_of = [&](uint32_t i) { return min_of(n_clusters[i], tpc_rows); };
    for (uint32_t i = 0; i < n; ++i) ++of_length[length_of(i)];
    uint16_t running = 0;
    for (uint16_t& count : of_length) {
        const uint16_t of_this = count;
        count = running;
        running = static_cast<uint16_t>(running + of_this);
    }
    for (uint32_t i = 0; i < n; ++i) order[of_length[length_of(i)]++] = static_cast<uint16_t>(i);
}

/// fit_again for a segment in each lane.
class wide_second_fit {
  public:
    wide_state state;
    int_wide is_good;  // of the lanes with a fit

    /// A fit of some lanes through their n clusters, from `first` on.
    void begin(const int_wide& lanes, const uint_wide& first, const uint_wide& n)
    {
        first_ = first;
        n_ = n;
        is_good = lanes;
        fitted_ = uint_wide{};
        forget(state);
    }
    template <bool outwards>
    __attribute__((always_inline)) void step(const tpc_filter& filter, const tpc_places& places,
                                             const tpc_track_hit* hits, float max_fit_chi2, uint32_t i)
    {
        const int_wide wanted = is_good & (n_ > i);
        const uint_wide at = outwards ? first_ + i : first_ + n_ - 1u - i;
        const tpc_point_of<float_wide> point = points_of(places, hits_at(hits, at & (uint_wide)wanted));
        const int_wide moved = propagate_where(wanted, filter, state, point.x);
        const tpc_errors_of<float_wide> errors = errors_at(filter, state, point.z, point.pad);
        const int_wide taken = moved & ~(distance2(state, errors, point.y, point.z) > max_fit_chi2);
        update_where(taken, state, errors, point.y, point.z);
        fitted_ -= (uint_wide)taken;
        is_good &= (moved | ~wanted) & (is_within(filter, state.s) | ~taken);
    }
    void end() { is_good &= (2u * fitted_ >= n_) & has_variances(state); }

  private:
    uint_wide first_, n_, fitted_;
};

}  // namespace hlt
