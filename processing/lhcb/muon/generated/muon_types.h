// Written by tools/generate_device_headers.py from lhcb/muon/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_muon_stations = 4;
constexpr uint32_t n_muon_regions = 4;
constexpr uint32_t muon_station_stride = 8;
constexpr uint32_t max_muon_hits_of_event = 65535;
constexpr uint32_t muon_hit_padding = 8;
constexpr uint32_t no_muon_hit = 65535;
constexpr float missing_muon_feature = -10000.0f;
constexpr uint32_t n_muon_features = 20;
constexpr uint32_t n_muon_stub_numbers = 5;
constexpr uint32_t max_muon_stubs = 256;
constexpr uint32_t muon_no_crossing = 128;
constexpr uint32_t muon_bank_type = 13;
constexpr uint32_t muon_version_batches = 2;
constexpr uint32_t muon_version_links = 3;
constexpr uint32_t n_muon_batches = 4;
constexpr uint32_t n_muon_banks = 10;
constexpr uint32_t muon_cell_words = 1024;
constexpr uint32_t no_muon_cell = 65535;
constexpr uint32_t max_muon_links = 24;
constexpr uint32_t muon_channels_of_link = 48;
constexpr uint32_t max_muon_times_of_link = 12;
constexpr uint32_t muon_link_hits_size = 7;
constexpr uint32_t muon_link_map = 32;
constexpr uint32_t muon_link_map_size = 3;
constexpr uint32_t muon_synchronisation = 16;

struct muon_cell {
    uint32_t tile;  // id
    uint32_t rows;  // number of y strips that cross an x strip; 0 for other cells
    uint32_t first_row;  // cell of the first y strip
    uint32_t first_pad;  // place of the pad at the first y strip; the others follow
};
static_assert(sizeof(muon_cell) == 16);

struct muon_place {
    float x;  // mm, the middle
    float y;
    float z;
    float dx;  // mm, half size
    float dy;
};
static_assert(sizeof(muon_place) == 20);

struct muon_geometry {
    uint32_t n_banks;  // of batches that are read
    uint32_t n_streams;  // of links that are read
    uint32_t first_channel[55];  // of each bank of batches, then of each stream, in cell_of_channel
    uint32_t n_links[44];  // active links of each stream
    uint32_t first_word[5];  // of each station in the bit map of cells
    muon_cell cell[32768];
    muon_place place[94208];  // of cells, then of the pads of crossed strips
    uint16_t cell_of_channel[70656];  // or no_muon_cell
};
static_assert(sizeof(muon_geometry) == 2550184);

struct muon_field_of_interest {
    float a[4][8];  // by station: x in each region, then y; a + b exp(-c p) half sizes of a hit
    float b[4][8];
    float c[4][8];  // 1/GeV
};
static_assert(sizeof(muon_field_of_interest) == 384);

}  // namespace hlt
