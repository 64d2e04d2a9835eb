// Functions of ionisation.cuh for test_merged_fit.py.
#include <cstdint>
#include <initializer_list>

#include "alice/tpc/merging/fit/ionisation.cuh"

extern "C" float lowest_of(const float* charges, uint32_t n, float share)
{
    hlt::tpc_charges sums;
    sums.clear();
    for (uint32_t i = 0; i < n; ++i) sums.add(charges[i]);
    return sums.lowest(share);
}

extern "C" uint32_t particle(const float* mass_squares, float measured, float over_p2, float separation)
{
    return hlt::particle_of({{mass_squares[0], mass_squares[1], mass_squares[2]}}, measured, over_p2, separation);
}

extern "C" float ionisation(float over_p2, float mass_square) { return hlt::ionisation_of(over_p2, mass_square); }

// charge / pT behind a step.
extern "C" float lost_momentum(float q, float s, float l, float dx, float loss, float mass_square)
{
    hlt::tpc_state t = {};
    t.q = q;
    t.s = s;
    t.l = l;
    hlt::lose_energy(t, dx, loss, mass_square);
    return t.q;
}
