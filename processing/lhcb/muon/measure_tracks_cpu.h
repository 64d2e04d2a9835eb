// The nearest muon hits of long tracks on the CPU: the tracks are the lanes of vector registers, each hit is compared
// with all of them.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/muon/measure_tracks.cuh"

HLT_CPU_FORM(muon_measure_tracks)
{
    using hlt::float_wide, hlt::n_wide, hlt::uint_wide;
    if (!hlt::compares_eight_lanes) return muon_measure_tracks(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const uint32_t first = p.long_tracks.first(event);
    const uint32_t n_tracks = p.long_tracks.count[event];
    const hlt::muon_hits_of_event hits(p.muon_hits, event);

    for (uint32_t group = 0; group < n_tracks; group += n_wide) {
        const uint32_t n = hlt::min_of(n_wide, n_tracks - group);
        float of_lanes[4][n_wide];
        for (uint32_t lane = 0; lane < n_wide; ++lane) {
            const uint32_t track = first + group + hlt::min_of(lane, n - 1u);
            of_lanes[2][lane] = p.long_tracks.tx[track];
            of_lanes[3][lane] = p.long_tracks.ty[track];
            of_lanes[0][lane] = p.long_tracks.x[track] - hlt::z_end_scifi * of_lanes[2][lane];
            of_lanes[1][lane] = p.long_tracks.y[track] - hlt::z_end_scifi * of_lanes[3][lane];
        }
        float_wide x, y, tx, ty;
        hlt::load_wide(x, of_lanes[0]);
        hlt::load_wide(y, of_lanes[1]);
        hlt::load_wide(tx, of_lanes[2]);
        hlt::load_wide(ty, of_lanes[3]);
        uint32_t nearest[hlt::n_muon_stations][n_wide];
        for (uint32_t station = 0; station < hlt::n_muon_stations; ++station) {
            float_wide best_distance2 = float_wide{} + hlt::farthest_muon_hit2;
            uint_wide best = uint_wide{} + hlt::no_muon_hit;
            for (uint32_t i = hits.offset[station]; i < hits.offset[station + 1u]; ++i) {
                const float_wide to_x = x + tx * hits.z[i] - hits.x[i], to_y = y + ty * hits.z[i] - hits.y[i];
                const float_wide distance2 = to_x * to_x + to_y * to_y;
                const auto is_nearer = distance2 < best_distance2;
                best_distance2 = is_nearer ? distance2 : best_distance2;
                best = is_nearer ? uint_wide{} + i : best;
            }
            hlt::store_wide(nearest[station], best);
        }
        for (uint32_t lane = 0; lane < n; ++lane) {
            const uint32_t track = first + group + lane;
            const hlt::muon_track_line line(p.long_tracks, track);
            for (uint32_t station = 0; station < hlt::n_muon_stations; ++station)
                hits.store_features(line, nearest[station][lane], station,
                                    p.long_tracks.muon_features + track * hlt::n_muon_features);
            hits.store_stub(line, p.long_tracks.muon_hits + track * hlt::n_muon_stations, p.long_tracks.beam_ty[track],
                            p.long_tracks.muon_stub + track * hlt::n_muon_stub_numbers);
        }
    }
}
