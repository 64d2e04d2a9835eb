// Momenta and masses of two particles (docs/physics/secondary-vertices.md).
#pragma once

#include "framework/device/lanes.cuh"

namespace hlt {

constexpr float electron_mass = 0.51099895f;  // MeV; Particle Data Group
constexpr float pion_mass = 139.57039f;
constexpr float kaon_mass = 493.677f;
constexpr float proton_mass = 938.27209f;
constexpr float muon_mass = 105.65838f;

/// Transverse momentum divided by the momentum along z.
__device__ float slope_of(float tx, float ty) { return sqrtf(tx * tx + ty * ty); }

/// MeV along z of a track: 1 / (|q/p| sqrt(1 + tx^2 + ty^2)).
__device__ float momentum_along_z(float qop, float tx, float ty)
{
    return 1.f / ((qop < 0.f ? -qop : qop) * sqrtf(1.f + tx * tx + ty * ty));
}

/// Squared momenta of two particles (MeV^2), their product, and 1 - cos of the angle between them, times that product.
struct momentum_pair {
    float a2, b2;
    float product;
    float opening;
};

/// 1 - cos of the angle between two directions (tx, ty, 1), times the product of their momenta: `opening` of
/// pair_of_momenta, which has the same operations. `Real`: float, or a direction in each lane of a vector.
template <typename Real>
__device__ Real opening_of(float txa, float tya, float pza, const Real& txb, const Real& tyb, const Real& pzb)
{
    const Real na2 = Real{} + (1.f + txa * txa + tya * tya), nb2 = 1.f + txb * txb + tyb * tyb;
    const Real dtx = txa - txb, dty = tya - tyb;
    const Real cz = tya * dtx - txa * dty;
    const Real product = square_root(na2 * nb2);
    const Real opening = (dtx * dtx + dty * dty + cz * cz) / (product + (1.f + txa * txb + tya * tyb));
    return opening * (pza * pzb);
}

/// Two directions (tx, ty, 1) with momenta along z. p_a p_b - p_a.p_b = |p_a x p_b|^2 / (p_a p_b + p_a.p_b).
__device__ momentum_pair pair_of_momenta(float txa, float tya, float pza, float txb, float tyb, float pzb)
{
    const float na2 = 1.f + txa * txa + tya * tya, nb2 = 1.f + txb * txb + tyb * tyb;
    const float dtx = txa - txb, dty = tya - tyb;
    const float cz = tya * dtx - txa * dty;
    const float product = sqrtf(na2 * nb2);
    const float opening = (dtx * dtx + dty * dty + cz * cz) / (product + (1.f + txa * txb + tya * tyb));
    const float scale = pza * pzb;
    return {na2 * pza * pza, nb2 * pzb * pzb, product * scale, opening * scale};
}

/// Invariant mass. Energies are not subtracted from momenta: E_a E_b - p_a p_b is
/// (m_a^2 p_b^2 + m_b^2 p_a^2 + m_a^2 m_b^2) / (E_a E_b + p_a p_b).
__device__ float mass_of(const momentum_pair& p, float ma, float mb)
{
    const float ma2 = ma * ma, mb2 = mb * mb;
    const float energies = sqrtf(p.a2 + ma2) * sqrtf(p.b2 + mb2);
    const float at_rest = (ma2 * (p.b2 + mb2) + mb2 * p.a2) / (energies + p.product);
    return sqrtf(ma2 + mb2 + 2.f * (at_rest + p.opening));
}

}  // namespace hlt
