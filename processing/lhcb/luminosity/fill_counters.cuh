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

/// Sine of the angle between the beam and the line from the origin to a cell, at the plane of the shower maximum.
__device__ float ecal_sine(const ecal_geometry& geometry, uint32_t cell)
{
    const float x = geometry.x[cell], y = geometry.y[cell];
    const float (&plane)[4] = geometry.planes[1];
    const float z = -(plane[0] * x + plane[1] * y + plane[3]) / plane[2];
    const float radius2 = x * x + y * y;
    return sqrtf(radius2 / (radius2 + z * z));
}

}  // namespace hlt

HLT_KERNEL(luminosity_fill_counters)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t counts[hlt::n_lumi_counters];
    __shared__ float values[hlt::n_lumi_counters];  // of counters with a shift or a scale
    __shared__ uint32_t is_saturated;
    for (uint32_t i = threadIdx.x; i < hlt::n_lumi_counters; i += blockDim.x) counts[i] = 0, values[i] = 0.f;
    if (threadIdx.x == 0) is_saturated = 0;
    __syncthreads();

    const hlt::velo_beam_line beam(*p.velo_geometry);
    const float max_distance2 = p.max_distance * p.max_distance;
    const uint32_t first_track = p.velo_tracks.first(event), n_tracks = p.velo_tracks.count[event];
    for (uint32_t i = first_track + threadIdx.x; i < first_track + n_tracks; i += blockDim.x) {
        const float tx = p.velo_beamline.tx[i], ty = p.velo_beamline.ty[i], z = p.velo_beamline.z[i];
        const float dx = p.velo_beamline.x[i] - beam.x_at(z), dy = p.velo_beamline.y[i] - beam.y_at(z);
        const float slope2 = tx * tx + ty * ty, moment = ty * dx - tx * dy;
        if (z > -p.max_z && z < p.max_z && moment * moment < max_distance2 * slope2)
            atomicAdd(&counts[hlt::first_lumi_velo + 1u], 1u);
        const uint32_t bin = hlt::lumi_eta_bin(slope2, p.velo_tracks.backward[i] != 0u);
        atomicAdd(&counts[hlt::first_lumi_velo + 2u + bin], 1u);
    }

    const uint32_t n_vertices = p.pvs.count[event];
    const auto* const vertices = p.pvs.vertex + p.pvs.first(event);
    for (uint32_t i = threadIdx.x; i < n_vertices; i += blockDim.x) {
        const float z = vertices[i].z;
        const float dx = vertices[i].x - beam.x_at(z), dy = vertices[i].y - beam.y_at(z);
        if (z > -p.max_z && z < p.max_z && dx * dx + dy * dy < max_distance2)
            atomicAdd(&counts[hlt::first_lumi_vertex + 1u], 1u);
    }

    const uint32_t first_hit = p.scifi_hits.first(event), n_hits = p.scifi_hits.count[event];
    for (uint32_t i = first_hit + threadIdx.x; i < first_hit + n_hits; i += blockDim.x) {
        const uint32_t id = p.scifi_hits.id[i];
        const uint32_t module = id >> 11 & 7u, side = id >> 14 & 1u, station = (id >> 18 & 3u) - 1u;
        const uint32_t n_modules = station == hlt::n_lumi_stations - 1u ? 6u : 5u;
        if (station >= hlt::n_lumi_stations || module >= n_modules) continue;
        atomicAdd(&counts[hlt::first_lumi_scifi + hlt::n_lumi_scifi_sums + hlt::scifi_module_stride * station +
                          2u * module + side],
                  1u);
        if (module != 0u)
            atomicAdd(&counts[hlt::first_lumi_scifi + station + (module < 4u ? 0u : hlt::n_lumi_stations)], 1u);
    }

    const hlt::ecal_geometry& ecal = *p.ecal_geometry;
    const int16_t* const adc = p.events.ecal_adc + event * hlt::n_ecal_cells;
    const bool fits = p.events.ecal_energy[event] <= hlt::max_lumi_energy;
    for (uint32_t cell = threadIdx.x; fits && cell < hlt::n_ecal_cells; cell += blockDim.x) {
        if (adc[cell] == hlt::no_ecal_adc) continue;
        const float energy = hlt::lumi_energy_units * hlt::ecal_cell_energy(ecal, cell, adc[cell]);
        const auto total = static_cast<uint32_t>(hlt::floor_to_int(energy + 0.5f));
        const auto across = static_cast<uint32_t>(hlt::floor_to_int(energy * hlt::ecal_sine(ecal, cell) + 0.5f));
        atomicAdd(&counts[hlt::first_lumi_ecal], across);
        atomicAdd(&counts[hlt::first_lumi_ecal + 1u], total);
        atomicAdd(&counts[hlt::first_lumi_ecal + 2u + hlt::lumi_ecal_part(ecal, cell)], across);
    }

    const uint16_t* const stations = p.muon_hits.station_offset + event * hlt::muon_station_stride;
    const uint32_t first_muon_hit = p.muon_hits.first(event);
    for (uint32_t station = 0; station < hlt::n_lumi_stations; ++station)
        for (uint32_t i = stations[station] + threadIdx.x; i < stations[station + 1u]; i += blockDim.x) {
            const uint32_t region = p.muon_hits.tile[first_muon_hit + i] >> 14 & 3u;
            atomicAdd(&counts[hlt::first_lumi_muon + hlt::n_muon_regions * station + region], 1u);
        }
    const uint32_t first_long = p.long_tracks.first(event), n_long = p.long_tracks.count[event];
    for (uint32_t i = first_long + threadIdx.x; i < first_long + n_long; i += blockDim.x)
        if (p.long_tracks.is_muon[i] != 0u) atomicAdd(&counts[hlt::first_lumi_plume - 1u], 1u);

    const uint16_t* const plume = p.events.plume_adc + event * hlt::n_plume_channels;
    for (uint32_t i = threadIdx.x; i < 2u * hlt::n_plume_lumi_channels; i += blockDim.x) {
        const uint32_t half = i / hlt::n_plume_lumi_channels, channel = i % hlt::n_plume_lumi_channels;
        counts[hlt::first_lumi_plume + 3u + i] = plume[32u * half + channel];
    }
    __syncthreads();

    for (uint32_t i = threadIdx.x; i < hlt::n_lumi_ecal; i += blockDim.x) {
        const auto sum = static_cast<int32_t>(counts[hlt::first_lumi_ecal + i]);
        values[hlt::first_lumi_ecal + i] =
            fits ? static_cast<float>(sum) / hlt::lumi_energy_units : hlt::more_than_any_counter;
    }
    if (threadIdx.x == 0) {
        counts[hlt::first_lumi_velo] = n_tracks;
        counts[hlt::first_lumi_vertex] = n_vertices;
        if (n_vertices != 0u) {
            const auto& chosen = vertices[p.events.odin[event].event_id_low % n_vertices];
            values[hlt::first_lumi_vertex + 2u] = chosen.x;
            values[hlt::first_lumi_vertex + 3u] = chosen.y;
            values[hlt::first_lumi_vertex + 4u] = chosen.z;
        }
        uint32_t sum = 0;
        for (uint32_t i = 0; i < 2u * hlt::n_plume_lumi_channels; ++i) sum += counts[hlt::first_lumi_plume + 3u + i];
        values[hlt::first_lumi_plume] = static_cast<float>(sum) / static_cast<float>(2u * hlt::n_plume_lumi_channels);
        constexpr uint32_t used = (1u << hlt::n_plume_lumi_channels) - 1u;
        const uint32_t* const masks = p.events.plume_over_threshold + hlt::n_plume_masks * event;
        counts[hlt::first_lumi_plume + 1u] = masks[0] & used;
        counts[hlt::first_lumi_plume + 2u] = masks[1] & used;
        counts[hlt::first_lumi_state] = p.events.plume_read[event];
    }
    __syncthreads();

    const hlt::lumi_scales& scales = *p.lumi_scales;
    uint32_t* const stored = p.events.lumi_counters + event * hlt::n_lumi_counters;
    for (uint32_t i = threadIdx.x; i + 1u < hlt::n_lumi_counters; i += blockDim.x) {
        const uint32_t largest = scales.largest[i];
        uint32_t number = counts[i];
        bool fits_in_bits = number <= largest;
        if (scales.shift[i] != 0.f || scales.scale[i] != 1.f) {
            const float scaled = scales.shift[i] + scales.scale[i] * values[i] + 0.5f;
            fits_in_bits = scaled >= 0.f && scaled < static_cast<float>(largest) + 1.f;
            number = fits_in_bits ? static_cast<uint32_t>(scaled) : scaled > 0.f ? largest : 0u;
        }
        const bool is_coordinate = i >= hlt::first_lumi_vertex + 2u && i < hlt::first_lumi_scifi;
        if (is_coordinate && n_vertices == 0u) number = 0;
        if (!fits_in_bits) atomicOr(&is_saturated, 1u);
        stored[i] = hlt::min_of(number, largest);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    stored[hlt::n_lumi_counters - 1u] = is_saturated;
    if (is_saturated != 0u && (p.events.odin[event].event_type & hlt::odin_lumi_type) != 0u)
        p.events.flags[event] |= hlt::lumi_saturated;
}
