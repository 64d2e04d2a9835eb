// Fits of given tracks for test_acts.py.
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "alice/tpc/tracks/select_tracks.cuh"

namespace {

/// Outwards or inwards through a cluster of each row, from ten times the standard deviations of the start.
void fit_again(const hlt::tracklet_input& in, bool outwards, hlt::tpc_state& t)
{
    for (float* variance : {&t.yy, &t.zz, &t.ss, &t.ll, &t.qq}) *variance *= 100.f;
    t.sy = t.qy = t.qs = t.lz = t.chi2 = 0.f;
    for (uint32_t i = 0; i < hlt::tpc_rows; ++i) {
        const hlt::tpc_point at = in.point(outwards ? i : hlt::tpc_rows - 1u - i, 0);
        hlt::propagate(in.filter, t, at.x);
        hlt::update(t, hlt::errors_at(in.filter, t, at.z, at.pad), at.y, at.z);
    }
}

}  // namespace

// filter: 13 floats of a tpc_filter. row_x, pads: cm of each row. places: [tracks][tpc_rows], a cluster of each row, z
// in the upper and y in the lower 16 bits. states: [tracks][16 floats], a tpc_state at the innermost cluster: that of
// the selection, or with `twice` that of a second fit. Returns how many tracks the selection fits.
extern "C" uint32_t fit_given_tracks(const float* filter, const float* row_x, const float* pads, const uint32_t* places,
                                     uint32_t n_tracks, float max_fit_chi2, int twice, float* states)
{
    hlt::tpc_row rows[hlt::tpc_rows] = {};
    hlt::track_hits hits = {};
    for (uint32_t row = 0; row < hlt::tpc_rows; ++row) {
        rows[row].first = row;
        rows[row].n_clusters = 1;
        hits.row[row] = static_cast<uint8_t>(row);
    }
    hits.n = hlt::tpc_rows;
    hlt::tracklet_input in = {};
    in.rows = rows;
    in.row_x = row_x;
    in.pads = pads;
    static_assert(sizeof in.filter == 13 * sizeof(float));
    std::memcpy(&in.filter, filter, sizeof in.filter);
    uint32_t n_fitted = 0;
    for (uint32_t track = 0; track < n_tracks; ++track) {
        in.places = places + track * hlt::tpc_rows;
        hlt::tpc_state t = {};
        n_fitted += hlt::fit_inwards(in, hits, max_fit_chi2, t);
        if (twice != 0) {
            fit_again(in, true, t);
            fit_again(in, false, t);
        }
        static_assert(sizeof t == 16 * sizeof(float));
        std::memcpy(states + 16 * track, &t, sizeof t);
    }
    return n_fitted;
}
