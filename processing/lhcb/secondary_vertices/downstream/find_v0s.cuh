// Vertices of two downstream tracks of opposite charges, with momenta and masses (docs/physics/downstream-v0s.md).
//
// The field in front of the UT bends both tracks in x, y is straight. z of the vertex minimises the chi2 of the
// distances in x and y: Gauss-Newton steps from the closest approach of the tangents in the UT, with errors at the z of
// the step. All numbers use the slopes at the vertex. Every cut is written so that a NaN fails it. Pairs that are far
// from each other in y at every z of a vertex are not fitted.
// In:  downstream_tracks, pvs, v0_field. Out: downstream_v0s, ascending by the first, then by the second track;
// events.flags.
// One block per event; threads stride over the pairs (a, b) of n tracks as numbers a n + b; a prefix sum gives the
// vertices their places.
// Bounds: tracks as downstream_tracks.count, vertices as pvs.count; max_downstream_v0s; an event with more is flagged,
// and the first ones are kept.
#pragma once

#include "framework/device/math.cuh"
#include "framework/device/raw_banks.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/secondary_vertices/downstream/generated/downstream_find_v0s.h"
#include "lhcb/secondary_vertices/downstream/generated/downstream_v0_types.h"
#include "lhcb/secondary_vertices/downstream/generated/v0_field_types.h"
#include "lhcb/secondary_vertices/flight_origin.cuh"
#include "lhcb/secondary_vertices/kinematics.cuh"
#include "lhcb/secondary_vertices/vertex_fit.cuh"
#include "lhcb/tracks/downstream/generated/downstream_field_types.h"
#include "lhcb/tracks/downstream/generated/downstream_types.h"

namespace hlt {

constexpr uint32_t max_v0_steps = 8;
constexpr float last_v0_step = 0.01f;  // mm: a shorter step is the last one
// From the middle of the SciFi, where the y of a seed is known best, to the UT, mm.
constexpr float scifi_to_ut = 5878.f;
// Errors of true tracks in the UT: of x and y in mm, of both slopes, and of slopes times momentum in MeV.
constexpr float v0_x_error = 0.1f, v0_y_error = 0.6f;
constexpr float v0_slope_error = 2e-4f, v0_scattering = 3.f;

/// The line of a downstream track in y, in front of the UT: mm, slope and 1/MeV at z_downstream_ut.
struct v0_track_in_y {
    float y, ty, qop;

    template <typename Parameters>
    __device__ v0_track_in_y(const Parameters& p, uint32_t track)
        : y(p.downstream_tracks.y[track]),
          // The y of the UT and that of the seed in the SciFi give a better slope than the SciFi alone.
          ty(p.downstream_tracks.ty[track] - p.downstream_tracks.y_distance[track] / scifi_to_ut),
          qop(p.downstream_tracks.qop[track])
    {
    }

    __device__ float y_at(float dz) const { return y + dz * ty; }

    /// Variance of each slope.
    __device__ float slope_variance() const
    {
        return v0_slope_error * v0_slope_error + v0_scattering * v0_scattering * qop * qop;
    }
};

/// A downstream track in front of the UT, in x too.
struct v0_track : v0_track_in_y {
    float x, tx;
    float bend[n_bend_terms];

    template <typename Parameters>
    __device__ v0_track(const Parameters& p, uint32_t track, const v0_track_in_y& in_y)
        : v0_track_in_y(in_y), x(p.downstream_tracks.x[track]), tx(p.downstream_tracks.tx[track])
    {
        const float x_over_z = x / z_downstream_ut, y_over_z = y / z_downstream_ut;
        for (uint32_t k = 0; k < n_bend_terms; ++k) {
            const float (&of)[3] = p.v0_field->bend[k];
            bend[k] = qop * (of[0] + of[1] * x_over_z * x_over_z + of[2] * y_over_z * y_over_z);
        }
    }

    __device__ float x_at(float dz) const
    {
        float sum = bend[n_bend_terms - 1u];
        for (uint32_t k = n_bend_terms - 1u; k-- > 0u;) sum = sum * dz + bend[k];
        return x + dz * (tx + dz * sum);
    }

    __device__ float tx_at(float dz) const
    {
        float sum = static_cast<float>(n_bend_terms + 1u) * bend[n_bend_terms - 1u];
        for (uint32_t k = n_bend_terms - 1u; k-- > 0u;) sum = sum * dz + static_cast<float>(k + 2u) * bend[k];
        return tx + dz * sum;
    }
};

/// A line at a z: mm and slopes.
struct v0_tangent {
    float x, y, z, tx, ty;
};

__device__ v0_tangent tangent_of(const v0_track& track, float dz)
{
    return {track.x_at(dz), track.y_at(dz), z_downstream_ut + dz, track.tx_at(dz), track.ty};
}

/// Variance of the distance of two tracks in y. `slopes`: the sum of their variances of a slope.
__device__ float v0_variance_in_y(float slopes, float dz) { return 2.f * v0_y_error * v0_y_error + slopes * dz * dz; }

/// False if two tracks have a chi2 above max_chi2 at every z from min_z to max_z, by their distance in y alone. The
/// distance is a line in z: without a change of sign it is smallest at one of the ends. The variance is that at min_z,
/// the largest one.
__device__ bool may_meet_in_y(const v0_track_in_y& a, const v0_track_in_y& b, float min_z, float max_z, float max_chi2)
{
    const float from = min_z - z_downstream_ut, to = max_z - z_downstream_ut;
    const float at_min = a.y_at(from) - b.y_at(from), at_max = a.y_at(to) - b.y_at(to);
    const float nearest2 = min_of(at_min * at_min, at_max * at_max);
    return at_min * at_max < 0.f ||
           nearest2 < max_chi2 * v0_variance_in_y(a.slope_variance() + b.slope_variance(), from);
}

/// The vertex of two tracks; its errors are left out.
__device__ vertex_of_two fit_downstream_v0(const v0_track& a, const v0_track& b)
{
    vertex_of_two vertex{};
    float z;
    closest_approach(tangent_of(a, 0.f), tangent_of(b, 0.f), z, vertex.doca);
    float dz = z - z_downstream_ut;
    const float slopes = a.slope_variance() + b.slope_variance();
    float dx = 0.f, dy = 0.f, hx = 0.f, hy = 0.f;
    for (uint32_t step = 0; step < max_v0_steps; ++step) {
        hx = 1.f / (2.f * v0_x_error * v0_x_error + slopes * dz * dz);
        hy = 1.f / v0_variance_in_y(slopes, dz);
        dx = a.x_at(dz) - b.x_at(dz);
        dy = a.y_at(dz) - b.y_at(dz);
        const float dtx = a.tx_at(dz) - b.tx_at(dz), dty = a.ty - b.ty;
        const float change = (hx * dtx * dx + hy * dty * dy) / (hx * dtx * dtx + hy * dty * dty);
        dz -= change;
        if (!(change * change >= last_v0_step * last_v0_step)) break;
    }
    const v0_tangent of_a = tangent_of(a, dz), of_b = tangent_of(b, dz);
    dx = of_a.x - of_b.x;
    dy = of_a.y - of_b.y;
    vertex.chi2 = hx * dx * dx + hy * dy * dy;
    closest_approach(of_a, of_b, z, vertex.doca);
    const float weight = b.slope_variance() / slopes;  // of track a
    vertex.x = of_b.x + weight * dx;
    vertex.y = of_b.y + weight * dy;
    vertex.z = z_downstream_ut + dz;
    vertex.txa = of_a.tx;
    vertex.txb = of_b.tx;
    return vertex;
}

/// A pair with its vertex, and momentum along z of both tracks in MeV.
struct downstream_v0 {
    vertex_of_two vertex;
    momentum_pair momenta;
    flight_origin origin;
    float px, py, pz, min_pt;
    float m_pipi, m_ppi, m_ee;
    uint32_t kind;
};

/// Parameters: those of the kernel. Tracks a and b of the event; `kind` is 0 for pairs that are no candidate.
template <typename Parameters>
__device__ downstream_v0 downstream_v0_of(const Parameters& p, const v0_track& a, const v0_track& b,
                                          const primary_vertex* pvs, uint32_t n_pvs)
{
    downstream_v0 found{};
    const vertex_of_two vertex = found.vertex = fit_downstream_v0(a, b);
    if (!(vertex.z > p.min_z && vertex.z < p.max_z && vertex.doca < p.max_doca && vertex.chi2 < p.max_chi2))
        return found;
    const float pza = momentum_along_z(a.qop, vertex.txa, a.ty), pzb = momentum_along_z(b.qop, vertex.txb, b.ty);
    found.momenta = pair_of_momenta(vertex.txa, a.ty, pza, vertex.txb, b.ty, pzb);
    found.px = pza * vertex.txa + pzb * vertex.txb;
    found.py = pza * a.ty + pzb * b.ty;
    found.pz = pza + pzb;
    found.min_pt = min_of(pza * slope_of(vertex.txa, a.ty), pzb * slope_of(vertex.txb, b.ty));
    found.origin = origin_of(pvs, n_pvs, vertex, found.px / found.pz, found.py / found.pz);
    if (!(found.origin.pv != no_pv && found.origin.ip < p.max_ip)) return found;
    const bool a_is_proton = found.momenta.a2 > found.momenta.b2;
    found.m_pipi = mass_of(found.momenta, pion_mass, pion_mass);
    found.m_ppi = mass_of(found.momenta, a_is_proton ? proton_mass : pion_mass, a_is_proton ? pion_mass : proton_mass);
    found.m_ee = mass_of(found.momenta, electron_mass, electron_mass);
    if (found.m_pipi > p.ks_min_mass && found.m_pipi < p.ks_max_mass) found.kind |= downstream_ks;
    if (found.m_ppi < p.lambda_max_mass) found.kind |= downstream_lambda;
    if (found.m_ee < p.photon_max_mass) found.kind |= downstream_photon;
    return found;
}

}  // namespace hlt

HLT_KERNEL(downstream_find_v0s)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t first_track = p.downstream_tracks.first(event), n_tracks = p.downstream_tracks.count[event];
    const uint32_t first_v0 = p.downstream_v0s.first(event);
    const uint32_t n_pvs = p.pvs.count[event];
    const hlt::primary_vertex* const pvs = p.pvs.vertex + p.pvs.first(event);
    const float* const qop = p.downstream_tracks.qop + first_track;

    uint32_t n = 0;
    for (uint32_t base = 0; base < n_tracks * n_tracks; base += blockDim.x) {
        const uint32_t pair = base + threadIdx.x, a = pair / n_tracks, b = pair - a * n_tracks;
        hlt::downstream_v0 found{};
        if (a < b && a < n_tracks && (qop[a] > 0.f) != (qop[b] > 0.f)) {
            const uint32_t of_a = first_track + a, of_b = first_track + b;
            const hlt::v0_track_in_y a_in_y(p, of_a), b_in_y(p, of_b);
            if (hlt::may_meet_in_y(a_in_y, b_in_y, p.min_z, p.max_z, p.max_chi2))
                found = hlt::downstream_v0_of(p, hlt::v0_track(p, of_a, a_in_y), hlt::v0_track(p, of_b, b_in_y), pvs,
                                              n_pvs);
        }
        uint32_t total;
        const uint32_t place = n + hlt::block_exclusive_count(found.kind != 0u, scratch, total);
        n += total;
        if (found.kind == 0u || place >= hlt::max_downstream_v0s) continue;

        const uint32_t v0 = first_v0 + place;
        p.downstream_v0s.tracks[2u * v0] = static_cast<uint16_t>(a);
        p.downstream_v0s.tracks[2u * v0 + 1u] = static_cast<uint16_t>(b);
        p.downstream_v0s.kind[v0] = static_cast<uint8_t>(found.kind);
        p.downstream_v0s.pv[v0] = static_cast<uint8_t>(found.origin.pv);
        p.downstream_v0s.x[v0] = found.vertex.x;
        p.downstream_v0s.y[v0] = found.vertex.y;
        p.downstream_v0s.z[v0] = found.vertex.z;
        p.downstream_v0s.chi2[v0] = found.vertex.chi2;
        p.downstream_v0s.doca[v0] = found.vertex.doca;
        p.downstream_v0s.ip[v0] = found.origin.ip;
        p.downstream_v0s.px[v0] = found.px;
        p.downstream_v0s.py[v0] = found.py;
        p.downstream_v0s.pz[v0] = found.pz;
        p.downstream_v0s.pt[v0] = sqrtf(found.px * found.px + found.py * found.py);
        p.downstream_v0s.min_pt[v0] = found.min_pt;
        p.downstream_v0s.m_pipi[v0] = found.m_pipi;
        p.downstream_v0s.m_ppi[v0] = found.m_ppi;
        p.downstream_v0s.m_ee[v0] = found.m_ee;
    }
    if (threadIdx.x == 0) {
        p.downstream_v0s.count[event] = hlt::min_of(n, hlt::max_downstream_v0s);
        if (n > hlt::max_downstream_v0s) p.events.flags[event] |= hlt::overflow;
    }
}
