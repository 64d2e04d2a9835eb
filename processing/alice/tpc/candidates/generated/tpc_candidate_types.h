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
constexpr uint32_t tpc_v0_phi_bins = 64;
constexpr uint32_t tpc_v0_z_bins = 50;
constexpr uint32_t tpc_v0_phi_reach = 10;
constexpr uint32_t tpc_v0_z_reach = 5;
constexpr uint32_t tpc_v0_bins = 3200;
constexpr uint32_t tpc_v0_no_bin = 65535;
constexpr uint32_t tpc_v0_positive = 32768;
constexpr uint32_t tpc_max_partners = 2048;
constexpr uint32_t tpc_max_v0_pt = 50;
constexpr uint32_t tpc_kept_partners = 4;
constexpr float tpc_pion_mass = 0.13957039f;
constexpr float tpc_proton_mass = 0.9382721f;
constexpr float tpc_kaon_mass = 0.497611f;
constexpr float tpc_lambda_mass = 1.115683f;

struct tpc_jet {
    float pt;  // sum of the transverse momenta of its tracks, GeV/c
    float background;  // mean of the event on as many cells, GeV/c
    float eta;  // centre of the cone; phi: rad, from -pi to pi
    float phi;
    uint32_t n_tracks;
    uint32_t n_cells;  // cells of the cone inside of the acceptance
};
static_assert(sizeof(tpc_jet) == 24);

struct tpc_v0_track {
    float x;  // place of the track, global frame, cm, as y and z
    float y;
    float z;
    float mx;  // its circle is k / 2 (X^2 + Y^2) - mx X - my Y + e = 0; (mx - k X, my - k Y) points to its left
    float my;
    float e;
    float k;  // curvature, 1/cm; positive ones turn to the left
    float slope;  // pz / pT
    float z_beam;  // z - slope * radius: z at the beam line of a straight track from there
    float pt;  // GeV/c
    float significance;  // distance of the beam line over its error
};
static_assert(sizeof(tpc_v0_track) == 44);

struct tpc_v0 {
    float x;  // where the tracks are closest, global frame, cm, as y and z
    float y;
    float z;
    float mass_k0s;  // of pi+ pi-, GeV/c2; mass_lambda: of p pi-, mass_antilambda: of pi+ and an antiproton
    float mass_lambda;
    float mass_antilambda;
    float pt;  // GeV/c, of both tracks together; slope: pz / pT of both
    float slope;
    float dca;  // distance of the tracks there, cm
    float pointing;  // cosine of the angle between momentum and the way from the beam line, in the transverse plane
    uint32_t positive;  // number of the merged track in the event; negative alike
    uint32_t negative;
};
static_assert(sizeof(tpc_v0) == 48);

}  // namespace hlt
