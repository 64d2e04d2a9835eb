// Jets: tracks and photons in cones around the hardest tracks (docs/physics/jets.md).
//
// Parts of jets are long tracks with a primary vertex, and photons: narrow clusters that no long track crosses. The
// track of the highest transverse momentum that is in no jet is the seed of the next one. Tracks of its vertex and
// photons within the cone around it belong to the jet. Sums are integers, so their order has no effect.
// In:  long_tracks.{count, beam_tx, beam_ty, beam_qop, pv, ghost_probability, ecal_cell}; ecal_clusters.{count, x, y,
//      et, e19, seed}.
// Out: jets.{count [event], pt, eta, phi, n_tracks, n_photons, seed, pv}; events.flags.
// One block per event; threads stride over tracks and clusters, then for each jet over the parts.
// Bounds: tracks and clusters as their counts; max_jets. An event with more seeds has the note many_jets.
#pragma once

#include "framework/device/lanes.cuh"
#include "framework/device/math.cuh"
#include "framework/device/raw_banks.cuh"
#include "lhcb/calorimeter/generated/ecal_types.h"
#include "lhcb/jets/generated/find_jets.h"
#include "lhcb/jets/generated/jet_types.h"
#include "lhcb/raw_data/generated/flags.h"
#include "lhcb/secondary_vertices/kinematics.cuh"
#include "lhcb/tracks/long/generated/long_types.h"
#include "lhcb/velo/generated/velo_types.h"

namespace hlt {

constexpr uint32_t max_jet_parts = max_long_tracks + max_ecal_clusters;
constexpr uint32_t n_ecal_cell_words = (n_ecal_cells + 31u) / 32u;
constexpr uint32_t no_jet_part = max_jet_parts;

/// Tracks and photons of an event; the tracks come first. `pt` in units, 0 for one that is in a jet.
struct parts_of_jets {
    float eta[max_jet_parts], phi[max_jet_parts];
    uint32_t pt[max_jet_parts];
    uint8_t pv[max_jet_parts];            // no_pv: a photon
    uint16_t number[max_long_tracks];     // of a track among all
    uint32_t crossed[n_ecal_cell_words];  // one bit for each cell that a long track crosses
};

/// Sums of one jet.
struct jet_sums {
    uint64_t pt, eta, phi;  // the last two are signed
    uint32_t n_tracks, n_photons;
};

/// Transverse momentum of a long track at the beam line, MeV.
template <typename Tracks>
__device__ float transverse_momentum(const Tracks& tracks, uint32_t track)
{
    const float tx = tracks.beam_tx[track], ty = tracks.beam_ty[track];
    return momentum_along_z(tracks.beam_qop[track], tx, ty) * slope_of(tx, ty);
}

/// A negative number, as of a threshold that is off, has no units.
__device__ uint32_t in_pt_units(float pt)
{
    const float most = static_cast<float>(max_jet_part_pt);
    return static_cast<uint32_t>((pt < most ? max_of(pt, 0.f) : most) * static_cast<float>(jet_pt_units) + 0.5f);
}

/// Rounded to the nearest unit.
__device__ int64_t in_angle_units(float angle)
{
    const float units = angle * static_cast<float>(jet_angle_units);
    return static_cast<int64_t>(static_cast<int32_t>(units < 0.f ? units - 0.5f : units + 0.5f));
}

/// An angle between -3 pi and 3 pi as one from -pi to pi.
__device__ float within_half_turn(float angle)
{
    return angle > pi ? angle - 2.f * pi : angle < -pi ? angle + 2.f * pi : angle;
}

/// Set the direction (tx, ty, 1) and the transverse momentum of a part.
__device__ void set_jet_part(parts_of_jets& parts, uint32_t part, float tx, float ty, float pt)
{
    const float slope = slope_of(tx, ty);
    parts.eta[part] = logarithm((1.f + sqrtf(1.f + slope * slope)) / slope);
    parts.phi[part] = atan2_approximate(ty, tx);
    parts.pt[part] = in_pt_units(pt);
}

/// List the tracks of an event. Returns their number; all threads see the list after the next barrier.
template <typename Parameters>
__device__ uint32_t list_jet_tracks(const Parameters& p, uint32_t event, parts_of_jets& parts, uint32_t* scratch)
{
    const uint32_t first = p.long_tracks.first(event), n = p.long_tracks.count[event];
    uint32_t n_listed = 0;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t number = base + threadIdx.x, track = first + number;
        float pt = 0.f;
        bool is_listed = false;
        if (number < n) {
            const uint32_t cell = p.long_tracks.ecal_cell[track];
            if (cell < n_ecal_cells) atomicOr(&parts.crossed[cell / 32u], 1u << cell % 32u);
            pt = transverse_momentum(p.long_tracks, track);
            is_listed = pt >= p.min_track_pt && p.long_tracks.pv[track] != no_pv &&
                        p.long_tracks.ghost_probability[track] <= p.max_ghost_probability;
        }
        uint32_t total;
        const uint32_t part = n_listed + block_exclusive_count(is_listed, scratch, total);
        if (is_listed) {
            set_jet_part(parts, part, p.long_tracks.beam_tx[track], p.long_tracks.beam_ty[track], pt);
            parts.pv[part] = p.long_tracks.pv[track];
            parts.number[part] = static_cast<uint16_t>(number);
        }
        n_listed += total;
    }
    return n_listed;
}

/// List the photons of an event behind its n_tracks tracks. Returns the number of parts.
template <typename Parameters>
__device__ uint32_t list_jet_photons(const Parameters& p, uint32_t event, uint32_t n_tracks, parts_of_jets& parts,
                                     uint32_t* scratch)
{
    const uint32_t first = p.ecal_clusters.first(event), n = p.ecal_clusters.count[event];
    uint32_t n_listed = n_tracks;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t number = base + threadIdx.x, cluster = first + number;
        bool is_listed = false;
        if (number < n) {
            const uint32_t seed = p.ecal_clusters.seed[cluster];
            is_listed = p.ecal_clusters.et[cluster] > p.min_photon_et &&
                        p.ecal_clusters.e19[cluster] > p.min_photon_e19 &&
                        (parts.crossed[seed / 32u] >> seed % 32u & 1u) == 0u;
        }
        uint32_t total;
        const uint32_t part = n_listed + block_exclusive_count(is_listed, scratch, total);
        if (is_listed) {
            set_jet_part(parts, part, p.ecal_clusters.x[cluster] / ecal_shower_maximum_z,
                         p.ecal_clusters.y[cluster] / ecal_shower_maximum_z, p.ecal_clusters.et[cluster]);
            parts.pv[part] = static_cast<uint8_t>(no_pv);
        }
        n_listed += total;
    }
    return n_listed;
}

/// Whether one track precedes another one as a seed: it has more transverse momentum. Equal ones are ordered by their
/// direction and vertex, so that the order of tracks has no effect.
__device__ bool is_seed_before(const parts_of_jets& parts, uint32_t a, uint32_t b)
{
    if (parts.pt[a] != parts.pt[b]) return parts.pt[a] > parts.pt[b];
    if (parts.eta[a] != parts.eta[b]) return parts.eta[a] < parts.eta[b];
    if (parts.phi[a] != parts.phi[b]) return parts.phi[a] < parts.phi[b];
    if (parts.pv[a] != parts.pv[b]) return parts.pv[a] < parts.pv[b];
    return a < b;
}

/// The next seed, or no_jet_part. `scratch`: shared, one word for each thread.
__device__ uint32_t next_jet_seed(const parts_of_jets& parts, uint32_t n_tracks, uint32_t min_units, uint32_t* scratch)
{
    uint32_t found = no_jet_part;
    for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x)
        if (parts.pt[i] >= min_units && (found == no_jet_part || is_seed_before(parts, i, found))) found = i;
    scratch[threadIdx.x] = found;
    block_barrier();
    found = scratch[0];
    for (uint32_t i = 1; i < blockDim.x; ++i) {
        const uint32_t other = scratch[i];
        if (other != no_jet_part && (found == no_jet_part || is_seed_before(parts, other, found))) found = other;
    }
    block_barrier();  // all threads read before the caller changes parts
    return found;
}

/// Add the free parts in the cone around a seed to shared sums and take them away, the seed excepted.
__device__ void take_cone(parts_of_jets& parts, uint32_t n_parts, uint32_t seed, float radius, jet_sums& sums)
{
    const float eta = parts.eta[seed], phi = parts.phi[seed], radius2 = radius * radius;
    const uint32_t pv = parts.pv[seed];
    jet_sums own{};
    for (uint32_t i = threadIdx.x; i < n_parts; i += blockDim.x) {
        const bool is_photon = parts.pv[i] == no_pv;
        if (parts.pt[i] == 0u || (!is_photon && parts.pv[i] != pv)) continue;
        const float deta = parts.eta[i] - eta, dphi = within_half_turn(parts.phi[i] - phi);
        if (i != seed && !(deta * deta + dphi * dphi < radius2)) continue;
        const uint64_t pt = parts.pt[i];
        own.pt += pt;
        own.eta += pt * static_cast<uint64_t>(in_angle_units(deta));
        own.phi += pt * static_cast<uint64_t>(in_angle_units(dphi));
        own.n_photons += is_photon ? 1u : 0u;
        own.n_tracks += is_photon ? 0u : 1u;
        if (i != seed) parts.pt[i] = 0;
    }
    if (own.n_tracks + own.n_photons == 0u) return;
    atomicAdd(&sums.pt, own.pt);
    atomicAdd(&sums.eta, own.eta);
    atomicAdd(&sums.phi, own.phi);
    atomicAdd(&sums.n_tracks, own.n_tracks);
    atomicAdd(&sums.n_photons, own.n_photons);
}

/// The mean difference of an angle of the parts from the one of the seed.
__device__ float mean_angle(uint64_t sum, uint64_t pt)
{
    return static_cast<float>(static_cast<int64_t>(sum)) / static_cast<float>(pt) / static_cast<float>(jet_angle_units);
}

}  // namespace hlt

HLT_KERNEL(find_jets)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ hlt::parts_of_jets parts;
    __shared__ hlt::jet_sums sums;
    __shared__ uint32_t scratch[hlt::max_block_size];
    for (uint32_t i = threadIdx.x; i < hlt::n_ecal_cell_words; i += blockDim.x) parts.crossed[i] = 0;
    hlt::block_barrier();
    const uint32_t n_tracks = hlt::list_jet_tracks(p, event, parts, scratch);
    hlt::block_barrier();
    const uint32_t n_parts = hlt::list_jet_photons(p, event, n_tracks, parts, scratch);
    const uint32_t first_jet = p.jets.first(event), min_units = hlt::max_of(hlt::in_pt_units(p.min_seed_pt), 1u);
    uint32_t n_jets = 0;
    for (;;) {
        hlt::block_barrier();
        if (threadIdx.x == 0) sums = {};
        const uint32_t seed = hlt::next_jet_seed(parts, n_tracks, min_units, scratch);
        if (seed == hlt::no_jet_part) break;
        if (n_jets == hlt::max_jets) {
            if (threadIdx.x == 0) p.events.flags[event] |= uint32_t{hlt::many_jets};
            break;
        }
        hlt::take_cone(parts, n_parts, seed, p.radius, sums);
        hlt::block_barrier();
        if (threadIdx.x == 0) {
            const uint32_t jet = first_jet + n_jets;
            p.jets.pt[jet] = static_cast<float>(sums.pt) / static_cast<float>(hlt::jet_pt_units);
            p.jets.eta[jet] = parts.eta[seed] + hlt::mean_angle(sums.eta, sums.pt);
            p.jets.phi[jet] = hlt::within_half_turn(parts.phi[seed] + hlt::mean_angle(sums.phi, sums.pt));
            p.jets.n_tracks[jet] = static_cast<uint16_t>(sums.n_tracks);
            p.jets.n_photons[jet] = static_cast<uint16_t>(sums.n_photons);
            p.jets.seed[jet] = parts.number[seed];
            p.jets.pv[jet] = parts.pv[seed];
            parts.pt[seed] = 0;
        }
        ++n_jets;
    }
    if (threadIdx.x == 0) p.jets.count[event] = n_jets;
}
