// Pairs of photons, for decays of neutral pions and of B mesons (docs/physics/calorimeter.md).
//
// A photon is a narrow cluster with a minimum transverse energy; it comes from the origin. The pairs of n photons have
// places in closed form: ascending by the first, then by the second photon.
// In:  ecal_clusters.{count, x, y, energy, et, e19}.
// Out: photon_pairs.{count [event], clusters [pair][2], mass, pt, eta}; events.flags.
// One block per event; threads stride over clusters to list the photons, then over the first photons of pairs.
// Bounds: clusters as ecal_clusters.count <= max_ecal_clusters; max_photon_pairs; an event with more pairs is flagged,
// and the first ones are kept.
#pragma once

#include "framework/device/math.cuh"
#include "framework/device/raw_banks.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/calorimeter/generated/ecal_pair_photons.h"
#include "lhcb/calorimeter/generated/ecal_types.h"
#include "lhcb/secondary_vertices/kinematics.cuh"

namespace hlt {

constexpr float max_photon_eta = 20.f;  // of a pair without transverse momentum

/// A photon from the origin: slopes, MeV along z.
struct photon_momentum {
    float tx, ty, pz;

    template <typename Clusters>
    __device__ photon_momentum(const Clusters& clusters, uint32_t place)
        : tx(clusters.x[place] / ecal_shower_maximum_z),
          ty(clusters.y[place] / ecal_shower_maximum_z),
          pz(clusters.energy[place] / sqrtf(1.f + tx * tx + ty * ty))
    {
    }
};

}  // namespace hlt

HLT_KERNEL(ecal_pair_photons)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint16_t photons[hlt::max_ecal_clusters];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t first_cluster = p.ecal_clusters.first(event), n_clusters = p.ecal_clusters.count[event];
    const uint32_t first_pair = p.photon_pairs.first(event);

    uint32_t n_photons = 0;
    for (uint32_t base = 0; base < n_clusters; base += blockDim.x) {
        const uint32_t number = base + threadIdx.x, cluster = first_cluster + number;
        const bool is_photon =
            number < n_clusters && p.ecal_clusters.et[cluster] > p.min_et && p.ecal_clusters.e19[cluster] > p.min_e19;
        uint32_t total;
        const uint32_t at = n_photons + hlt::block_exclusive_count(is_photon, scratch, total);
        if (is_photon) photons[at] = static_cast<uint16_t>(number);
        n_photons += total;
    }
    __syncthreads();

    for (uint32_t i = threadIdx.x; i + 1u < n_photons; i += blockDim.x) {
        uint32_t pair = i * (2u * n_photons - i - 1u) / 2u;
        const hlt::photon_momentum a(p.ecal_clusters, first_cluster + photons[i]);
        for (uint32_t j = i + 1u; j < n_photons && pair < hlt::max_photon_pairs; ++j, ++pair) {
            const hlt::photon_momentum b(p.ecal_clusters, first_cluster + photons[j]);
            const hlt::momentum_pair momenta = hlt::pair_of_momenta(a.tx, a.ty, a.pz, b.tx, b.ty, b.pz);
            const float px = a.pz * a.tx + b.pz * b.tx, py = a.pz * a.ty + b.pz * b.ty, pz = a.pz + b.pz;
            const float pt = sqrtf(px * px + py * py);
            const uint32_t place = first_pair + pair;
            p.photon_pairs.clusters[2u * place] = photons[i];
            p.photon_pairs.clusters[2u * place + 1u] = photons[j];
            p.photon_pairs.mass[place] = sqrtf(2.f * momenta.opening);
            p.photon_pairs.pt[place] = pt;
            p.photon_pairs.eta[place] =
                pt > 0.f ? hlt::min_of(hlt::logarithm((sqrtf(pt * pt + pz * pz) + pz) / pt), hlt::max_photon_eta)
                         : hlt::max_photon_eta;
        }
    }
    if (threadIdx.x != 0) return;
    const uint32_t n_pairs = n_photons == 0u ? 0u : n_photons * (n_photons - 1u) / 2u;
    p.photon_pairs.count[event] = hlt::min_of(n_pairs, hlt::max_photon_pairs);
    if (n_pairs > hlt::max_photon_pairs) p.events.flags[event] |= hlt::overflow;
}
