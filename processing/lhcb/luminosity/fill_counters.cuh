// The counters of the luminosity summary of each event, as they are stored (docs/physics/luminosity.md).
//
// Numbers of VELO tracks by pseudorapidity, of vertices, of SciFi hits by module, of muon hits by region, energies of
// the calorimeter by part, and the channels of PLUME. A counter with a shift or a scale is stored as
// shift + scale * number, rounded. A number that does not fit becomes the smallest or largest one, and the counter
// `Saturated` becomes 1; the event gets the flag lumi_saturated if ODIN marks it for luminosity.
// Energies of cells are added in quarters of an MeV, as integers: so the order does not matter.
// In:  tracks and vertices of the VELO, hits of SciFi and muon stations, cells, long tracks, PLUME, ODIN.
// Out: events.lumi_counters [event][n_lumi_counters]; events.flags.
// One block per event; threads stride over the objects and count in shared memory.
// Bounds: a module of a SciFi hit is checked; other places follow from columns with declared bounds.
#pragma once

#include "lhcb/calorimeter/cells.cuh"
#include "lhcb/luminosity/generated/lumi_types.h"
#include "lhcb/luminosity/generated/luminosity_fill_counters.h"
#include "lhcb/muon/generated/muon_types.h"
#include "lhcb/velo/beam_line.cuh"

namespace hlt {

constexpr uint32_t lumi_central_bin = 3;
constexpr uint32_t n_lumi_ecal = first_lumi_muon - first_lumi_ecal;
constexpr uint32_t n_lumi_stations = 3;   // of SciFi, and of the muon detector: M2 to M4
constexpr float lumi_energy_units = 4.f;  // per MeV
constexpr float max_lumi_energy = 1e8f;   // MeV; up to it the sums fit in 32 bits
constexpr float more_than_any_counter = 1e9f;
constexpr uint32_t scifi_module_stride = 10;  // counters of the modules of a station but the last

/// The bin of a track: 1 / slope2 is the square of sinh(eta).
__device__ uint32_t lumi_eta_bin(float slope2, bool is_backward)
{
    const uint32_t n = (slope2 * lumi_sinh2_of_2 < 1.f ? 1u : 0u) + (slope2 * lumi_sinh2_of_3 < 1.f ? 1u : 0u) +
                       (slope2 * lumi_sinh2_of_4 < 1.f ? 1u : 0u);
    if (is_backward) return lumi_central_bin - n;
    return lumi_central_bin + n + (slope2 * lumi_sinh2_of_5 < 1.f ? 1u : 0u);
}

/// Part of the calorimeter of a cell: outer, middle, inner region above the beam, then below.
__device__ uint32_t lumi_ecal_part(const ecal_geometry& geometry, uint32_t cell)
{
    const uint32_t region = (cell >= first_middle_ecal_cell ? 1u : 0u) + (cell >= first_inner_ecal_cell ? 1u : 0u);
    return geometry.y[cell] > 0.f ? region : region + 3u;
}

/// The counters of one event while they are counted, and what they are counted from. `Parameters`: those of the kernel.
template <typename Parameters>
struct lumi_counting {
    const Parameters& p;
    uint32_t event;
    uint32_t* counts;

    /// VELO tracks and vertices.
    __device__ void count_velo() const
    {
        const velo_beam_line beam(*p.velo_geometry);
        const float max_distance2 = p.max_distance * p.max_distance;
        const uint32_t first_track = p.velo_tracks.first(event), n_tracks = p.velo_tracks.count[event];
        for (uint32_t i = first_track + threadIdx.x; i < first_track + n_tracks; i += blockDim.x) {
            const float tx = p.velo_beamline.tx[i], ty = p.velo_beamline.ty[i], z = p.velo_beamline.z[i];
            const float dx = p.velo_beamline.x[i] - beam.x_at(z), dy = p.velo_beamline.y[i] - beam.y_at(z);
            const float slope2 = tx * tx + ty * ty, moment = ty * dx - tx * dy;
            if (z > -p.max_z && z < p.max_z && moment * moment < max_distance2 * slope2)
                atomicAdd(&counts[first_lumi_velo + 1u], 1u);
            const uint32_t bin = lumi_eta_bin(slope2, p.velo_tracks.backward[i] != 0u);
            atomicAdd(&counts[first_lumi_velo + 2u + bin], 1u);
        }
        const uint32_t n_vertices = p.pvs.count[event];
        const auto* const vertices = p.pvs.vertex + p.pvs.first(event);
        for (uint32_t i = threadIdx.x; i < n_vertices; i += blockDim.x) {
            const float z = vertices[i].z;
            const float dx = vertices[i].x - beam.x_at(z), dy = vertices[i].y - beam.y_at(z);
            if (z > -p.max_z && z < p.max_z && dx * dx + dy * dy < max_distance2)
                atomicAdd(&counts[first_lumi_vertex + 1u], 1u);
        }
    }

    /// Add SciFi hits of a module.
    __device__ void add_scifi(uint32_t station, uint32_t side, uint32_t module, uint32_t n_hits) const
    {
        const uint32_t n_modules = station == n_lumi_stations - 1u ? 6u : 5u;
        if (station >= n_lumi_stations || module >= n_modules) return;
        atomicAdd(&counts[first_lumi_scifi + n_lumi_scifi_sums + scifi_module_stride * station + 2u * module + side],
                  n_hits);
        if (module != 0u) atomicAdd(&counts[first_lumi_scifi + station + (module < 4u ? 0u : n_lumi_stations)], n_hits);
    }

    __device__ void count_scifi() const
    {
        const uint32_t first_hit = p.scifi_hits.first(event), n_hits = p.scifi_hits.count[event];
        for (uint32_t i = first_hit + threadIdx.x; i < first_hit + n_hits; i += blockDim.x) {
            const uint32_t id = p.scifi_hits.id[i];
            add_scifi((id >> 18 & 3u) - 1u, id >> 14 & 1u, id >> 11 & 7u, 1u);
        }
    }

    /// Energies of cells; `adc`: the values of the event.
    __device__ void count_ecal(const ecal_geometry& ecal, const int16_t* adc) const
    {
        for (uint32_t cell = threadIdx.x; cell < n_ecal_cells; cell += blockDim.x) {
            if (adc[cell] == no_ecal_adc) continue;
            const float energy = lumi_energy_units * ecal_cell_energy(ecal, cell, adc[cell]);
            const auto total = static_cast<uint32_t>(floor_to_int(energy + 0.5f));
            const auto across = static_cast<uint32_t>(floor_to_int(energy * ecal.sine[cell] + 0.5f));
            atomicAdd(&counts[first_lumi_ecal], across);
            atomicAdd(&counts[first_lumi_ecal + 1u], total);
            atomicAdd(&counts[first_lumi_ecal + 2u + lumi_ecal_part(ecal, cell)], across);
        }
    }

    /// Hits of the muon stations, and muons.
    __device__ void count_muons() const
    {
        const uint16_t* const stations = p.muon_hits.station_offset + event * muon_station_stride;
        const uint32_t first_muon_hit = p.muon_hits.first(event);
        for (uint32_t station = 0; station < n_lumi_stations; ++station)
            for (uint32_t i = stations[station] + threadIdx.x; i < stations[station + 1u]; i += blockDim.x) {
                const uint32_t region = p.muon_hits.tile[first_muon_hit + i] >> 14 & 3u;
                atomicAdd(&counts[first_lumi_muon + n_muon_regions * station + region], 1u);
            }
        const uint32_t first_long = p.long_tracks.first(event), n_long = p.long_tracks.count[event];
        for (uint32_t i = first_long + threadIdx.x; i < first_long + n_long; i += blockDim.x)
            if (p.long_tracks.is_muon[i] != 0u) atomicAdd(&counts[first_lumi_plume - 1u], 1u);
    }
};

/// Shared memory of luminosity_fill_counters.
struct lumi_scratch {
    uint32_t counts[n_lumi_counters];
    float values[n_lumi_counters];  // of counters with a shift or a scale
    uint32_t is_saturated;
};

/// Fill the counters of an event. `Counting`: lumi_counting or another form of it.
template <typename Counting, typename Parameters>
__device__ void fill_lumi_counters(const Parameters& p, uint32_t event, lumi_scratch& scratch)
{
    if (!p.takes(event)) return;
    uint32_t* const counts = scratch.counts;
    float* const values = scratch.values;
    for (uint32_t i = threadIdx.x; i < n_lumi_counters; i += blockDim.x) counts[i] = 0, values[i] = 0.f;
    if (threadIdx.x == 0) scratch.is_saturated = 0;
    __syncthreads();

    const Counting counting{p, event, counts};
    counting.count_velo();
    counting.count_scifi();
    const bool fits = p.events.ecal_energy[event] <= max_lumi_energy;
    if (fits) counting.count_ecal(*p.ecal_geometry, p.events.ecal_adc + event * n_ecal_cells);
    counting.count_muons();

    const uint16_t* const plume = p.events.plume_adc + event * n_plume_channels;
    for (uint32_t i = threadIdx.x; i < 2u * n_plume_lumi_channels; i += blockDim.x) {
        const uint32_t half = i / n_plume_lumi_channels, channel = i % n_plume_lumi_channels;
        counts[first_lumi_plume + 3u + i] = plume[32u * half + channel];
    }
    __syncthreads();

    for (uint32_t i = threadIdx.x; i < n_lumi_ecal; i += blockDim.x) {
        const auto sum = static_cast<int32_t>(counts[first_lumi_ecal + i]);
        values[first_lumi_ecal + i] = fits ? static_cast<float>(sum) / lumi_energy_units : more_than_any_counter;
    }
    const uint32_t n_vertices = p.pvs.count[event];
    if (threadIdx.x == 0) {
        counts[first_lumi_velo] = p.velo_tracks.count[event];
        counts[first_lumi_vertex] = n_vertices;
        if (n_vertices != 0u) {
            const auto& chosen = p.pvs.vertex[p.pvs.first(event) + p.events.odin[event].event_id_low % n_vertices];
            values[first_lumi_vertex + 2u] = chosen.x;
            values[first_lumi_vertex + 3u] = chosen.y;
            values[first_lumi_vertex + 4u] = chosen.z;
        }
        uint32_t sum = 0;
        for (uint32_t i = 0; i < 2u * n_plume_lumi_channels; ++i) sum += counts[first_lumi_plume + 3u + i];
        values[first_lumi_plume] = static_cast<float>(sum) / static_cast<float>(2u * n_plume_lumi_channels);
        constexpr uint32_t used = (1u << n_plume_lumi_channels) - 1u;
        const uint32_t* const masks = p.events.plume_over_threshold + n_plume_masks * event;
        counts[first_lumi_plume + 1u] = masks[0] & used;
        counts[first_lumi_plume + 2u] = masks[1] & used;
        counts[first_lumi_state] = p.events.plume_read[event];
    }
    __syncthreads();

    const lumi_scales& scales = *p.lumi_scales;
    uint32_t* const stored = p.events.lumi_counters + event * n_lumi_counters;
    for (uint32_t i = threadIdx.x; i + 1u < n_lumi_counters; i += blockDim.x) {
        const uint32_t largest = scales.largest[i];
        uint32_t number = counts[i];
        bool fits_in_bits = number <= largest;
        if (scales.shift[i] != 0.f || scales.scale[i] != 1.f) {
            const float scaled = scales.shift[i] + scales.scale[i] * values[i] + 0.5f;
            fits_in_bits = scaled >= 0.f && scaled < static_cast<float>(largest) + 1.f;
            number = fits_in_bits ? static_cast<uint32_t>(scaled) : scaled > 0.f ? largest : 0u;
        }
        const bool is_coordinate = i >= first_lumi_vertex + 2u && i < first_lumi_scifi;
        if (is_coordinate && n_vertices == 0u) number = 0;
        if (!fits_in_bits) atomicOr(&scratch.is_saturated, 1u);
        stored[i] = min_of(number, largest);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    stored[n_lumi_counters - 1u] = scratch.is_saturated;
    if (scratch.is_saturated != 0u && (p.events.odin[event].event_type & odin_lumi_type) != 0u)
        p.events.flags[event] |= lumi_saturated;
}

}  // namespace hlt

HLT_KERNEL(luminosity_fill_counters)
{
    __shared__ hlt::lumi_scratch scratch;
    hlt::fill_lumi_counters<hlt::lumi_counting<luminosity_fill_counters_parameters>>(p, blockIdx.x, scratch);
}
