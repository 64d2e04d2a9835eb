// Written by tools/generate_device_headers.py from km3net/hits/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t km3net_subdetector = 1;
constexpr uint32_t km3net_hits_bank = 1;
constexpr uint32_t km3net_hits_version = 1;
constexpr uint32_t km3net_hit_bytes = 8;
constexpr uint32_t km3net_max_hits = 1024;
constexpr uint32_t km3net_max_candidates = 256;
constexpr uint32_t km3net_max_windows = 16;
constexpr uint32_t km3net_max_tested = 64;
constexpr uint32_t km3net_sources = 2048;

enum km3net_trigger : uint32_t {
    trigger_n7 = 1,
    trigger_dn7 = 2,
    trigger_sc = 4,
    trigger_fc = 8,
    trigger_afc = 16,
    trigger_charge = 32,
    trigger_causal = 64,
};

struct km3net_candidate {
    uint32_t time;  // of its first hit, ns since the start of the sub-slice
    uint32_t triggers;  // bits of km3net_trigger
    uint32_t hits;  // in the time window
    uint32_t pmts;  // different ones among the tested hits
    uint32_t causal_hits;  // greatest group found of hits that light connects
    uint32_t charge;  // of the tested hits, hundredths of a photoelectron
};
static_assert(sizeof(km3net_candidate) == 24);

struct km3net_window {
    int32_t start_ns;  // first ns that is kept, since the start of the sub-slice; may be negative
    int32_t end_ns;  // first ns behind it
    uint32_t lines;  // triggers of all its candidates, bits of km3net_trigger
    uint32_t candidates;  // number of hits that begin one
    uint32_t hits;  // largest number of its candidates
    uint32_t pmts;  // largest number of its candidates
    uint32_t causal_hits;  // largest number of its candidates
    uint32_t charge;  // largest of its candidates, hundredths of a photoelectron
};
static_assert(sizeof(km3net_window) == 32);

}  // namespace hlt
