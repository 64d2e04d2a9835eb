// The charge that a track leaves in each cm, and the particle that this charge fits.
//
// The mean of the lowest share of the charges per cm of a track (truncated mean) measures its ionisation: the tail of
// large charges would dominate a plain mean. Relative to a minimum ionising particle it is (1 / beta^2)^(5/6), so at a
// given momentum each mass has its own band. Charges are summed in bins of an eighth of an octave, so that a thread
// needs no list of them.
#pragma once

#include "alice/tpc/tracks/track_model.cuh"
#include "framework/device/math.cuh"

namespace hlt {

/// Sums of the charges per cm of a track, in ADC counts: bins of an eighth of an octave from 16 to 1024; the first and
/// the last one also have what lies beyond.
struct tpc_charges {
    static constexpr uint32_t n_bins = 48, of_first = 0x418u;  // the upper 12 bits of 16.f
    float sum[n_bins];
    uint16_t count[n_bins];
    uint32_t n;

    __device__ void clear()
    {
        n = 0;
        for (uint32_t i = 0; i < n_bins; ++i) {
            sum[i] = 0.f;
            count[i] = 0;
        }
    }
    /// `charge`: not negative.
    __device__ void add(float charge)
    {
        const uint32_t upper = __float_as_uint(charge) >> 20;
        const uint32_t bin = upper < of_first ? 0u : min_of(upper - of_first, n_bins - 1u);
        sum[bin] += charge;
        ++count[bin];
        ++n;
    }
    /// The mean of the lowest share of the charges; 0 without charges, or for a share of 0. Of the last bin it takes a
    /// part at its mean.
    __device__ float lowest(float share) const
    {
        const float wanted = share * static_cast<float>(n);
        float taken = 0.f, total = 0.f;
        for (uint32_t i = 0; i < n_bins && taken < wanted; ++i) {
            const float of_bin = static_cast<float>(count[i]), left = wanted - taken;
            total += of_bin > left ? sum[i] * (left / of_bin) : sum[i];
            taken += of_bin;
        }
        return wanted > 0.f ? total / wanted : 0.f;
    }
};

/// Charge per cm of a cluster on a track.
template <typename Number>
__device__ Number charge_of_cm(const tpc_state_of<Number>& t, const Number& charge, const Number& pad)
{
    return charge * square_root((1.f - t.s * t.s) / (1.f + t.l * t.l)) / pad;
}

template <typename Number>
__device__ Number over_p2_of(const tpc_state_of<Number>& t)
{
    return t.q * t.q / (1.f + t.l * t.l);
}

/// Ionisation relative to a minimum ionising particle: beta^(-5/3), with 1 / beta^2 = 1 + (mass / p)^2.
__device__ float ionisation_of(float over_p2, float mass_square)
{
    return 1.f / exp_negative(-0.83333333f * logarithm(1.f + mass_square * over_p2));
}

/// Particles by mass; their numbers are those of tpc_merged_tracks.particle.
constexpr uint32_t tpc_particles = 3;
struct tpc_mass_squares {
    float of[tpc_particles];  // (GeV/c2)^2, upwards
};

/// The particle whose band holds the measured ionisation. Bands of neighbouring masses meet at the geometric mean of
/// their expected values. Where these differ by less than the factor `separation`, the lighter one is taken.
__device__ uint32_t particle_of(const tpc_mass_squares& masses, float measured, float over_p2, float separation)
{
    uint32_t found = 0;
    float lighter = ionisation_of(over_p2, masses.of[0]);
    for (uint32_t i = 1; i < tpc_particles; ++i) {
        const float expected = ionisation_of(over_p2, masses.of[i]);
        if (expected > separation * lighter && measured * measured > expected * lighter) found = i;
        lighter = expected;
    }
    return found;
}

/// No track loses more than this share of its momentum in one step: it would have stopped.
constexpr float tpc_most_loss = 0.1f;

/// The change of q over a step of dx in the gas, before the state or behind it: outwards the momentum falls. loss: GeV
/// per cm. The change of the covariance is neglected. Only tracks of `wanted` change.
template <typename Number, typename Tracks>
__device__ void lose_energy_where(const Tracks& wanted, tpc_state_of<Number>& t, const Number& dx, const Number& loss,
                                  const Number& mass_square)
{
    const Number over_p2 = over_p2_of(t), most = in_all_lanes<Number>(tpc_most_loss);
    const Number way = dx * square_root((1.f + t.l * t.l) / (1.f - t.s * t.s));
    const Number share = loss * way * square_root(over_p2 * (1.f + mass_square * over_p2));
    const Number bounded = share > most ? most : (share < -most ? -most : share);
    t.q = wanted ? t.q + t.q * bounded : t.q;
}

__device__ void lose_energy(tpc_state& t, float dx, float loss, float mass_square)
{
    lose_energy_where(true, t, dx, loss, mass_square);
}

}  // namespace hlt
