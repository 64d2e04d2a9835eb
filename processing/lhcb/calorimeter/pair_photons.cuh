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

#include "framework/device/lanes.cuh"
#include "framework/device/math.cuh"
#include "framework/device/raw_banks.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/calorimeter/generated/ecal_pair_photons.h"
#include "lhcb/calorimeter/generated/ecal_types.h"
#include "lhcb/secondary_vertices/kinematics.cuh"

namespace hlt {

constexpr float max_photon_eta = 20.f;  // of a pair without transverse momentum

/// A photon from the origin, or one in each lane: slopes, MeV along z.
template <typename Real>
struct photon_momentum_of {
    Real tx, ty, pz;
};

template <typename Clusters>
__device__ photon_momentum_of<float> momentum_of_photon(const Clusters& clusters, uint32_t place)
{
    const float tx = clusters.x[place] / ecal_shower_maximum_z, ty = clusters.y[place] / ecal_shower_maximum_z;
    return {tx, ty, clusters.energy[place] / sqrtf(1.f + tx * tx + ty * ty)};
}

/// Numbers of a pair of photons, MeV.
template <typename Real>
struct photon_pair_numbers {
    Real mass, pt, eta;

    __device__ photon_pair_numbers(const photon_momentum_of<float>& a, const photon_momentum_of<Real>& b)
    {
        const Real px = a.pz * a.tx + b.pz * b.tx, py = a.pz * a.ty + b.pz * b.ty, pz = a.pz + b.pz;
        mass = square_root(2.f * opening_of(a.tx, a.ty, a.pz, b.tx, b.ty, b.pz));
        pt = square_root(px * px + py * py);
        const Real most = Real{} + max_photon_eta;
        const Real found = logarithm((square_root(pt * pt + pz * pz) + pz) / pt);
        eta = pt > 0.f ? (most < found ? most : found) : most;
    }
};

/// List the photons of an event. Returns their number. `scratch`: shared memory for block_exclusive_count.
template <typename Parameters>
__device__ uint32_t list_photons(const Parameters& p, uint32_t event, uint16_t* photons, uint32_t* scratch)
{
    const uint32_t first_cluster = p.ecal_clusters.first(event), n_clusters = p.ecal_clusters.count[event];
    uint32_t n_photons = 0;
    for (uint32_t base = 0; base < n_clusters; base += blockDim.x) {
        const uint32_t number = base + threadIdx.x, cluster = first_cluster + number;
        const bool is_photon =
            number < n_clusters && p.ecal_clusters.et[cluster] > p.min_et && p.ecal_clusters.e19[cluster] > p.min_e19;
        uint32_t total;
        const uint32_t at = n_photons + block_exclusive_count(is_photon, scratch, total);
        if (is_photon) photons[at] = static_cast<uint16_t>(number);
        n_photons += total;
    }
    return n_photons;
}

/// Store the number of pairs of an event; flag it if there are too many.
template <typename Parameters>
__device__ void count_photon_pairs(const Parameters& p, uint32_t event, uint32_t n_photons)
{
    const uint32_t n_pairs = n_photons == 0u ? 0u : n_photons * (n_photons - 1u) / 2u;
    p.photon_pairs.count[event] = min_of(n_pairs, max_photon_pairs);
    if (n_pairs > max_photon_pairs) p.events.flags[event] |= overflow;
}

}  // namespace hlt

HLT_KERNEL(ecal_pair_photons)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint16_t photons[hlt::max_ecal_clusters];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t first_cluster = p.ecal_clusters.first(event), first_pair = p.photon_pairs.first(event);
    const uint32_t n_photons = hlt::list_photons(p, event, photons, scratch);
    __syncthreads();

    for (uint32_t i = threadIdx.x; i + 1u < n_photons; i += blockDim.x) {
        uint32_t pair = i * (2u * n_photons - i - 1u) / 2u;
        const auto a = hlt::momentum_of_photon(p.ecal_clusters, first_cluster + photons[i]);
        for (uint32_t j = i + 1u; j < n_photons && pair < hlt::max_photon_pairs; ++j, ++pair) {
            const auto b = hlt::momentum_of_photon(p.ecal_clusters, first_cluster + photons[j]);
            const hlt::photon_pair_numbers<float> numbers(a, b);
            const uint32_t place = first_pair + pair;
            p.photon_pairs.clusters[2u * place] = photons[i];
            p.photon_pairs.clusters[2u * place + 1u] = photons[j];
            p.photon_pairs.mass[place] = numbers.mass;
            p.photon_pairs.pt[place] = numbers.pt;
            p.photon_pairs.eta[place] = numbers.eta;
        }
    }
    if (threadIdx.x == 0) hlt::count_photon_pairs(p, event, n_photons);
}
