// The parameters of merged tracks.
//
// In:  merged tracks with their segments, clusters of the segments. Out: tpc_merged_tracks.track, ionisation and
// particle. The fit takes the segments of the first way through the TPC, in the order of rows: outwards from the
// parameters of the innermost segment, then, as second iteration, inwards from the result. Both start with standard
// deviations ten times as wide. The first one scatters and loses energy as a pion. Its charges and its momentum choose
// the particle of the second one, which leaves out clusters with more than max_charge times the mean charge, unless
// fewer than half of those of the first one are left. A fit that turns too far leaves the parameters of the innermost
// segment, n_fitted = 0 and a pion. Blocks of an event share its merged tracks; threads stride over them. Bounds: those
// of the segments.
#pragma once

#include "alice/tpc/merging/fit/generated/tpc_fit_merged_tracks.h"
#include "alice/tpc/merging/fit/ionisation.cuh"
#include "alice/tpc/merging/segments/segment.cuh"

namespace hlt {

/// Segments of an event with their clusters.
struct tpc_segments {
    const tpc_track* tracks;
    const uint32_t *first_hit, *clusters;
    const tpc_track_hit* hits;
    tpc_places places;

    __device__ uint32_t cluster(uint32_t segment, uint32_t i) const { return clusters[first_hit[segment] + i]; }
    __device__ uint32_t row(uint32_t segment, uint32_t i) const { return hits[first_hit[segment] + i].row; }
};

/// Clusters of some segments, row by row outwards or inwards; of equal rows those of the segment that is first in this
/// direction. A cluster that several segments share comes once.
struct tpc_row_order {
    static constexpr uint8_t no_row = 255;  // of a segment without clusters that are left
    const uint32_t* segments;
    uint32_t n;
    bool outwards;
    uint8_t taken[tpc_max_segments], row[tpc_max_segments];  // clusters taken, and the row of the next one

    __device__ void start(const tpc_segments& of, bool to_outside)
    {
        outwards = to_outside;
        for (uint32_t i = 0; i < n; ++i) {
            taken[i] = 0;
            row[i] = static_cast<uint8_t>(of.row(segments[i], outwards ? 0u : of.tracks[segments[i]].n_clusters - 1u));
        }
    }
    /// The place of the next cluster of a segment among those of the tracks.
    __device__ uint32_t place(const tpc_segments& of, uint32_t i) const
    {
        const uint32_t segment = segments[i], at = taken[i];
        return of.first_hit[segment] + (outwards ? at : of.tracks[segment].n_clusters - 1u - at);
    }
    __device__ void advance(const tpc_segments& of, uint32_t i)
    {
        const bool is_last = ++taken[i] == of.tracks[segments[i]].n_clusters;
        row[i] = is_last ? no_row : static_cast<uint8_t>(of.hits[place(of, i)].row);
    }
    /// The place of the next cluster among those of the tracks, and the slice in which it is; false at the end.
    __device__ bool next(const tpc_segments& of, uint32_t& hit, uint32_t& slice)
    {
        uint32_t found = n;
        for (uint32_t k = 0; k < n; ++k) {
            const uint32_t i = outwards ? k : n - 1u - k;
            if (row[i] == no_row) continue;
            if (found == n || (outwards ? row[i] < row[found] : row[i] > row[found])) found = i;
        }
        if (found == n) return false;
        hit = place(of, found);
        slice = of.tracks[segments[found]].slice;
        const uint8_t of_row = row[found];
        const uint32_t cluster = of.clusters[hit];
        for (uint32_t i = 0; i < n; ++i)
            if (row[i] == of_row && of.clusters[place(of, i)] == cluster) advance(of, i);
        return true;
    }
};
static_assert(tpc_rows <= tpc_row_order::no_row);

/// More than the charge of any cluster per cm.
constexpr float tpc_any_charge = 1e30f;

/// Fit from a state in a slice through all clusters; false if the track turns too far. energy_loss: GeV per cm of a
/// minimum ionising particle. most_charge: per cm; a cluster with more is left out, since charges of two particles
/// overlap there, and its place lies between both. The charges are those of the clusters that the fit takes.
__device__ bool fit_in_order(const tpc_filter& filter, const tpc_segments& of, tpc_row_order& order, bool outwards,
                             float max_fit_chi2, float energy_loss, float most_charge, tpc_state& t, uint32_t& slice,
                             uint32_t& fitted, tpc_charges& charges)
{
    const float loss = energy_loss * ionisation_of(over_p2_of(t), filter.mass_square);
    forget(t);
    order.start(of, outwards);
    charges.clear();
    fitted = 0;
    uint32_t hit, in;
    while (order.next(of, hit, in)) {
        if (in != slice && !change_slice(filter, t, slice, in)) return false;
        slice = in;
        const tpc_point at = of.places.point(of.hits[hit]);
        const float from_x = t.x;
        if (!propagate(filter, t, at.x)) return false;
        lose_energy(t, at.x - from_x, loss, filter.mass_square);
        const float charge = static_cast<float>(of.hits[hit].charge);
        if (charge_of_cm(t, charge, at.pad) > most_charge) continue;
        const tpc_errors errors = errors_at(filter, t, at.z, at.pad);
        if (distance2(t, errors, at.y, at.z) > max_fit_chi2) continue;
        update(t, errors, at.y, at.z);
        if (!is_within(filter, t.s)) return false;
        charges.add(charge_of_cm(t, charge, at.pad));
        ++fitted;
    }
    return true;
}

/// Clusters of a segment that none of the segments before it has.
__device__ uint32_t new_clusters(const tpc_segments& of, const uint32_t* segments, uint32_t k)
{
    constexpr uint32_t words = (tpc_rows + 31u) / 32u;
    uint32_t shared[words];
    for (uint32_t i = 0; i < words; ++i) shared[i] = 0;
    const tpc_track& own = of.tracks[segments[k]];
    for (uint32_t m = 0; m < k; ++m) {
        const tpc_track& other = of.tracks[segments[m]];
        if (other.slice != own.slice) continue;
        for (uint32_t i = 0, j = 0; i < own.n_clusters && j < other.n_clusters;) {
            const uint32_t a = of.row(segments[k], i), b = of.row(segments[m], j);
            if (a == b && of.cluster(segments[k], i) == of.cluster(segments[m], j)) shared[a / 32u] |= 1u << a % 32u;
            if (a <= b) ++i;
            if (b <= a) ++j;
        }
    }
    uint32_t n = own.n_clusters;
    for (uint32_t i = 0; i < words; ++i) n -= static_cast<uint32_t>(__popc(shared[i]));
    return n;
}

/// The segment in which the fit outwards begins: the one with the innermost row of a run.
__device__ const tpc_track& innermost_of(const tpc_segments& of, const uint32_t* segments, uint32_t run)
{
    uint32_t innermost = 0;
    for (uint32_t k = 1; k < run; ++k)
        if (of.row(segments[k], 0) < of.row(segments[innermost], 0)) innermost = k;
    return of.tracks[segments[innermost]];
}

/// The result of both fits.
struct merged_fit {
    tpc_state t;
    uint32_t slice, fitted, particle;
    float ionisation;
};

template <typename Parameters>
__device__ tpc_segments segments_of(const Parameters& p, uint32_t event)
{
    const uint32_t first = p.tpc_tracks.first(event), first_hit = p.tpc_track_clusters.first(event);
    return {p.tpc_tracks.track + first,
            p.tpc_tracks.first_hit + first,
            p.tpc_track_clusters.cluster + first_hit,
            p.tpc_track_clusters.hit + first_hit,
            {p.tpc.geometry, p.tpc.geometry + tpc_rows + tpc_numbers_after_rows}};
}

template <typename Parameters>
__device__ tpc_mass_squares mass_squares_of(const Parameters& p, const tpc_filter& as_pion)
{
    return {{as_pion.mass_square, p.kaon_mass * p.kaon_mass, p.proton_mass * p.proton_mass}};
}

template <typename Parameters>
__device__ void write_merged_track(const Parameters& p, const tpc_segments& of, const uint32_t* segments,
                                   uint32_t merged, const merged_fit& fit)
{
    const uint32_t size = p.tpc_merged_tracks.size[merged];
    p.tpc_merged_tracks.particle[merged] = static_cast<uint8_t>(fit.particle);
    p.tpc_merged_tracks.ionisation[merged] = fit.ionisation;
    uint32_t n_clusters = 0, charge = 0;
    for (uint32_t k = 0; k < size; ++k) {
        n_clusters += new_clusters(of, segments, k);
        charge += of.tracks[segments[k]].charge;
    }
    const tpc_state& t = fit.t;
    const float side = fit.slice < tpc_slices_of_side ? 1.f : -1.f;
    p.tpc_merged_tracks.track[merged] = {t.x,
                                         t.y,
                                         side * t.z,
                                         t.s,
                                         side * t.l,
                                         t.q,
                                         t.yy,
                                         t.zz,
                                         t.sy,
                                         t.ss,
                                         t.lz,
                                         t.ll,
                                         t.qy,
                                         t.qs,
                                         t.qq,
                                         t.chi2,
                                         charge,
                                         static_cast<uint16_t>(fit.slice),
                                         static_cast<uint16_t>(n_clusters),
                                         static_cast<uint16_t>(fit.fitted),
                                         static_cast<uint16_t>(size)};
}

}  // namespace hlt

HLT_KERNEL(tpc_fit_merged_tracks)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t event = p.event_of(blockIdx.x), part = blockIdx.x - event * hlt::tpc_merging_parts;
    const uint32_t first_merged = p.tpc_merged_tracks.first(event), n = p.tpc_merged_tracks.count[event];
    const hlt::tpc_segments of = hlt::segments_of(p, event);
    const hlt::tpc_filter as_pion = hlt::filter_of(p, p.tpc.geometry + hlt::tpc_rows);
    const hlt::tpc_mass_squares masses = hlt::mass_squares_of(p, as_pion);
    for (uint32_t i = part * blockDim.x + threadIdx.x; i < n; i += hlt::tpc_merging_parts * blockDim.x) {
        const uint32_t merged = first_merged + i;
        const uint32_t* const segments = p.tpc_merged_segments.segment + p.tpc_merged_segments.first(event) +
                                         p.tpc_merged_tracks.first_segment[merged];
        hlt::tpc_row_order order;
        order.segments = segments;
        order.n = p.tpc_merged_tracks.run[merged];
        const hlt::tpc_track& start = hlt::innermost_of(of, segments, order.n);
        hlt::tpc_state t = hlt::state_of(start);
        uint32_t slice = start.slice, fitted = 0, particle = 0;
        hlt::tpc_charges charges;
        bool is_fitted = hlt::fit_in_order(as_pion, of, order, true, p.max_fit_chi2, p.energy_loss, hlt::tpc_any_charge,
                                           t, slice, fitted, charges);
        const float mean_charge = charges.lowest(p.kept_charges), ionisation = mean_charge / p.mip_charge;
        if (is_fitted) {
            if (charges.n >= p.min_charges)
                particle = hlt::particle_of(masses, ionisation, hlt::over_p2_of(t), p.separation);
            hlt::tpc_filter filter = as_pion;
            filter.mass_square = masses.of[particle];
            const hlt::tpc_state outermost = t;
            const uint32_t outer_slice = slice, fitted_outwards = fitted;
            float most_charge = p.max_charge * mean_charge;
            while (true) {
                is_fitted = hlt::fit_in_order(filter, of, order, false, p.max_fit_chi2, p.energy_loss, most_charge, t,
                                              slice, fitted, charges);
                if (2u * fitted >= fitted_outwards && hlt::has_variances(t)) break;
                if (!(most_charge < hlt::tpc_any_charge)) break;
                most_charge = hlt::tpc_any_charge;
                t = outermost;
                slice = outer_slice;
            }
        }
        if (!is_fitted) {
            t = hlt::state_of(start);
            slice = start.slice;
            fitted = particle = 0;
        }
        hlt::write_merged_track(p, of, segments, merged, {t, slice, fitted, particle, ionisation});
    }
}
