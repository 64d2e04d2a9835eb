// The fits of merged tracks in the lanes of vectors (wide_merged_fit.h).
#pragma once

#include "alice/tpc/merging/fit/wide_merged_fit.h"

HLT_CPU_FORM(tpc_fit_merged_tracks)
{
    if constexpr (!hlt::compares_eight_lanes) return tpc_fit_merged_tracks(p, dim3{event, 1, 1});
    using namespace hlt;
    if (!p.takes(event)) return;
    const uint32_t whole_event = p.event_of(event), part = event - whole_event * tpc_merging_parts;
    const tpc_segments of = segments_of(p, whole_event);
    const tpc_filter as_pion = filter_of(p, p.tpc.geometry + tpc_rows);
    const tpc_mass_squares masses = mass_squares_of(p, as_pion);
    const uint32_t first_merged = p.tpc_merged_tracks.first(whole_event), n = p.tpc_merged_tracks.count[whole_event];
    const uint32_t* const of_event = p.tpc_merged_segments.segment + p.tpc_merged_segments.first(whole_event);
    merged_clusters clusters;
    merged_vector vectors[tpc_track_vectors];

    const uint32_t end = first_merged + n * (part + 1u) / tpc_merging_parts;
    uint32_t first = first_merged + n * part / tpc_merging_parts;
    while (first < end) {
        clusters.clear();
        merged_clusters::track listed[tpc_sorted_tracks];
        uint32_t lengths[tpc_sorted_tracks], n_listed = 0;
        for (; first + n_listed < end && n_listed < tpc_sorted_tracks && clusters.has_place(); ++n_listed) {
            const uint32_t* const segments = of_event + p.tpc_merged_tracks.first_segment[first + n_listed];
            listed[n_listed] = clusters.add(of, segments, p.tpc_merged_tracks.run[first + n_listed]);
            lengths[n_listed] = listed[n_listed].n;
        }
        uint16_t order[tpc_sorted_tracks];
        sort_by_clusters(lengths, n_listed, order);
        for (uint32_t begin = 0; begin < n_listed; begin += tpc_track_vectors * n_wide) {
            const uint32_t n_fits = min_of(n_listed - begin, tpc_track_vectors * n_wide);
            const uint32_t n_vectors = (n_fits + n_wide - 1u) / n_wide;
            uint32_t longest = 0;
            for (uint32_t k = 0; k < n_fits; ++k) longest = max_of(longest, lengths[order[begin + k]]);
            const auto segments_at = [&](uint32_t i) {
                return of_event + p.tpc_merged_tracks.first_segment[first + i];
            };
            const auto start_at = [&](uint32_t i) -> const tpc_track& {
                return innermost_of(of, segments_at(i), p.tpc_merged_tracks.run[first + i]);
            };
            for (uint32_t v = 0; v < n_vectors; ++v) {
                merged_vector& of_vector = vectors[v];
                for (uint32_t l = 0; l < n_wide; ++l) {
                    // Lanes without a track have a copy of the last one.
                    const uint32_t i = order[begin + min_of(v * n_wide + l, n_fits - 1u)];
                    of_vector.place(l, listed[i], start_at(i));
                }
                of_vector.begin_outwards(as_pion.mass_square, p.energy_loss);
            }
            for (uint32_t i = 0; i < longest; ++i)
                for (uint32_t v = 0; v < n_vectors; ++v)
                    vectors[v].fit.step<true>(as_pion, of.places, clusters.hits(), p.max_fit_chi2, i);
            for (uint32_t v = 0; v < n_vectors; ++v) vectors[v].end_outwards(p, masses);
            for (bool again = true; again;) {
                for (uint32_t i = 0; i < longest; ++i)
                    for (uint32_t v = 0; v < n_vectors; ++v)
                        if (vectors[v].is_wanted)
                            vectors[v].fit.step<false>(as_pion, of.places, clusters.hits(), p.max_fit_chi2, i);
                again = false;
                for (uint32_t v = 0; v < n_vectors; ++v) again |= vectors[v].takes_all_again(p.energy_loss);
            }
            for (uint32_t k = 0; k < n_fits; ++k) {
                const uint32_t i = order[begin + k];
                write_merged_track(p, of, segments_at(i), first + i,
                                   vectors[k / n_wide].result(k % n_wide, start_at(i)));
            }
        }
        first += n_listed;
    }
}
