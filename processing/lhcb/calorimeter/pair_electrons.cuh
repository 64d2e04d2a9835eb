// Pairs of electrons with a common vertex; their momenta include bremsstrahlung (docs/physics/calorimeter.md).
//
// A thread has an electron and fits it with all later ones, first to count, then to write; a prefix sum over the tracks
// gives the pairs their places, so that they ascend by the first, then by the second track. An event has few electrons.
// In:  long_tracks.{count, is_electron, brem_energy, beam_*}, velo_field, pvs.{count, vertex}.
// Out: dielectrons.{count [event], tracks [pair][2], same_sign, pv, x, y, z, chi2, doca, ip, px, py, pz, pt, mass,
//      m_pipi}; events.flags.
// One block per event; threads stride over long tracks.
// Bounds: tracks as long_tracks.count, vertices as pvs.count; max_dielectrons; an event with more is flagged, and the
// first ones are kept. Every cut is written so that a NaN fails it.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/calorimeter/generated/ecal_pair_electrons.h"
#include "lhcb/calorimeter/generated/ecal_types.h"
#include "lhcb/secondary_vertices/flight_origin.cuh"
#include "lhcb/secondary_vertices/kinematics.cuh"
#include "lhcb/secondary_vertices/vertex_fit.cuh"

namespace hlt {

using pair_electrons_parameters = ecal_pair_electrons_parameters;

/// Fit two electrons. Returns true if they make a vertex.
__device__ bool electrons_meet(const pair_electrons_parameters& p, const vertex_track& a, const vertex_track& b,
                               vertex_of_two& vertex)
{
    vertex = fit_two_tracks(*p.velo_field, a, b);
    return vertex.doca < p.max_doca && vertex.chi2 < p.max_chi2;
}

/// MeV along z at a vertex, with bremsstrahlung: the energy of the photon is added to the momentum, along the track.
__device__ float electron_along_z(const pair_electrons_parameters& p, uint32_t track, float qop, float tx, float ty)
{
    const float size = qop < 0.f ? -qop : qop;
    return momentum_along_z(qop, tx, ty) * (1.f + p.long_tracks.brem_energy[track] * size);
}

/// Mass of two particles of equal mass with the directions of the tracks at the vertex, and momenta along z (MeV).
__device__ float mass_of_tracks(const vertex_of_two& vertex, const vertex_track& a, float pza, const vertex_track& b,
                                float pzb, float mass)
{
    return mass_of(pair_of_momenta(vertex.txa, a.ty, pza, vertex.txb, b.ty, pzb), mass, mass);
}

}  // namespace hlt

HLT_KERNEL(ecal_pair_electrons)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t first = p.long_tracks.first(event), n_tracks = p.long_tracks.count[event];
    const uint32_t first_pair = p.dielectrons.first(event);
    const hlt::primary_vertex* const pvs = p.pvs.vertex + p.pvs.first(event);
    const uint8_t* const is_electron = p.long_tracks.is_electron + first;

    uint32_t n = 0;
    for (uint32_t base = 0; base < n_tracks; base += blockDim.x) {
        const uint32_t number = base + threadIdx.x;
        const bool starts = number < n_tracks && is_electron[number] != 0;
        const hlt::vertex_track a = starts ? hlt::vertex_track_of(p.long_tracks, first + number) : hlt::vertex_track{};
        hlt::vertex_of_two vertex;
        uint32_t mine = 0;
        for (uint32_t other = number + 1u; starts && other < n_tracks; ++other) {
            if (is_electron[other] == 0) continue;
            const hlt::vertex_track b = hlt::vertex_track_of(p.long_tracks, first + other);
            mine += hlt::electrons_meet(p, a, b, vertex) ? 1u : 0u;
        }
        uint32_t total;
        uint32_t pair = n + hlt::block_exclusive_sum(mine, scratch, total);
        n += total;
        const uint32_t end = hlt::min_of(pair + mine, hlt::max_dielectrons);
        for (uint32_t other = number + 1u; pair < end && other < n_tracks; ++other) {
            if (is_electron[other] == 0) continue;
            const hlt::vertex_track b = hlt::vertex_track_of(p.long_tracks, first + other);
            if (!hlt::electrons_meet(p, a, b, vertex)) continue;
            const float pza = hlt::electron_along_z(p, first + number, a.qop, vertex.txa, a.ty);
            const float pzb = hlt::electron_along_z(p, first + other, b.qop, vertex.txb, b.ty);
            const float px = pza * vertex.txa + pzb * vertex.txb, py = pza * a.ty + pzb * b.ty, pz = pza + pzb;
            const hlt::flight_origin origin = hlt::origin_of(pvs, p.pvs.count[event], vertex, px / pz, py / pz);
            const uint32_t place = first_pair + pair++;
            p.dielectrons.tracks[2u * place] = static_cast<uint16_t>(number);
            p.dielectrons.tracks[2u * place + 1u] = static_cast<uint16_t>(other);
            p.dielectrons.same_sign[place] = (a.qop > 0.f) == (b.qop > 0.f) ? 1 : 0;
            p.dielectrons.pv[place] = static_cast<uint8_t>(origin.pv);
            p.dielectrons.x[place] = vertex.x;
            p.dielectrons.y[place] = vertex.y;
            p.dielectrons.z[place] = vertex.z;
            p.dielectrons.chi2[place] = vertex.chi2;
            p.dielectrons.doca[place] = vertex.doca;
            p.dielectrons.ip[place] = origin.ip;
            p.dielectrons.px[place] = px;
            p.dielectrons.py[place] = py;
            p.dielectrons.pz[place] = pz;
            p.dielectrons.pt[place] = sqrtf(px * px + py * py);
            p.dielectrons.mass[place] = hlt::mass_of_tracks(vertex, a, pza, b, pzb, hlt::electron_mass);
            p.dielectrons.m_pipi[place] =
                hlt::mass_of_tracks(vertex, a, hlt::momentum_along_z(a.qop, vertex.txa, a.ty), b,
                                    hlt::momentum_along_z(b.qop, vertex.txb, b.ty), hlt::pion_mass);
        }
        // The event is flagged, and the places are full: further pairs would only cost time.
        if (n > hlt::max_dielectrons) break;
    }
    if (threadIdx.x != 0) return;
    p.dielectrons.count[event] = hlt::min_of(n, hlt::max_dielectrons);
    if (n > hlt::max_dielectrons) p.events.flags[event] |= hlt::overflow;
}
