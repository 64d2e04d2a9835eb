// Written by tools/generate_device_headers.py from mu3e/vertices/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t mu3e_max_pairs = 1024;
constexpr uint32_t mu3e_max_vertices = 32;
constexpr uint32_t mu3e_max_windows = 8;
constexpr uint32_t window_of_vertex = 1;
constexpr uint32_t window_of_long_tracks = 2;
constexpr uint32_t window_of_recurling_tracks = 4;

struct mu3e_vertex {
    float x;  // mm
    float y;  // mm
    float z;  // mm
    float chi2;  // of the three tracks
    float distance;  // mm, largest one of a track from the vertex
    float energy;  // MeV, sum of the three
    float momentum;  // MeV/c, size of their vector sum
    float mass;  // MeV/c^2
    float time;  // ns since the start of the sub-slice, mean of the tracks
    uint32_t first;  // ns since the start of the sub-slice, of the first hit
    uint32_t last;  // ns, of the last hit
    uint32_t track0;  // place of the first positron among the tracks of the sub-slice
    uint32_t track1;  // second positron
    uint32_t track2;  // electron
};
static_assert(sizeof(mu3e_vertex) == 56);

struct mu3e_window {
    int32_t start_ns;  // first ns that is kept, since the start of the sub-slice; may be negative
    int32_t end_ns;  // first ns behind it
    uint32_t lines;  // 1: it has a vertex; 2: all its tracks have a fourth hit; 4: a recurling one
    uint32_t vertices;  // number of vertices that begin in it
    float chi2;  // smallest one of its vertices
    float energy_error;  // MeV, smallest distance of the energy from the mass of the muon
    float momentum;  // MeV/c, smallest sum of momenta
    uint32_t hits;  // largest number of hits of the tracks of a vertex
};
static_assert(sizeof(mu3e_window) == 32);

}  // namespace hlt
