// Pairs of photons on the CPU: the second photons are the lanes of vector registers.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/calorimeter/pair_photons.cuh"

HLT_CPU_FORM(ecal_pair_photons)
{
    using hlt::n_wide;
    if (!hlt::compares_eight_lanes) return ecal_pair_photons(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    uint16_t photons[hlt::max_ecal_clusters];
    uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t first_cluster = p.ecal_clusters.first(event), first_pair = p.photon_pairs.first(event);
    const uint32_t n_photons = hlt::list_photons(p, event, photons, scratch);
    hlt::count_photon_pairs(p, event, n_photons);
    if (n_photons < 2u) return;

    float tx[hlt::max_ecal_clusters + n_wide], ty[hlt::max_ecal_clusters + n_wide], pz[hlt::max_ecal_clusters + n_wide];
    for (uint32_t i = 0; i < n_photons; ++i) {
        const auto photon = hlt::momentum_of_photon(p.ecal_clusters, first_cluster + photons[i]);
        tx[i] = photon.tx;
        ty[i] = photon.ty;
        pz[i] = photon.pz;
    }
    for (uint32_t l = 0; l < n_wide; ++l) tx[n_photons + l] = ty[n_photons + l] = pz[n_photons + l] = 1.f;
    uint32_t pair = 0;
    for (uint32_t i = 0; i + 1u < n_photons; ++i)
        for (uint32_t j = i + 1u; j < n_photons && pair < hlt::max_photon_pairs; j += n_wide) {
            hlt::photon_momentum_of<hlt::float_wide> others;
            hlt::load_wide(others.tx, tx + j);
            hlt::load_wide(others.ty, ty + j);
            hlt::load_wide(others.pz, pz + j);
            const hlt::photon_pair_numbers<hlt::float_wide> numbers({tx[i], ty[i], pz[i]}, others);
            const uint32_t n = hlt::min_of(hlt::min_of(n_wide, n_photons - j), hlt::max_photon_pairs - pair);
            const uint32_t place = first_pair + pair;
            float of_lanes[3][n_wide];
            hlt::store_wide(of_lanes[0], numbers.mass);
            hlt::store_wide(of_lanes[1], numbers.pt);
            hlt::store_wide(of_lanes[2], numbers.eta);
            for (uint32_t l = 0; l < n; ++l) {
                p.photon_pairs.clusters[2u * (place + l)] = photons[i];
                p.photon_pairs.clusters[2u * (place + l) + 1u] = photons[j + l];
                p.photon_pairs.mass[place + l] = of_lanes[0][l];
                p.photon_pairs.pt[place + l] = of_lanes[1][l];
                p.photon_pairs.eta[place + l] = of_lanes[2][l];
            }
            pair += n;
        }
}
