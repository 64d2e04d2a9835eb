// Energies in the calorimeter along long tracks, and of the bremsstrahlung of their beginning
// (docs/physics/calorimeter.md).
//
// The line of a track behind the SciFi tracker crosses cells at six depths; the sum of their energies over the momentum
// is nearly 1 for an electron and small for a hadron. The line of its VELO track goes straight on to the calorimeter,
// as a photon that the electron radiated before the magnet; cells at four depths give its energy.
// In:  events.ecal_adc, ecal_geometry, long_tracks.{count, velo_track, qop, x, y, tx, ty}, velo_beamline.
// Out: long_tracks.{in_ecal, ecal_energy, eop, is_electron, brem_energy, brem_et}, events.electrons.
// One block per event, threads stride over long tracks. Bounds: long tracks of an event as long_tracks.count.
#pragma once

#include "lhcb/calorimeter/cells.cuh"
#include "lhcb/calorimeter/generated/ecal_find_electrons.h"
#include "lhcb/tracks/long/generated/long_types.h"

namespace hlt {

/// Depths of a line in the calorimeter, mm, or of a line in each lane.
template <typename Real>
struct ecal_depths_of {
    Real front, shower_maximum, back;

    __device__ ecal_depths_of(const ecal_geometry& geometry, const ecal_line_of<Real>& line)
        : front(line.z_at(geometry.planes[0])),
          shower_maximum(line.z_at(geometry.planes[1])),
          back(line.z_at(geometry.planes[2]))
    {
    }

    /// z at a part of the way from the front to the back.
    __device__ Real between(float part) const { return front + part * (back - front); }

    /// Call `work` for each depth of a shower; the second one is its maximum.
    template <typename Work>
    __device__ void for_shower(Work work) const
    {
        work(front);
        work(shower_maximum);
        work(between(0.25f));
        work(between(0.5f));
        work(between(0.75f));
        work(back);
    }

    /// The same for the shower of a photon.
    template <typename Work>
    __device__ void for_photon(Work work) const
    {
        work(front);
        work(shower_maximum);
        work(between(0.5f));
        work(back);
    }
};

/// Store the numbers of a track. Returns true for an electron. `Parameters`: those of the kernel.
template <typename Parameters>
__device__ bool store_shower(const Parameters& p, uint32_t track, float energy, bool is_in_ecal)
{
    const float eop = energy * fabsf(p.long_tracks.qop[track]);
    const bool is_electron = eop > p.min_eop;
    p.long_tracks.in_ecal[track] = is_in_ecal ? 1 : 0;
    p.long_tracks.ecal_energy[track] = energy;
    p.long_tracks.eop[track] = eop;
    p.long_tracks.is_electron[track] = is_electron ? 1 : 0;
    return is_electron;
}

/// Store the bremsstrahlung of a track, whose VELO track has these slopes.
template <typename Parameters>
__device__ void store_photon(const Parameters& p, uint32_t track, float energy, float tx, float ty)
{
    const float slope2 = tx * tx + ty * ty;
    const float et = energy * sqrtf(slope2 / (1.f + slope2));
    const bool is_kept = et > p.min_brem_et;
    p.long_tracks.brem_energy[track] = is_kept ? energy : 0.f;
    p.long_tracks.brem_et[track] = is_kept ? et : 0.f;
}

}  // namespace hlt

HLT_KERNEL(ecal_find_electrons)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t n_electrons;
    if (threadIdx.x == 0) n_electrons = 0;
    __syncthreads();
    const hlt::ecal_geometry& geometry = *p.ecal_geometry;
    const int16_t* const adc = p.events.ecal_adc + event * hlt::n_ecal_cells;
    const uint32_t first = p.long_tracks.first(event), first_velo = p.velo_beamline.first(event);

    for (uint32_t track = first + threadIdx.x; track < first + p.long_tracks.count[event]; track += blockDim.x) {
        const float tx = p.long_tracks.tx[track], ty = p.long_tracks.ty[track];
        const hlt::ecal_line line{p.long_tracks.x[track] - hlt::z_end_scifi * tx,
                                  p.long_tracks.y[track] - hlt::z_end_scifi * ty, tx, ty};
        const hlt::ecal_depths_of<float> depths(geometry, line);
        hlt::ecal_energy_sum shower{&geometry, adc};
        uint32_t is_read = 0, n_depths = 0;
        depths.for_shower([&](float z) { is_read |= (shower.add(line, z) ? 1u : 0u) << n_depths++; });
        if (hlt::store_shower(p, track, shower.energy, (is_read >> 1 & 1u) != 0u)) atomicAdd(&n_electrons, 1u);

        const uint32_t velo = first_velo + p.long_tracks.velo_track[track];
        const float velo_tx = p.velo_beamline.tx[velo], velo_ty = p.velo_beamline.ty[velo];
        const float velo_z = p.velo_beamline.z[velo];
        const hlt::ecal_line straight{p.velo_beamline.x[velo] - velo_z * velo_tx,
                                      p.velo_beamline.y[velo] - velo_z * velo_ty, velo_tx, velo_ty};
        const hlt::ecal_depths_of<float> photon_depths(geometry, straight);
        hlt::ecal_energy_sum photon{&geometry, adc};
        photon_depths.for_photon([&](float z) { photon.add(straight, z); });
        hlt::store_photon(p, track, photon.energy, velo_tx, velo_ty);
    }
    __syncthreads();
    if (threadIdx.x == 0) p.events.electrons[event] = n_electrons;
}
