// The response of the muon network for long tracks (docs/physics/muon.md).
//
// Tracks without hits in their fields of interest have the response 0. They are 97 of 100, so the tracks are no lanes
// of vector registers on the CPU.
// In:  muon_network, long_tracks.{count, qop, tx, ty, muon_hits, muon_chi2, muon_features, muon_stub,
//      ecal_energy}.
// Out: long_tracks.muon_nn.
// One block per event, one thread per track.
// Bounds: tracks of an event as long_tracks.count.
#pragma once

#include "lhcb/muon/generated/muon_identify_tracks.h"
#include "lhcb/muon/generated/muon_network_types.h"
#include "lhcb/muon/generated/muon_types.h"
#include "lhcb/networks/one_hidden_layer.cuh"

HLT_KERNEL(muon_identify_tracks)
{
    if (!p.takes(blockIdx.x)) return;

    const uint32_t first = p.long_tracks.first(blockIdx.x);
    const uint32_t n_tracks = p.long_tracks.count[blockIdx.x];

    for (uint32_t track = first + threadIdx.x; track < first + n_tracks; track += blockDim.x) {
        const uint16_t* const hits = p.long_tracks.muon_hits + track * hlt::n_muon_stations;
        const float* const feature = p.long_tracks.muon_features + track * hlt::n_muon_features;
        const float* const stub = p.long_tracks.muon_stub + track * hlt::n_muon_stub_numbers;
        p.long_tracks.muon_nn[track] = 0.f;
        uint32_t n_stations = 0, n_crossed = 0;
        for (uint32_t station = 0; station < hlt::n_muon_stations; ++station) {
            n_stations += hits[station] != hlt::no_muon_hit ? 1u : 0u;
            n_crossed += feature[hlt::first_muon_crossed + station] == 2.f ? 1u : 0u;
        }
        if (n_stations == 0u) continue;

        const float tx = p.long_tracks.tx[track], ty = p.long_tracks.ty[track];
        float inputs[hlt::n_muon_inputs];
        inputs[0] = hlt::network_logarithm(p.long_tracks.muon_chi2[track]);
        inputs[1] = hlt::network_logarithm(stub[0]);
        for (uint32_t i = 0; i < 3u; ++i)
            inputs[2u + i] = hlt::network_logarithm(hlt::network_size(stub[1u + i]), 1e-5f, 1.f);
        inputs[5] = hlt::network_logarithm(hlt::network_size(p.long_tracks.qop[track]), 1e-6f, 0.1f);
        inputs[6] = hlt::network_logarithm(tx * tx + ty * ty, 1e-6f, 1.f);
        inputs[7] = static_cast<float>(n_stations);
        inputs[8] = static_cast<float>(n_crossed);
        inputs[9] = hlt::network_logarithm(stub[4]);
        inputs[10] = hlt::network_logarithm(p.long_tracks.ecal_energy[track]);
        for (uint32_t i = 0; i < hlt::n_muon_features - hlt::first_muon_residual; ++i) {
            const float residual = hlt::network_size(feature[hlt::first_muon_residual + i]);
            inputs[11u + i] = hlt::network_logarithm(hlt::min_of(residual, hlt::max_muon_residual));
        }
        p.long_tracks.muon_nn[track] = hlt::network_response(*p.muon_network, inputs);
    }
}
