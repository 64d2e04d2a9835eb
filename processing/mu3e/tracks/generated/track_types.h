// Written by tools/generate_device_headers.py from mu3e/tracks/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t mu3e_max_triplets = 2048;
constexpr uint32_t mu3e_max_tracks = 512;
constexpr uint32_t mu3e_max_combinations = 4194304;
constexpr uint32_t no_pixel = 4294967295;

struct mu3e_track {
    float x;  // mm, of the hit in layer 0
    float y;  // mm
    float z;  // mm
    float px;  // MeV/c there, outwards
    float py;  // MeV/c
    float pz;  // MeV/c
    float momentum;  // MeV/c
    float chi2;  // of all its triplets
    float time;  // ns since the start of the sub-slice, mean of the hits of its triplet
    int32_t charge;  // 1 or -1
    uint32_t hits;  // 3: the triplet alone; 4 or 5: with one in layer 3 or a recurling one
    uint32_t first;  // ns since the start of the sub-slice, of the first hit of the triplet
    uint32_t last;  // ns, of the last one
    uint32_t pixel0;  // sensor << 16 | column << 8 | row
    uint32_t pixel1;
    uint32_t pixel2;
    uint32_t pixel3;  // no_pixel: no such hit
    uint32_t recurl;  // of the recurling hit, or no_pixel
};
static_assert(sizeof(mu3e_track) == 72);

}  // namespace hlt
