// The fits of segments in the lanes of vectors (wide_segments.h).
#pragma once

#include "alice/tpc/merging/segments/describe_segments.cuh"
#include "alice/tpc/merging/segments/wide_segments.h"

namespace hlt {

/// Segments whose lengths are sorted, and vectors that are fitted together: a vector waits for roots and divisions.
constexpr uint32_t tpc_sorted_segments = 256, tpc_segment_vectors = 4;

}  // namespace hlt

HLT_CPU_FORM(tpc_describe_segments)
{
    if constexpr (!hlt::compares_eight_lanes) return tpc_describe_segments(p, dim3{event, 1, 1});
    using namespace hlt;
    if (!p.takes(event)) return;
    const uint32_t whole_event = p.event_of(event), slice = event - whole_event * tpc_slices;
    uint32_t first = p.tpc_tracks.first(whole_event), own = 0;
    for (uint32_t part = event - slice; part < event; ++part) {
        first += p.tpc_slices.tracks[part];
        own += p.tpc_slices.track_clusters[part];
    }
    const uint32_t* const clusters = p.tpc_track_clusters.cluster + p.tpc_track_clusters.first(whole_event);
    tpc_track_hit* const hits = p.tpc_track_clusters.hit + p.tpc_track_clusters.first(whole_event);
    const uint32_t of_event = p.tpc_event_clusters.first(whole_event);
    const uint32_t* const place = p.tpc_event_clusters.place + of_event;
    const uint8_t* const row = p.tpc_event_clusters.row + of_event;
    const uint16_t* const charges = p.tpc_clusters.charges + of_event;
    const tpc_places places{p.tpc.geometry, p.tpc.geometry + tpc_rows + tpc_numbers_after_rows};
    const tpc_filter filter = filter_of(p, p.tpc.geometry + tpc_rows);
    const tpc_direction axis = axis_of_slice(slice);

    uint32_t n_left = p.tpc_slices.tracks[event];
    while (n_left != 0u) {
        const uint32_t n = min_of(n_left, tpc_sorted_segments);
        uint32_t n_hits[tpc_sorted_segments], first_hit[tpc_sorted_segments];
        for (uint32_t i = 0; i < n; ++i) {
            n_hits[i] = p.tpc_tracks.track[first + i].n_clusters;
            first_hit[i] = own;
            for (const uint32_t end = own + n_hits[i]; own < end; ++own) {
                const uint32_t cluster = clusters[own];
                hits[own] = {place[cluster], charges[cluster], row[cluster], 0};
            }
            p.tpc_tracks.first_hit[first + i] = first_hit[i];
            p.tpc_tracks.rows[2u * (first + i)] = hits[first_hit[i]].row;
            p.tpc_tracks.rows[2u * (first + i) + 1u] = hits[own - 1u].row;
        }
        uint16_t order[tpc_sorted_segments];
        sort_by_clusters(n_hits, n, order);
        for (uint32_t begin = 0; begin < n; begin += tpc_segment_vectors * n_wide) {
            const uint32_t n_fits = min_of(n - begin, tpc_segment_vectors * n_wide);
            const uint32_t n_vectors = (n_fits + n_wide - 1u) / n_wide;
            const uint32_t longest = n_hits[order[begin + n_fits - 1u]];
            wide_second_fit fits[tpc_segment_vectors];
            uint_wide first_of[tpc_segment_vectors], n_of[tpc_segment_vectors];
            for (uint32_t v = 0; v < n_vectors; ++v) {
                for (uint32_t l = 0; l < n_wide; ++l) {
                    // Lanes without a segment have a copy of the last one.
                    const uint32_t i = order[begin + min_of(v * n_wide + l, n_fits - 1u)];
                    set_lane(fits[v].state, l, state_of(p.tpc_tracks.track[first + i]));
                    first_of[v][l] = first_hit[i];
                    n_of[v][l] = n_hits[i];
                }
                fits[v].begin(int_wide{} - 1, first_of[v], n_of[v]);
            }
            for (uint32_t i = 0; i < longest; ++i)
                for (uint32_t v = 0; v < n_vectors; ++v) fits[v].step<true>(filter, places, hits, p.max_fit_chi2, i);
            const auto for_fits = [&](const auto& take) {
                for (uint32_t k = 0; k < n_fits; ++k) {
                    const wide_second_fit& fit = fits[k / n_wide];
                    take(order[begin + k], fit.is_good[k % n_wide] != 0, state_in_lane(fit.state, k % n_wide));
                }
            };
            for (uint32_t v = 0; v < n_vectors; ++v) fits[v].end();
            for_fits([&](uint32_t i, bool is_good, const tpc_state& fitted) {
                tpc_segment_end outer{};
                tpc_state t = fitted;
                if (is_good || fit_outwards(filter, places, hits + first_hit[i], n_hits[i], p.max_fit_chi2, t))
                    outer = end_of(filter, t, slice, axis, true);
                p.tpc_tracks.outer[first + i] = outer;
            });
            for (uint32_t v = 0; v < n_vectors; ++v) fits[v].begin(fits[v].is_good, first_of[v], n_of[v]);
            for (uint32_t i = 0; i < longest; ++i)
                for (uint32_t v = 0; v < n_vectors; ++v) fits[v].step<false>(filter, places, hits, p.max_fit_chi2, i);
            for (uint32_t v = 0; v < n_vectors; ++v) fits[v].end();
            for_fits([&](uint32_t i, bool is_good, const tpc_state& fitted) {
                const tpc_state t = is_good ? fitted : state_of(p.tpc_tracks.track[first + i]);
                const tpc_segment_end inner = end_of(filter, t, slice, axis, false);
                p.tpc_tracks.inner[first + i] = inner;
                p.tpc_tracks.bin[first + i] = static_cast<uint16_t>(bin_of_segment(inner));
            });
        }
        first += n;
        n_left -= n;
    }
}
