// The electron network on the CPU: tracks are the lanes of vector registers, which share the logarithms.
#pragma once

#include "lhcb/calorimeter/identify_electrons.cuh"
#include "lhcb/networks/one_hidden_layer_cpu.h"

HLT_CPU_FORM(ecal_identify_electrons)
{
    if (!p.takes(event)) return;
    constexpr uint32_t width = 16;
    const hlt::electron_network& network = *p.electron_network;
    const uint32_t first = p.long_tracks.first(event);
    const uint32_t n_tracks = p.long_tracks.count[event];

    for (uint32_t group = 0; group < n_tracks; group += width) {
        const uint32_t n = hlt::min_of(width, n_tracks - group);
        float inputs[hlt::n_electron_inputs][width];
        bool known[width];
        for (uint32_t i = 0; i < width; ++i) {
            const uint32_t track = first + group + hlt::min_of(i, n - 1u);
            const float size = hlt::network_size(p.long_tracks.qop[track]);
            inputs[0][i] = p.long_tracks.eop[track];
            inputs[1][i] = p.long_tracks.shower_energy[track] * size;
            inputs[2][i] = p.long_tracks.brem_energy[track] * size;
            inputs[3][i] = size;
            inputs[4][i] = hlt::region_of_ecal_cell(p.long_tracks.ecal_cell[track]);
            inputs[5][i] = hlt::min_of(hlt::network_size(p.long_tracks.shower_dx[track]), hlt::max_shower_distance);
            inputs[6][i] = hlt::min_of(hlt::network_size(p.long_tracks.shower_dy[track]), hlt::max_shower_distance);
            inputs[7][i] = p.long_tracks.shower_spread_x[track];
            inputs[8][i] = p.long_tracks.shower_spread_y[track];
            inputs[9][i] = p.long_tracks.shower_peak[track];
            known[i] = hlt::may_be_electron(p.long_tracks.qop[track], p.long_tracks.shower_energy[track]);
        }
        for (const uint32_t number : {0u, 1u, 2u})
            for (uint32_t i = 0; i < width; ++i) inputs[number][i] = hlt::network_logarithm(inputs[number][i]);
        for (uint32_t i = 0; i < width; ++i) inputs[3][i] = hlt::network_logarithm(inputs[3][i], 1e-6f, 0.1f);

        float response[width];
        hlt::network_responses(network, inputs, response);
        for (uint32_t i = 0; i < n; ++i) p.long_tracks.electron_nn[first + group + i] = known[i] ? response[i] : 0.f;
    }
}
