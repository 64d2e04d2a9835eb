// The shower at the place where a long track crosses the calorimeter (docs/physics/calorimeter.md).
//
// The cell is that of the track at the shower maximum. Its neighbours and itself, those with energy, give the energy,
// the mean place and the spread of the shower; lengths are in widths of the cell.
// In:  events.ecal_adc, ecal_geometry, long_tracks.{count, x, y, tx, ty}.
// Out: long_tracks.{ecal_cell, shower_energy, shower_dx, shower_dy, shower_spread_x, shower_spread_y, shower_peak}; all
//      numbers are 0 without energy, and without a cell that was read out.
// One block per event, threads stride over long tracks. Bounds: long tracks of an event as long_tracks.count.
#pragma once

#include "lhcb/calorimeter/cells.cuh"
#include "lhcb/calorimeter/generated/ecal_measure_showers.h"
#include "lhcb/tracks/long/generated/long_types.h"

namespace hlt {

/// Sums over cells, weighted with their energies (MeV); places in mm from a point.
struct ecal_shower_sums {
    float energy = 0.f, largest = 0.f;
    float x = 0.f, y = 0.f, xx = 0.f, yy = 0.f;

    __device__ void add(float of_cell, float dx, float dy)
    {
        if (!(of_cell > 0.f)) return;
        energy += of_cell;
        largest = max_of(largest, of_cell);
        x += of_cell * dx;
        y += of_cell * dy;
        xx += of_cell * dx * dx;
        yy += of_cell * dy * dy;
    }
};

/// Square root of a variance, which rounding may make negative.
__device__ float ecal_spread(float mean_of_squares, float mean)
{
    return sqrtf(max_of(mean_of_squares - mean * mean, 0.f));
}

}  // namespace hlt

HLT_KERNEL(ecal_measure_showers)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const hlt::ecal_geometry& geometry = *p.ecal_geometry;
    const int16_t* const adc = p.events.ecal_adc + event * hlt::n_ecal_cells;
    const uint32_t first = p.long_tracks.first(event);

    for (uint32_t track = first + threadIdx.x; track < first + p.long_tracks.count[event]; track += blockDim.x) {
        const float tx = p.long_tracks.tx[track], ty = p.long_tracks.ty[track];
        const hlt::ecal_line line{p.long_tracks.x[track] - hlt::z_end_scifi * tx,
                                  p.long_tracks.y[track] - hlt::z_end_scifi * ty, tx, ty};
        const float z = line.z_at(geometry.planes[1]);
        const float x = line.x + z * tx, y = line.y + z * ty;
        uint32_t cell = hlt::ecal_cell_of(geometry, x, y, z);
        if (cell != hlt::no_ecal_cell && adc[cell] == hlt::no_ecal_adc) cell = hlt::no_ecal_cell;

        hlt::ecal_shower_sums sums;
        if (cell != hlt::no_ecal_cell) {
            // Distances from the centre of the cell are small, so that the squares keep their digits.
            const float x_cell = geometry.x[cell], y_cell = geometry.y[cell];
            sums.add(hlt::ecal_cell_energy(geometry, cell, adc[cell]), 0.f, 0.f);
            for (const uint16_t other : geometry.neighbours[cell])
                if (other != hlt::no_ecal_cell && adc[other] != hlt::no_ecal_adc)
                    sums.add(hlt::ecal_cell_energy(geometry, other, adc[other]), geometry.x[other] - x_cell,
                             geometry.y[other] - y_cell);
        }
        const bool has_energy = sums.energy > 0.f;
        float dx = 0.f, dy = 0.f, spread_x = 0.f, spread_y = 0.f, peak = 0.f;
        if (has_energy) {
            const float cells_per_module = cell >= hlt::first_inner_ecal_cell    ? 3.f
                                           : cell >= hlt::first_middle_ecal_cell ? 2.f
                                                                                 : 1.f;
            const float per_width = cells_per_module / geometry.module_size;
            const float mean_x = sums.x / sums.energy, mean_y = sums.y / sums.energy;
            dx = (mean_x + (geometry.x[cell] - x)) * per_width;
            dy = (mean_y + (geometry.y[cell] - y)) * per_width;
            spread_x = hlt::ecal_spread(sums.xx / sums.energy, mean_x) * per_width;
            spread_y = hlt::ecal_spread(sums.yy / sums.energy, mean_y) * per_width;
            peak = sums.largest / sums.energy;
        }
        p.long_tracks.ecal_cell[track] = static_cast<uint16_t>(cell);
        p.long_tracks.shower_energy[track] = sums.energy;
        p.long_tracks.shower_dx[track] = dx;
        p.long_tracks.shower_dy[track] = dy;
        p.long_tracks.shower_spread_x[track] = spread_x;
        p.long_tracks.shower_spread_y[track] = spread_y;
        p.long_tracks.shower_peak[track] = peak;
    }
}
