// Vertices of two tracks: fit, primary vertex, flight, momentum, masses (docs/physics/secondary-vertices.md).
//
// One block per event, one thread per pair. A prefix sum packs the fitted pairs in their order; all other columns are
// computed after that. Every cut is written so that a NaN fails it.
// Bounds: pairs as vertex_pairs.count, vertices as pvs.count; max_two_track_vertices; an event with more is flagged.
#pragma once

#include "framework/device/math.cuh"
#include "framework/device/raw_banks.cuh"
#include "lhcb/secondary_vertices/generated/secondary_vertices_fit_vertices.h"
#include "lhcb/secondary_vertices/generated/vertex_types.h"
#include "lhcb/secondary_vertices/kinematics.cuh"
#include "lhcb/secondary_vertices/pv_positions.cuh"
#include "lhcb/secondary_vertices/vertex_fit.cuh"

namespace hlt {

using vertex_parameters = secondary_vertices_fit_vertices_parameters;

/// Pseudorapidity of a flight along the z axis.
constexpr float max_eta = 20.f;

__device__ bool is_vertex(const vertex_parameters& p, const vertex_of_two& vertex)
{
    return vertex.chi2 < p.max_chi2 && vertex.z > p.min_z && vertex.z < p.max_z;
}

/// Bits of vertex_kind that a pair with a vertex has.
__device__ uint32_t kind_of(const vertex_parameters& p, uint32_t allowed, const momentum_pair& momenta, bool behind_pv)
{
    uint32_t kind = allowed & (vertex_displaced | vertex_dimuon);
    if ((allowed & vertex_ks) != 0 && behind_pv) {
        const float ks_mass = mass_of(momenta, pion_mass, pion_mass);
        if (ks_mass > p.ks_min_mass && ks_mass < p.ks_max_mass) kind |= vertex_ks;
        const bool first_is_proton = momenta.a2 > momenta.b2;
        const float lambda_mass =
            mass_of(momenta, first_is_proton ? proton_mass : pion_mass, first_is_proton ? pion_mass : proton_mass);
        if (lambda_mass < p.lambda_max_mass) kind |= vertex_lambda;
    }
    return kind;
}

/// Flight from the primary vertex, all 0 without one.
__device__ void write_flight(const vertex_parameters& p, uint32_t place, const vertex_of_two& vertex,
                             const primary_vertex* pv, float px, float py, float pz, float m_pipi)
{
    float fd = 0.f, fd_chi2 = 0.f, eta = 0.f, dira = 0.f, m_corr = 0.f;
    if (pv != nullptr) {
        const float dx = vertex.x - pv->x, dy = vertex.y - pv->y, dz = vertex.z - pv->z;
        const float rho2 = dx * dx + dy * dy;
        fd = sqrtf(rho2 + dz * dz);
        fd_chi2 = flight_chi2(vertex, {pv->c00, pv->c10, pv->c11, pv->c20, pv->c21, pv->c22}, dx, dy, dz);
        const float inverse = fd > 0.f ? 1.f / fd : 0.f;
        dira = (px * dx + py * dy + pz * dz) * inverse / sqrtf(px * px + py * py + pz * pz);
        const float cx = py * dz - pz * dy, cy = pz * dx - px * dz, cz = px * dy - py * dx;
        const float across2 = (cx * cx + cy * cy + cz * cz) * (inverse * inverse);
        m_corr = sqrtf(m_pipi * m_pipi + across2) + sqrtf(across2);
        const float abs_dz = dz < 0.f ? -dz : dz;
        const float abs_eta = rho2 > 0.f ? logarithm((fd + abs_dz) / sqrtf(rho2)) : max_eta;
        eta = dz < 0.f ? -abs_eta : abs_eta;
    }
    p.two_track_vertices.fd[place] = fd;
    p.two_track_vertices.fd_chi2[place] = fd_chi2;
    p.two_track_vertices.eta[place] = eta;
    p.two_track_vertices.dira[place] = dira;
    p.two_track_vertices.m_corr[place] = m_corr;
}

}  // namespace hlt

HLT_KERNEL(secondary_vertices_fit_vertices)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t first_track = p.long_tracks.first(blockIdx.x);
    const uint32_t first_pair = p.vertex_pairs.first(blockIdx.x);
    const uint32_t n_pairs = p.vertex_pairs.count[blockIdx.x];
    const uint32_t first_vertex = p.two_track_vertices.first(blockIdx.x);
    const uint32_t n_pvs = p.pvs.count[blockIdx.x];
    const hlt::primary_vertex* pvs = p.pvs.vertex + p.pvs.first(blockIdx.x);
    const hlt::pv_positions positions(pvs, n_pvs);

    uint32_t n = 0;
    for (uint32_t base = 0; base < n_pairs; base += blockDim.x) {
        const bool there = base + threadIdx.x < n_pairs;
        const uint32_t pair = first_pair + (there ? base + threadIdx.x : 0);
        const uint32_t number_a = p.vertex_pairs.tracks[2 * pair], number_b = p.vertex_pairs.tracks[2 * pair + 1];
        const uint32_t a = first_track + number_a, b = first_track + number_b;
        hlt::vertex_of_two vertex{};
        hlt::momentum_pair momenta{};
        hlt::flight_origin origin{};
        float pza = 0.f, pzb = 0.f, px = 0.f, py = 0.f;
        uint32_t kind = 0;
        if (there) {
            const hlt::vertex_track track_a = hlt::vertex_track_of(p.long_tracks, a),
                                    track_b = hlt::vertex_track_of(p.long_tracks, b);
            vertex = hlt::fit_two_tracks(*p.velo_field, track_a, track_b);
            if (hlt::is_vertex(p, vertex)) {
                pza = hlt::momentum_along_z(track_a.qop, vertex.txa, track_a.ty);
                pzb = hlt::momentum_along_z(track_b.qop, vertex.txb, track_b.ty);
                momenta = hlt::pair_of_momenta(vertex.txa, track_a.ty, pza, vertex.txb, track_b.ty, pzb);
                px = pza * vertex.txa + pzb * vertex.txb;
                py = pza * track_a.ty + pzb * track_b.ty;
                const float inverse_pz = 1.f / (pza + pzb);
                origin = positions.origin(vertex, px * inverse_pz, py * inverse_pz);
                const bool behind_pv = origin.pv != hlt::no_pv && vertex.z > pvs[origin.pv].z;
                kind = hlt::kind_of(p, p.vertex_pairs.kind[pair], momenta, behind_pv);
            }
        }
        uint32_t total;
        const uint32_t place = n + hlt::block_exclusive_count(kind != 0, scratch, total);
        n += total;
        if (kind == 0 || place >= hlt::max_two_track_vertices) continue;

        const uint32_t v = first_vertex + place;
        const float qop_a = p.long_tracks.beam_qop[a], qop_b = p.long_tracks.beam_qop[b];
        if ((qop_a > 0.f) == (qop_b > 0.f)) kind |= hlt::vertex_same_sign;
        p.two_track_vertices.tracks[2 * v] = static_cast<uint16_t>(number_a);
        p.two_track_vertices.tracks[2 * v + 1] = static_cast<uint16_t>(number_b);
        p.two_track_vertices.kind[v] = static_cast<uint8_t>(kind);
        p.two_track_vertices.pv[v] = static_cast<uint8_t>(origin.pv);
        p.two_track_vertices.x[v] = vertex.x;
        p.two_track_vertices.y[v] = vertex.y;
        p.two_track_vertices.z[v] = vertex.z;
        p.two_track_vertices.c00[v] = vertex.var_x + vertex.gx * vertex.gx * vertex.var_z;
        p.two_track_vertices.c10[v] = vertex.gx * vertex.gy * vertex.var_z;
        p.two_track_vertices.c11[v] = vertex.var_y + vertex.gy * vertex.gy * vertex.var_z;
        p.two_track_vertices.c20[v] = vertex.gx * vertex.var_z;
        p.two_track_vertices.c21[v] = vertex.gy * vertex.var_z;
        p.two_track_vertices.c22[v] = vertex.var_z;
        p.two_track_vertices.chi2[v] = vertex.chi2;
        p.two_track_vertices.doca[v] = vertex.doca;
        p.two_track_vertices.ip[v] = origin.ip;
        const float pz = pza + pzb;
        p.two_track_vertices.px[v] = px;
        p.two_track_vertices.py[v] = py;
        p.two_track_vertices.pz[v] = pz;
        p.two_track_vertices.pt[v] = sqrtf(px * px + py * py);
        const float m_pipi = hlt::mass_of(momenta, hlt::pion_mass, hlt::pion_mass);
        p.two_track_vertices.m_pipi[v] = m_pipi;
        p.two_track_vertices.m_kpi[v] = hlt::mass_of(momenta, hlt::kaon_mass, hlt::pion_mass);
        p.two_track_vertices.m_pik[v] = hlt::mass_of(momenta, hlt::pion_mass, hlt::kaon_mass);
        p.two_track_vertices.m_kk[v] = hlt::mass_of(momenta, hlt::kaon_mass, hlt::kaon_mass);
        p.two_track_vertices.m_ppi[v] = hlt::mass_of(momenta, hlt::proton_mass, hlt::pion_mass);
        p.two_track_vertices.m_pip[v] = hlt::mass_of(momenta, hlt::pion_mass, hlt::proton_mass);
        p.two_track_vertices.m_mumu[v] = hlt::mass_of(momenta, hlt::muon_mass, hlt::muon_mass);
        hlt::write_flight(p, v, vertex, origin.pv == hlt::no_pv ? nullptr : pvs + origin.pv, px, py, pz, m_pipi);
        const float pt_a = pza * hlt::slope_of(vertex.txa, p.long_tracks.beam_ty[a]);
        const float pt_b = pzb * hlt::slope_of(vertex.txb, p.long_tracks.beam_ty[b]);
        p.two_track_vertices.min_pt[v] = hlt::min_of(pt_a, pt_b);
        p.two_track_vertices.sum_pt[v] = pt_a + pt_b;
        p.two_track_vertices.min_p[v] = sqrtf(hlt::min_of(momenta.a2, momenta.b2));
        p.two_track_vertices.min_ip[v] = hlt::min_of(p.long_tracks.ip[a], p.long_tracks.ip[b]);
        p.two_track_vertices.min_ip_chi2[v] = hlt::min_of(p.long_tracks.ip_chi2[a], p.long_tracks.ip_chi2[b]);
    }
    if (threadIdx.x == 0) {
        if (n > hlt::max_two_track_vertices) p.events.flags[blockIdx.x] |= hlt::overflow;
        p.two_track_vertices.count[blockIdx.x] = hlt::min_of(n, hlt::max_two_track_vertices);
    }
}
