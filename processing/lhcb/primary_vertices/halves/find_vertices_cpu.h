// Primary vertices of each half of the VELO on the CPU: the steps of the common kernel, with the forms of the vertex
// finder for the CPU.
#pragma once

#include "lhcb/primary_vertices/halves/find_vertices.cuh"
#include "lhcb/primary_vertices/multi_fit_cpu.h"
#include "lhcb/primary_vertices/peaks_cpu.h"

HLT_CPU_FORM(velo_halves_find_vertices)
{
    if (!hlt::compares_eight_lanes) return velo_halves_find_vertices(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const hlt::half_vertex_search search(p);
    const hlt::velo_beam_line beam_line(*p.velo_geometry);
    float seeds[hlt::max_pv_seeds];
    hlt::primary_vertex fitted[hlt::max_pv_seeds];
    uint8_t kept[hlt::max_pv_seeds];
    uint32_t first = p.half_tracks.first(event), n_vertices = 0;
    bool too_many = false;
    for (uint32_t half = 0; half < hlt::n_velo_halves; ++half) {
        const uint32_t n_tracks = p.half_tracks.counts[hlt::n_velo_halves * event + half];
        const uint32_t n_found = hlt::pv_find_seeds_on_cpu(search, first, n_tracks, seeds);
        const uint32_t n_seeds = hlt::min_of(n_found, hlt::max_pv_seeds);
        too_many = too_many || n_found > n_seeds;
        hlt::pv_fit_seeds_on_cpu(search, hlt::half_fit_tracks(p, first, n_tracks), seeds, n_seeds, beam_line, fitted);
        hlt::pv_mark_kept(fitted, n_seeds, p.min_separation_chi2, kept);
        n_vertices = hlt::append_half_vertices(p, event, half, fitted, n_seeds, kept, n_vertices, too_many);
        first += hlt::pv_padded(n_tracks);
    }
    p.half_vertices.count[event] = n_vertices;
    if (too_many) p.events.flags[event] |= hlt::overflow;
}
