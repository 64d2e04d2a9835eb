// The fits of merged tracks (fit_merged_tracks.cuh) with a track in each lane.
#pragma once

#include "alice/tpc/merging/fit/fit_merged_tracks.cuh"
#include "alice/tpc/merging/segments/wide_segments.h"

namespace hlt {

/// Merged tracks whose lengths are sorted, and vectors that are fitted together: a vector waits for roots and
/// divisions.
constexpr uint32_t tpc_sorted_tracks = 256, tpc_track_vectors = 4;
/// Clusters of these tracks, in 256 kB: all merged tracks are far more than the caches hold. A track has at most
/// tpc_max_listed, and twice as many if segments share clusters.
constexpr uint32_t tpc_listed_clusters = 32768, tpc_max_listed = tpc_max_segments * tpc_rows;
static_assert(2u * tpc_max_listed <= tpc_listed_clusters);

/// The clusters of some merged tracks in the order of their fits; the last byte of a cluster is its slice.
class merged_clusters {
  public:
    /// Clusters of a track: the first one of a way, and the step to the next one.
    struct way {
        uint32_t first, step;
    };
    struct track {
        way outwards, inwards;
        uint32_t n;
    };

    void clear() { n_ = 0; }
    const tpc_track_hit* hits() const { return hits_; }
    bool has_place() const { return n_ + 2u * tpc_max_listed <= tpc_listed_clusters; }

    track add(const tpc_segments& of, const uint32_t* segments, uint32_t run)
    {
        const uint32_t first = n_;
        if (run == 1u) {
            const tpc_track& only = of.tracks[segments[0]];
            const tpc_track_hit* const own = of.hits + of.first_hit[segments[0]];
            for (uint32_t i = 0; i < only.n_clusters; ++i) append(own[i], only.slice);
            return {{first, 1u}, {n_ - 1u, ~0u}, n_ - first};
        }
        uint32_t of_segments = 0;
        for (uint32_t k = 0; k < run; ++k) of_segments += of.tracks[segments[k]].n_clusters;
        append_way(of, segments, run, true);
        const uint32_t n = n_ - first;
        if (n == of_segments) return {{first, 1u}, {n_ - 1u, ~0u}, n};
        // Inwards, another segment may be the first one of a shared cluster, so the order is not the reverse one.
        append_way(of, segments, run, false);
        return {{first, 1u}, {first + n, 1u}, n};
    }

  private:
    void append(const tpc_track_hit& hit, uint32_t slice)
    {
        hits_[n_++] = {hit.place, hit.charge, hit.row, static_cast<uint8_t>(slice)};
    }
    void append_way(const tpc_segments& of, const uint32_t* segments, uint32_t run, bool outwards)
    {
        tpc_row_order order;
        order.segments = segments;
        order.n = run;
        order.start(of, outwards);
        uint32_t hit, slice;
        while (order.next(of, hit, slice)) append(of.hits[hit], slice);
    }

    tpc_track_hit hits_[tpc_listed_clusters];
    uint32_t n_ = 0;
};

/// fit_in_order for a track in each lane.
class wide_merged_fit {
  public:
    wide_state state;
    uint_wide slice, fitted, n;
    int_wide is_good;  // of the lanes with a fit
    tpc_charges charges[n_wide];

    /// A fit of some lanes; mass_square and most_charge: of each track.
    void begin(const int_wide& lanes, const uint_wide& first, const uint_wide& step, const float_wide& mass_square,
               const float_wide& most_charge, float energy_loss)
    {
        first_ = first;
        step_ = step;
        mass_square_ = mass_square;
        most_charge_ = most_charge;
        is_good = lanes;
        fitted = uint_wide{};
        const float_wide over_p2 = over_p2_of(state);
        for (uint32_t l = 0; l < n_wide; ++l) loss_[l] = energy_loss * ionisation_of(over_p2[l], mass_square[l]);
        forget(state);
    }
    template <bool counts_charges>
    __attribute__((always_inline)) void step(const tpc_filter& filter, const tpc_places& places,
                                             const tpc_track_hit* hits, float max_fit_chi2, uint32_t i)
    {
        int_wide wanted = is_good & (n > i);
        const wide_hit hit = hits_at(hits, (first_ + step_ * i) & (uint_wide)wanted);
        const int_wide changes = wanted & (hit.last_byte() != slice);
        if (bits_of(changes) != 0u) {
            change_slices(filter, bits_of(changes), hit.last_byte());
            wanted &= is_good;
        }
        const tpc_point_of<float_wide> point = points_of(places, hit);
        const float_wide dx = point.x - state.x;
        const int_wide moved = propagate_where(wanted, filter, state, point.x, mass_square_);
        lose_energy_where(moved, state, dx, loss_, mass_square_);
        const float_wide charge = wide_float(hit.charge());
        const tpc_errors_of<float_wide> errors = errors_at(filter, state, point.z, point.pad);
        const int_wide taken = moved & ~(charge_of_cm(state, charge, point.pad) > most_charge_) &
                               ~(distance2(state, errors, point.y, point.z) > max_fit_chi2);
        update_where(taken, state, errors, point.y, point.z);
        const int_wide within = is_within(filter, state.s);
        is_good &= (moved | ~wanted) & (within | ~taken);
        const int_wide counted = taken & within;
        fitted -= (uint_wide)counted;
        if constexpr (counts_charges) {
            float of_cm[n_wide];
            store_wide(of_cm, charge_of_cm(state, charge, point.pad));
            for (uint32_t bits = bits_of(counted); bits != 0u; bits &= bits - 1u)
                charges[lowest_bit(bits)].add(of_cm[lowest_bit(bits)]);
        }
    }

  private:
    void change_slices(const tpc_filter& filter, uint32_t lanes, const uint_wide& to)
    {
        for (; lanes != 0u; lanes &= lanes - 1u) {
            const uint32_t l = lowest_bit(lanes);
            tpc_state t = state_in_lane(state, l);
            if (change_slice(filter, t, slice[l], to[l]))
                slice[l] = to[l];
            else
                is_good[l] = 0;
            set_lane(state, l, t);
        }
    }

    uint_wide first_, step_;
    float_wide mass_square_, most_charge_, loss_;
};

/// Both fits of a track in each lane.
class merged_vector {
  public:
    wide_merged_fit fit;
    /// Whether the fit inwards has lanes.
    bool is_wanted;

    void place(uint32_t l, const merged_clusters::track& listed, const tpc_track& start)
    {
        set_lane(fit.state, l, state_of(start));
        fit.slice[l] = start.slice;
        fit.n[l] = listed.n;
        first_[0][l] = listed.outwards.first;
        first_[1][l] = listed.inwards.first;
        step_[0][l] = listed.outwards.step;
        step_[1][l] = listed.inwards.step;
    }
    void begin_outwards(float mass_square, float energy_loss)
    {
        for (tpc_charges& charges : fit.charges) charges.clear();
        fit.begin(int_wide{} - 1, first_[0], step_[0], in_all_lanes<float_wide>(mass_square),
                  in_all_lanes<float_wide>(tpc_any_charge), energy_loss);
    }
    /// Chooses the particles, and begins the fit inwards.
    template <typename Parameters>
    void end_outwards(const Parameters& p, const tpc_mass_squares& masses)
    {
        outermost_ = fit.state;
        outer_slice_ = fit.slice;
        fitted_outwards_ = fit.fitted;
        has_outwards_ = fit.is_good;
        for (uint32_t l = 0; l < n_wide; ++l) {
            const float mean_charge = fit.charges[l].lowest(p.kept_charges);
            ionisation_[l] = mean_charge / p.mip_charge;
            most_charge_[l] = p.max_charge * mean_charge;
            particle_[l] = 0;
            if (has_outwards_[l] != 0 && fit.charges[l].n >= p.min_charges)
                particle_[l] =
                    particle_of(masses, ionisation_[l], over_p2_of(state_in_lane(fit.state, l)), p.separation);
            mass_square_[l] = masses.of[particle_[l]];
        }
        is_wanted = bits_of(has_outwards_) != 0u;
        has_inwards_ = int_wide{};
        begin_inwards(has_outwards_, p.energy_loss);
    }
    /// Ends the fit inwards, and begins another one with clusters of any charge if lanes need it.
    bool takes_all_again(float energy_loss)
    {
        if (!is_wanted) return false;
        const int_wide is_enough = (2u * fit.fitted >= fitted_outwards_) & has_variances(fit.state);
        const int_wide again = wanted_ & ~is_enough & (most_charge_ < tpc_any_charge), ended = wanted_ & ~again;
        for (uint32_t bits = bits_of(ended); bits != 0u; bits &= bits - 1u) {
            const uint32_t l = lowest_bit(bits);
            set_lane(result_, l, state_in_lane(fit.state, l));
        }
        has_inwards_ = ended ? fit.is_good : has_inwards_;
        result_slice_ = ended ? fit.slice : result_slice_;
        result_fitted_ = ended ? fit.fitted : result_fitted_;
        is_wanted = bits_of(again) != 0u;
        if (is_wanted) {
            most_charge_ = in_all_lanes<float_wide>(tpc_any_charge);
            fit.state = outermost_;
            fit.slice = outer_slice_;
            begin_inwards(again, energy_loss);
        }
        return is_wanted;
    }
    merged_fit result(uint32_t l, const tpc_track& start) const
    {
        if (has_inwards_[l] == 0) return {state_of(start), start.slice, 0u, 0u, ionisation_[l]};
        return {state_in_lane(result_, l), result_slice_[l], result_fitted_[l], particle_[l], ionisation_[l]};
    }

  private:
    void begin_inwards(const int_wide& lanes, float energy_loss)
    {
        wanted_ = lanes;
        fit.begin(lanes, first_[1], step_[1], mass_square_, most_charge_, energy_loss);
    }

    uint_wide first_[2], step_[2];  // outwards, inwards
    wide_state outermost_, result_;
    uint_wide outer_slice_, fitted_outwards_, particle_, result_slice_, result_fitted_;
    float_wide mass_square_, most_charge_, ionisation_;
    int_wide has_outwards_, has_inwards_, wanted_;
};

}  // namespace hlt
