// Written by tools/generate_device_headers.py from alice/tpc/candidates/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t tpc_eta_cells = 18;
constexpr uint32_t tpc_phi_cells = 64;
constexpr uint32_t tpc_pt_units = 200;
constexpr uint32_t tpc_max_track_pt = 50;
constexpr uint32_t tpc_max_jets = 16;

struct tpc_jet {
    float pt;  // sum of the transverse momenta of its tracks, GeV/c
    float background;  // mean of the event on as many cells, GeV/c
    float eta;  // centre of the cone; phi: rad, from -pi to pi
    float phi;
    uint32_t n_tracks;
    uint32_t n_cells;  // cells of the cone inside of the acceptance
};
static_assert(sizeof(tpc_jet) == 24);

}  // namespace hlt
