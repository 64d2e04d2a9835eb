// Primary vertices of each half of the VELO: the vertex finder of all tracks, on the tracks of one half after the other
// (docs/physics/velo-halves.md).
//
// For each half: seeds from the histogram of z (peaks.cuh), the fit of all seeds at once (multi_fit.cuh), and removal
// of vertices that are part of a larger one (cleanup.cuh). A half does not see the tracks of the other.
// In:  half_tracks.*, velo_geometry.
// Out: half_vertices.{count [event], vertex, side}; events.flags.
// One block per event.
// Bounds: max_pv_seeds seeds and max_pvs vertices of each half: further ones, at larger z, are dropped and set the
// overflow flag.
#pragma once

#include "lhcb/primary_vertices/cleanup.cuh"
#include "lhcb/primary_vertices/halves/generated/half_types.h"
#include "lhcb/primary_vertices/halves/generated/velo_halves_find_vertices.h"
#include "lhcb/primary_vertices/multi_fit.cuh"
#include "lhcb/primary_vertices/peaks.cuh"

namespace hlt {

static_assert(max_half_vertices >= max_pv_seeds, "the scratch holds the seeds of a half");
static_assert(sizeof(primary_vertex) == 10 * sizeof(float), "as declared for the scratch");

/// The cuts and columns of the vertex finder, as peaks.cuh and multi_fit.cuh name them.
struct half_vertex_search {
    const hlt::velo_geometry* velo_geometry;
    struct {
        const float *x, *y, *z, *tx, *ty, *weight;
    } pv_tracks;
    float max_track_chi2, max_z_error, max_z_error_smog2, min_integral, min_integral_smog2, min_dip;
    float max_chi2, chi2_cut, max_dz_converged, max_rho2;
    uint32_t max_iterations, min_tracks, min_tracks_smog2;

    __device__ explicit half_vertex_search(const velo_halves_find_vertices_parameters& p)
        : velo_geometry(p.velo_geometry),
          pv_tracks{p.half_tracks.x,  p.half_tracks.y,  p.half_tracks.z,
                    p.half_tracks.tx, p.half_tracks.ty, p.half_tracks.weight},
          max_track_chi2(p.max_track_chi2),
          max_z_error(p.max_z_error),
          max_z_error_smog2(p.max_z_error_smog2),
          min_integral(p.min_integral),
          min_integral_smog2(p.min_integral_smog2),
          min_dip(p.min_dip),
          max_chi2(p.max_chi2),
          chi2_cut(p.chi2_cut),
          max_dz_converged(p.max_dz_converged),
          max_rho2(p.max_rho2),
          max_iterations(p.max_iterations),
          min_tracks(p.min_tracks),
          min_tracks_smog2(p.min_tracks_smog2)
    {
    }
};

/// The tracks of a half for the fit; `first` is its first track.
__device__ pv_fit_tracks half_fit_tracks(const velo_halves_find_vertices_parameters& p, uint32_t first, uint32_t n)
{
    const auto& of = p.half_tracks;
    return {{of.x + first, of.y + first, of.z + first, of.tx + first, of.ty + first, of.fit_weight + first},
            p.half_tracks_scratch.tracks + pv_fit_track_width * first,
            pv_padded(n)};
}

/// Append the kept vertices of a half; one thread calls it. Returns the number of vertices so far.
__device__ uint32_t append_half_vertices(const velo_halves_find_vertices_parameters& p, uint32_t event, uint32_t half,
                                         const primary_vertex* fitted, uint32_t n_seeds, const uint8_t* kept,
                                         uint32_t n_before, bool& too_many)
{
    const uint32_t first = p.half_vertices.first(event) + n_before;
    const uint32_t n = pv_copy_kept(fitted, n_seeds, kept, p.half_vertices.vertex + first, too_many);
    for (uint32_t i = 0; i < n; ++i) p.half_vertices.side[first + i] = static_cast<uint8_t>(half);
    return n_before + n;
}

}  // namespace hlt

HLT_KERNEL(velo_halves_find_vertices)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint8_t kept[hlt::max_pv_seeds];

    const hlt::half_vertex_search search(p);
    const hlt::velo_beam_line beam_line(*p.velo_geometry);
    float* const seeds = p.half_vertices_scratch.seed_z + p.half_vertices.first(event);
    auto* const fitted =
        reinterpret_cast<hlt::primary_vertex*>(p.half_vertices_scratch.fitted) + p.half_vertices.first(event);
    uint32_t first = p.half_tracks.first(event), n_vertices = 0;
    bool too_many = false;
    for (uint32_t half = 0; half < hlt::n_velo_halves; ++half) {
        const uint32_t n_tracks = p.half_tracks.counts[hlt::n_velo_halves * event + half];
        const uint32_t n_found = hlt::pv_find_seeds(search, first, n_tracks, seeds);
        const uint32_t n_seeds = hlt::min_of(n_found, hlt::max_pv_seeds);
        too_many = too_many || n_found > n_seeds;
        __syncthreads();
        hlt::pv_fit_seeds(search, hlt::half_fit_tracks(p, first, n_tracks), seeds, n_seeds, beam_line, fitted);
        __syncthreads();
        hlt::pv_mark_kept(fitted, n_seeds, p.min_separation_chi2, kept);
        __syncthreads();
        // The next half overwrites what thread 0 reads only behind barriers of its search for seeds.
        if (threadIdx.x == 0)
            n_vertices = hlt::append_half_vertices(p, event, half, fitted, n_seeds, kept, n_vertices, too_many);
        first += hlt::pv_padded(n_tracks);
    }
    if (threadIdx.x == 0) {
        p.half_vertices.count[event] = n_vertices;
        if (too_many) atomicOr(&p.events.flags[event], hlt::overflow);
    }
}
