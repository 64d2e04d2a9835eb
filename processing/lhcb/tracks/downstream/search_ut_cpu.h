// The search for downstream tracks on the CPU: the common kernel with UT hits in the lanes of vector registers.
//
// Hits of the last layer whose y is near that of the seed are packed, so that the field is computed for full vectors.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/tracks/downstream/search_ut.cuh"

namespace hlt {

/// Of at_slopes, the part that depends on ty alone.
struct downstream_function_at_ty {
    float first[n_bend_powers], second[n_bend_powers];
    bool odd;

    downstream_function_at_ty(const float (&table)[n_bend_powers][n_tx_powers][n_ty_powers], float ty, bool is_odd)
        : odd(is_odd)
    {
        const float ty2 = ty * ty;
        for (uint32_t k = 0; k < n_bend_powers; ++k) {
            first[k] = table[k][0][0] + ty2 * (table[k][0][1] + ty2 * table[k][0][2]);
            second[k] = table[k][1][0] + ty2 * (table[k][1][1] + ty2 * table[k][1][2]);
        }
    }

    template <typename Real>
    Real operator()(const Real& tx, const Real& kink) const
    {
        const Real tx2 = tx * tx;
        bend_polynomial_of<Real> polynomial;
        for (uint32_t k = 0; k < n_bend_powers; ++k) {
            const bool odd_power = ((k & 1u) != 0u) != odd;
            polynomial.a[k] = (first[k] + tx2 * second[k]) * (odd_power ? tx : Real{} + 1.f);
        }
        return polynomial(kink);
    }
};

/// downstream_functions for many lines of one seed.
struct downstream_functions_of_seed {
    downstream_function_at_ty z_magnet, y_slope, y_shift;

    downstream_functions_of_seed(const downstream_field& field, float ty)
        : z_magnet(field.z_magnet, ty, false), y_slope(field.y_slope, ty, true), y_shift(field.y_shift, ty, true)
    {
    }
};

/// As single_hits, with a hit in each lane.
struct hits_in_lanes {
    using real = float_wide;

    static real load(const float* from, uint32_t there)
    {
        real lanes;
        load_wide_where(lanes, from, there);
        return lanes;
    }

    template <typename Test, typename Work>
    static void for_places(uint32_t begin, uint32_t end, Test test, Work work)
    {
        for (uint32_t place = begin; place < end; place += n_wide)
            for_lanes(test(place, first_bits(end - place)), [&](uint32_t lane) { work(place + lane); });
    }

    template <typename Work>
    static void for_blocks(uint32_t begin, uint32_t end, Work work)
    {
        for (uint32_t place = begin; place < end; place += n_wide) work(place, first_bits(end - place));
    }

    // A group of packed hits.
    real x, z, y_begin, y_end;
    const uint32_t* places;

    uint32_t place_of(uint32_t lane) const { return places[lane]; }

    template <typename Test, typename Work>
    static void for_groups(const downstream_ut_hits& hits, uint32_t begin, uint32_t end, Test test, Work work)
    {
        constexpr uint32_t room = 2u * n_wide;
        uint32_t places[room];
        float columns[4][room];
        const float* const from[4] = {hits.ordered_x, hits.ordered_z, hits.ordered_y_begin, hits.ordered_y_end};
        uint32_t n = 0;
        const auto work_on = [&](uint32_t n_lanes) {
            hits_in_lanes group;
            load_wide(group.x, columns[0]);
            load_wide(group.z, columns[1]);
            load_wide(group.y_begin, columns[2]);
            load_wide(group.y_end, columns[3]);
            group.places = places;
            work(group, first_bits(n_lanes));
        };
        for (uint32_t place = begin; place < end; place += n_wide) {
            const uint32_t there = first_bits(end - place), chosen = test(place, there);
            if (chosen == 0u) continue;
            store_packed_wide(places + n, wide_numbers + place, chosen);
            for (uint32_t k = 0; k < 4u; ++k) store_packed_wide(columns[k] + n, load(from[k] + place, there), chosen);
            n += static_cast<uint32_t>(__popc(chosen));
            if (n < n_wide) continue;
            work_on(n_wide);
            n -= n_wide;
            std::memcpy(places, places + n_wide, sizeof places / 2u);
            for (auto& column : columns) std::memcpy(column, column + n_wide, sizeof column / 2u);
        }
        if (n != 0u) work_on(n);
    }

    static uint32_t bits(const int_wide& comparison) { return bits_of(comparison); }

    template <typename Work>
    static void for_lanes(uint32_t chosen, Work work)
    {
        for (; chosen != 0u; chosen &= chosen - 1u) work(lowest_bit(chosen));
    }

    struct values {
        float of_lanes[n_wide];

        explicit values(const real& lanes) { store_wide(of_lanes, lanes); }
        float operator[](uint32_t lane) const { return of_lanes[lane]; }
    };
};

}  // namespace hlt

HLT_CPU_FORM(downstream_search_ut)
{
    if (!hlt::compares_eight_lanes) return downstream_search_ut(p, dim3{event, 1, 1});
    hlt::search_downstream<hlt::hits_in_lanes, hlt::downstream_functions_of_seed>(p, event);
}
