// Chi2 of the nearest muon hits of each muon, with the correlations between the stations from multiple scattering
// (docs/physics/muon.md).
//
//     chi2 = (r_x^T C_x^-1 r_x + r_y^T C_y^-1 r_y) / n, r = hits minus straight line,
//     C_ij = delta_ij d_i^2 / 3 + sum over the absorbers k before both hits of
//            theta_k^2 ((z_i - z_k) (z_j - z_k) + L_k^2 / 12)
// with the half sizes d of the hits, and of each absorber the middle z, the length L and the scattering angle theta of
// a muon after its energy loss up to there. A track whose chi2 is above max_chi2 is no longer a muon.
// In:  long_tracks.{qop, x, y, tx, ty, muon_hits, count}, muon_hits.{x, y, z, dx, dy}.
// Out: long_tracks.muon_chi2, 0 for a track that was no muon; long_tracks.is_muon.
// One block per event, one thread per track.
// Bounds: tracks as long_tracks.count; hits were found in the event by is_muon.
#pragma once

#include "framework/device/platform.cuh"
#include "lhcb/muon/generated/muon_correlated_chi2.h"
#include "lhcb/muon/generated/muon_types.h"
#include "lhcb/muon/track.cuh"
#include "lhcb/tracks/long/generated/long_types.h"

namespace hlt {

/// An absorber that scatters a muon. z: its middle; theta times p, in rad MeV, from the thickness in radiation lengths;
/// energy loss up to the middle, in MeV.
struct muon_absorber {
    float z, length, theta_p, loss;
};
constexpr uint32_t n_muon_absorbers = 4;
constexpr float least_muon_part = 0.3f;  // of the momentum remains behind the absorbers

__device__ muon_absorber muon_absorber_of(uint32_t i)
{
    constexpr float filter_theta_p = 105.05f;  // 800 mm of iron, 45.5 radiation lengths
    constexpr float filter_z = 15870.f, filter_pitch = 1200.f, filter_loss = 1150.f, calorimeter_loss = 2400.f;
    // ECAL and HCAL, 25 and 53 radiation lengths.
    if (i == 0u) return {13850.f, 2300.f, 140.f, 0.5f * calorimeter_loss};
    const float n = static_cast<float>(i - 1u);
    return {filter_z + n * filter_pitch, 800.f, filter_theta_p, calorimeter_loss + (n + 0.5f) * filter_loss};
}

using muon_matrix = float[n_muon_stations][n_muon_stations];  // the lower half is used

/// Covariances (mm^2) of positions at the z of the hits, from scattering in the absorbers.
__device__ void muon_scattering(float momentum, const float (&z)[n_muon_stations], muon_matrix& c)
{
    for (uint32_t i = 0; i < n_muon_stations; ++i)
        for (uint32_t j = 0; j <= i; ++j) c[i][j] = 0.f;
#pragma unroll 1  // registers
    for (uint32_t k = 0; k < n_muon_absorbers; ++k) {
        const muon_absorber absorber = muon_absorber_of(k);
        const float theta = absorber.theta_p / max_of(momentum - absorber.loss, least_muon_part * momentum);
        const float length2 = absorber.length * absorber.length / 12.f;
        for (uint32_t i = 0; i < n_muon_stations; ++i) {
            for (uint32_t j = 0; j <= i; ++j) {
                const float di = z[i] - absorber.z, dj = z[j] - absorber.z;
                c[i][j] += di > 0.f && dj > 0.f ? theta * theta * (di * dj + length2) : 0.f;
            }
        }
    }
}

/// r^T C^-1 r of the present stations, by Cholesky decomposition; r is overwritten.
__device__ float muon_quadratic_form(const muon_matrix& scattering, const float (&variance)[n_muon_stations],
                                     float (&r)[n_muon_stations])
{
    muon_matrix c;
    float sum = 0.f;
    for (uint32_t i = 0; i < n_muon_stations; ++i) {
        const bool there = variance[i] > 0.f;
        for (uint32_t j = 0; j < i; ++j) {
            float value = there && variance[j] > 0.f ? scattering[i][j] : 0.f;
            for (uint32_t k = 0; k < j; ++k) value -= c[i][k] * c[j][k];
            c[i][j] = value / c[j][j];
        }
        float square = there ? scattering[i][i] + variance[i] : 1.f, left = there ? r[i] : 0.f;
        for (uint32_t k = 0; k < i; ++k) {
            square -= c[i][k] * c[i][k];
            left -= c[i][k] * r[k];
        }
        c[i][i] = sqrtf(square);
        r[i] = left / c[i][i];
        sum += r[i] * r[i];
    }
    return sum;
}

}  // namespace hlt

HLT_KERNEL(muon_correlated_chi2)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;

    const uint32_t first = p.long_tracks.first(event);
    const uint32_t n_tracks = p.long_tracks.count[event];
    const uint32_t first_hit = p.muon_hits.first(event);

    for (uint32_t track = first + threadIdx.x; track < first + n_tracks; track += blockDim.x) {
        p.long_tracks.muon_chi2[track] = 0.f;
        if (p.long_tracks.is_muon[track] == 0u) continue;
        const float momentum = hlt::muon_momentum(p.long_tracks.qop[track]);

        float z[hlt::n_muon_stations];
        uint32_t hit[hlt::n_muon_stations];
        uint32_t n = 0;
        for (uint32_t station = 0; station < hlt::n_muon_stations; ++station) {
            hit[station] = p.long_tracks.muon_hits[track * hlt::n_muon_stations + station];
            z[station] = hit[station] == hlt::no_muon_hit ? 0.f : p.muon_hits.z[first_hit + hit[station]];
            n += hit[station] == hlt::no_muon_hit ? 0u : 1u;
        }
        hlt::muon_matrix scattering;
        hlt::muon_scattering(momentum, z, scattering);
        float sum = 0.f;
        for (uint32_t axis = 0; axis < 2u; ++axis) {
            const float* const middle = (axis == 0u ? p.muon_hits.x : p.muon_hits.y) + first_hit;
            const float* const half_size = (axis == 0u ? p.muon_hits.dx : p.muon_hits.dy) + first_hit;
            const float at_end = (axis == 0u ? p.long_tracks.x : p.long_tracks.y)[track];
            const float slope = (axis == 0u ? p.long_tracks.tx : p.long_tracks.ty)[track];
            float residual[hlt::n_muon_stations], variance[hlt::n_muon_stations];
            for (uint32_t station = 0; station < hlt::n_muon_stations; ++station) {
                residual[station] = variance[station] = 0.f;
                if (hit[station] == hlt::no_muon_hit) continue;
                residual[station] = middle[hit[station]] - (at_end + (z[station] - hlt::z_end_scifi) * slope);
                variance[station] = half_size[hit[station]] * half_size[hit[station]] / 3.f;
            }
            sum += hlt::muon_quadratic_form(scattering, variance, residual);
        }
        const float chi2 = sum / static_cast<float>(n);
        p.long_tracks.muon_chi2[track] = chi2;
        if (!(chi2 <= p.max_chi2)) p.long_tracks.is_muon[track] = 0;
    }
}
