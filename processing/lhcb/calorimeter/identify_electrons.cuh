// The response of the electron network for long tracks (docs/physics/calorimeter.md).
//
// Tracks without a shower, and those whose q/p is no number or gives no momentum, have the response 0.
// In:  electron_network, long_tracks.{count, qop, eop, brem_energy, ecal_cell, shower_*}.
// Out: long_tracks.electron_nn.
// One block per event, one thread per track; on the CPU tracks are the lanes of vector registers.
// Bounds: tracks of an event as long_tracks.count.
#pragma once

#include "lhcb/calorimeter/generated/ecal_identify_electrons.h"
#include "lhcb/calorimeter/generated/ecal_types.h"
#include "lhcb/calorimeter/generated/electron_network_types.h"
#include "lhcb/networks/one_hidden_layer.cuh"

namespace hlt {

/// True if a track with this q/p (1/MeV) and this energy of its shower can be an electron: a momentum above 1 MeV.
__device__ __forceinline__ bool may_be_electron(float qop, float shower_energy)
{
    const float size = network_size(qop);
    return size > 0.f && size < 1.f && shower_energy > 0.f;
}

/// 0 for a cell of the outer region, 1 of the middle one, 2 of the inner one.
__device__ __forceinline__ float region_of_ecal_cell(uint32_t cell)
{
    return cell >= first_inner_ecal_cell ? 2.f : cell >= first_middle_ecal_cell ? 1.f : 0.f;
}

}  // namespace hlt

HLT_KERNEL(ecal_identify_electrons)
{
    if (!p.takes(blockIdx.x)) return;

    const hlt::electron_network& network = *p.electron_network;
    const uint32_t first = p.long_tracks.first(blockIdx.x);
    const uint32_t n_tracks = p.long_tracks.count[blockIdx.x];

    for (uint32_t track = first + threadIdx.x; track < first + n_tracks; track += blockDim.x) {
        const float size = hlt::network_size(p.long_tracks.qop[track]);
        const float inputs[hlt::n_electron_inputs] = {
            hlt::network_logarithm(p.long_tracks.eop[track]),
            hlt::network_logarithm(p.long_tracks.shower_energy[track] * size),
            hlt::network_logarithm(p.long_tracks.brem_energy[track] * size),
            hlt::network_logarithm(size, 1e-6f, 0.1f),
            hlt::region_of_ecal_cell(p.long_tracks.ecal_cell[track]),
            hlt::min_of(hlt::network_size(p.long_tracks.shower_dx[track]), hlt::max_shower_distance),
            hlt::min_of(hlt::network_size(p.long_tracks.shower_dy[track]), hlt::max_shower_distance),
            p.long_tracks.shower_spread_x[track],
            p.long_tracks.shower_spread_y[track],
            p.long_tracks.shower_peak[track],
        };
        const bool known = hlt::may_be_electron(p.long_tracks.qop[track], p.long_tracks.shower_energy[track]);
        p.long_tracks.electron_nn[track] = known ? hlt::network_response(network, inputs) : 0.f;
    }
}
