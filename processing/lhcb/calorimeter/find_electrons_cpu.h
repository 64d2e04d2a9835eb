// Energies along long tracks on the CPU: the cells of eight or sixteen tracks are found at once, their energies are
// added track by track.
#pragma once

#include "lhcb/calorimeter/cells_cpu.h"
#include "lhcb/calorimeter/find_electrons.cuh"
#include "lhcb/tracks/kalman/long_tracks_cpu.h"

namespace hlt {

/// The cells of lines at some depths.
struct ecal_cells_of_lines {
    uint32_t cells[ecal_energy_sum::max_depths][n_wide];
    uint32_t n = 0;

    void add(const ecal_geometry& geometry, const ecal_line_of<float_wide>& line, const float_wide& z)
    {
        store_wide(cells[n++], ecal_cells_of(geometry, line.x + z * line.tx, line.y + z * line.ty, z));
    }
};

}  // namespace hlt

HLT_CPU_FORM(ecal_find_electrons)
{
    using hlt::float_wide;
    if (!hlt::compares_eight_lanes) return ecal_find_electrons(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const hlt::ecal_geometry& geometry = *p.ecal_geometry;
    const int16_t* const adc = p.events.ecal_adc + event * hlt::n_ecal_cells;
    const uint32_t first = p.long_tracks.first(event), n_tracks = p.long_tracks.count[event];
    const uint32_t first_velo = p.velo_beamline.first(event);
    uint32_t n_electrons = 0;

    for (uint32_t group = 0; group < n_tracks; group += hlt::n_wide) {
        const hlt::long_tracks_in_lanes tracks{first + group, hlt::min_of(hlt::n_wide, n_tracks - group)};
        const float_wide tx = tracks.of(p.long_tracks.tx), ty = tracks.of(p.long_tracks.ty);
        const hlt::ecal_line_of<float_wide> line{tracks.of(p.long_tracks.x) - hlt::z_end_scifi * tx,
                                                 tracks.of(p.long_tracks.y) - hlt::z_end_scifi * ty, tx, ty};
        hlt::ecal_cells_of_lines shower, photon;
        hlt::ecal_depths_of<float_wide>(geometry, line).for_shower([&](const float_wide& z) {
            shower.add(geometry, line, z);
        });
        const auto of_velo = [&](const float* column) {
            return tracks.each([&](uint32_t track) { return column[first_velo + p.long_tracks.velo_track[track]]; });
        };
        const float_wide velo_tx = of_velo(p.velo_beamline.tx), velo_ty = of_velo(p.velo_beamline.ty);
        const float_wide velo_z = of_velo(p.velo_beamline.z);
        const hlt::ecal_line_of<float_wide> straight{of_velo(p.velo_beamline.x) - velo_z * velo_tx,
                                                     of_velo(p.velo_beamline.y) - velo_z * velo_ty, velo_tx, velo_ty};
        hlt::ecal_depths_of<float_wide>(geometry, straight).for_photon([&](const float_wide& z) {
            photon.add(geometry, straight, z);
        });

        for (uint32_t lane = 0; lane < tracks.n; ++lane) {
            const auto add_cells = [&](const hlt::ecal_cells_of_lines& of, hlt::ecal_energy_sum& sum) {
                uint32_t is_read = 0;
                for (uint32_t depth = 0; depth < of.n; ++depth)
                    is_read |= (sum.add_cell(of.cells[depth][lane]) ? 1u : 0u) << depth;
                return is_read;
            };
            hlt::ecal_energy_sum of_track{&geometry, adc}, of_photon{&geometry, adc};
            const uint32_t is_read = add_cells(shower, of_track);
            n_electrons += hlt::store_shower(p, tracks.first + lane, of_track.energy, (is_read >> 1 & 1u) != 0u);
            add_cells(photon, of_photon);
            hlt::store_photon(p, tracks.first + lane, of_photon.energy, velo_tx[lane], velo_ty[lane]);
        }
    }
    p.events.electrons[event] = n_electrons;
}
