// Groups of merged tracks in cones of pseudorapidity and azimuth.
//
// In:  tpc_merged_tracks. Out: tpc_jets, highest first. The transverse momenta, as integers, are summed in cells; that
// of a track has the direction at its closest place to the beam line. The cone with the highest sum above the mean of
// the event is a jet, of equal ones that of the first cell; its tracks are taken away, and the search goes on, as long
// as the sum above the mean is min_pt or more. One block per event; threads stride over tracks, then over cells.
// Bounds: tpc_max_jets jets; an event with more has the note many_jets, and the highest ones.
#pragma once

#include "alice/tpc/candidates/generated/tpc_candidate_types.h"
#include "alice/tpc/candidates/generated/tpc_find_jets.h"
#include "alice/tpc/candidates/helix.cuh"
#include "alice/tpc/generated/tpc_flags.h"

namespace hlt {

constexpr uint32_t tpc_jet_cells = tpc_eta_cells * tpc_phi_cells;
constexpr uint32_t tpc_half_eta_cells = tpc_eta_cells / 2u;
constexpr float tpc_eta_step = 0.1f, tpc_phi_step = 0.09817477f, tpc_half_turn = 3.14159265f;

/// pz / pT at the upper border of a cell above 0: sinh(0.1 k).
__device__ float border_of_cell(uint32_t k)
{
    constexpr float borders[tpc_half_eta_cells] = {0.100166750f, 0.201336003f, 0.304520293f, 0.410752326f, 0.521095305f,
                                                   0.636653582f, 0.758583702f, 0.888105982f, 1.026516726f};
    return borders[k];
}

/// The cell of a track; tpc_jet_cells outside of the acceptance.
__device__ uint32_t cell_of(const tpc_helix& helix)
{
    const float slope = helix.slope < 0.f ? -helix.slope : helix.slope;
    uint32_t k = 0;
    while (k < tpc_half_eta_cells && slope >= border_of_cell(k)) ++k;
    if (k == tpc_half_eta_cells) return tpc_jet_cells;
    const uint32_t eta = helix.slope < 0.f ? tpc_half_eta_cells - 1u - k : tpc_half_eta_cells + k;
    const tpc_direction along = direction_at_beam(helix);
    const float place = (angle_at(along.x, along.y) + tpc_half_turn) / tpc_phi_step;
    const uint32_t phi = place > 0.f && place < static_cast<float>(tpc_phi_cells) ? static_cast<uint32_t>(place) : 0u;
    return eta * tpc_phi_cells + phi;
}

/// A cone around the centre of a cell.
struct tpc_cone {
    float radius;

    /// Calls visit(cell) for each cell whose centre is inside.
    template <typename Visit>
    __device__ void for_cells(uint32_t centre, Visit&& visit) const
    {
        const uint32_t eta = centre / tpc_phi_cells, phi = centre % tpc_phi_cells;
        for (uint32_t other = 0; other < tpc_eta_cells; ++other) {
            const float along = tpc_eta_step * static_cast<float>(other > eta ? other - eta : eta - other);
            const float rest = radius * radius - along * along;
            for (uint32_t k = 0; k <= tpc_phi_cells / 2u; ++k) {
                const float across = tpc_phi_step * static_cast<float>(k);
                if (!(across * across <= rest)) break;
                visit(other * tpc_phi_cells + (phi + k) % tpc_phi_cells);
                if (k > 0u && k < tpc_phi_cells / 2u)
                    visit(other * tpc_phi_cells + (phi + tpc_phi_cells - k) % tpc_phi_cells);
            }
        }
    }
};

/// Mean of the event on a number of cells.
__device__ uint32_t background_of(uint32_t total, uint32_t n_cells)
{
    constexpr float share = 1.f / static_cast<float>(tpc_jet_cells);
    return static_cast<uint32_t>(static_cast<float>(total) * (static_cast<float>(n_cells) * share));
}

}  // namespace hlt

HLT_KERNEL(tpc_find_jets)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t sums[hlt::tpc_jet_cells];
    __shared__ uint32_t numbers[hlt::tpc_jet_cells];
    __shared__ uint32_t above[hlt::tpc_jet_cells];
    __shared__ uint32_t total, highest, highest_cell;
    const uint32_t n = p.tpc_merged_tracks.count[event], first = p.tpc_merged_tracks.first(event);
    for (uint32_t i = threadIdx.x; i < hlt::tpc_jet_cells; i += blockDim.x) sums[i] = numbers[i] = 0;
    if (threadIdx.x == 0) total = 0;
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        const hlt::tpc_merged_track& track = p.tpc_merged_tracks.track[first + i];
        const float size = track.q_pt < 0.f ? -track.q_pt : track.q_pt;
        const float pt = size * static_cast<float>(hlt::tpc_max_track_pt) > 1.f
                             ? 1.f / size
                             : static_cast<float>(hlt::tpc_max_track_pt);
        if (!(pt >= p.min_track_pt)) continue;
        const uint32_t cell = hlt::cell_of(hlt::helix_of(track, p.tpc.geometry + hlt::tpc_rows));
        if (cell == hlt::tpc_jet_cells) continue;
        const uint32_t units = static_cast<uint32_t>(pt * static_cast<float>(hlt::tpc_pt_units) + 0.5f);
        atomicAdd(&sums[cell], units);
        atomicAdd(&numbers[cell], 1u);
        atomicAdd(&total, units);
    }
    const hlt::tpc_cone cone{p.radius};
    constexpr float unit = 1.f / static_cast<float>(hlt::tpc_pt_units);
    const float least = p.min_pt * static_cast<float>(hlt::tpc_pt_units);
    const uint32_t min_sum = least > 1.f ? static_cast<uint32_t>(least) : 1u;
    uint32_t n_jets = 0;
    bool many = false;
    for (;;) {
        if (threadIdx.x == 0) {
            highest = 0;
            highest_cell = hlt::tpc_jet_cells;
        }
        hlt::block_barrier();
        for (uint32_t i = threadIdx.x; i < hlt::tpc_jet_cells; i += blockDim.x) {
            uint32_t sum = 0, n_cells = 0;
            cone.for_cells(i, [&](uint32_t cell) {
                sum += sums[cell];
                ++n_cells;
            });
            const uint32_t background = hlt::background_of(total, n_cells);
            above[i] = sum > background ? sum - background : 0u;
            atomicMax(&highest, above[i]);
        }
        hlt::block_barrier();
        const uint32_t best = highest;
        many = n_jets == hlt::tpc_max_jets && best >= min_sum;
        if (many || best < min_sum) break;
        for (uint32_t i = threadIdx.x; i < hlt::tpc_jet_cells; i += blockDim.x)
            if (above[i] == best) atomicMin(&highest_cell, i);
        hlt::block_barrier();
        if (threadIdx.x == 0) {
            const uint32_t centre = highest_cell;
            uint32_t sum = 0, tracks = 0, n_cells = 0;
            cone.for_cells(centre, [&](uint32_t cell) {
                sum += sums[cell];
                tracks += numbers[cell];
                ++n_cells;
                sums[cell] = numbers[cell] = 0;
            });
            const float eta =
                static_cast<float>(centre / hlt::tpc_phi_cells) + 0.5f - static_cast<float>(hlt::tpc_half_eta_cells);
            const float phi = static_cast<float>(centre % hlt::tpc_phi_cells) + 0.5f;
            p.tpc_jets.jet[p.tpc_jets.first(event) + n_jets] = {
                static_cast<float>(sum) * unit,
                static_cast<float>(hlt::background_of(total, n_cells)) * unit,
                eta * hlt::tpc_eta_step,
                phi * hlt::tpc_phi_step - hlt::tpc_half_turn,
                tracks,
                n_cells};
        }
        ++n_jets;
        hlt::block_barrier();
    }
    if (threadIdx.x != 0) return;
    p.tpc_jets.count[event] = n_jets;
    if (many) p.events.flags[event] |= uint32_t{hlt::many_jets};
}
