// Written by tools/generate_device_headers.py from lhcb/calorimeter/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_ecal_cells = 6016;
constexpr uint32_t first_middle_ecal_cell = 2688;
constexpr uint32_t first_inner_ecal_cell = 4480;
constexpr uint32_t n_ecal_neighbours = 9;
constexpr uint32_t no_ecal_cell = 65535;
constexpr uint32_t ecal_void_adc = 32768;
constexpr uint32_t max_ecal_cards = 256;
constexpr uint32_t no_ecal_card = 65535;
constexpr uint32_t n_ecal_sources = 256;
constexpr uint32_t n_ecal_slots = 3;
constexpr uint32_t n_ecal_channels = 32;
constexpr uint32_t ecal_skipped_words = 3;
constexpr uint32_t ecal_board_words = 12;
constexpr uint32_t ecal_read_out_cards = 3;
constexpr uint32_t ecal_read_out_boards = 4;
constexpr uint32_t ecal_cards_bank = 21;
constexpr uint32_t ecal_boards_bank = 77;
constexpr uint32_t ecal_version_cards = 2;
constexpr uint32_t ecal_version_big_endian = 4;
constexpr uint32_t ecal_version_little_endian = 5;
constexpr uint32_t max_ecal_clusters = 1504;
constexpr uint32_t max_photon_pairs = 4096;
constexpr uint32_t max_dielectrons = 256;
constexpr float ecal_shower_maximum_z = 12650.0f;

struct ecal_geometry {
    uint32_t read_out;  // bits of ecal_read_out_cards, of ecal_read_out_boards, or of both
    uint32_t code_offset;  // code of card 0
    uint32_t n_cards;
    float pedestal;  // ADC counts
    float module_size;  // mm, of a cell of the outer region
    float to_local[3][4];  // rotation and translation (mm), row by row
    float planes[3][4];  // front, shower maximum, back: a x + b y + c z + d = 0
    float x[6016];  // mm, centre
    float y[6016];  // mm, centre
    float gain[6016];  // MeV per count
    uint16_t neighbours[6016][9];  // or no_ecal_cell
    uint16_t cell_of_channel[256][32];  // or no_ecal_cell
    uint16_t card_of_slot[256][3];  // by source, or no_ecal_card
    uint8_t is_card[256];  // 0 for a code that no card has
    float sine[6016];  // of the angle between the beam and the line from the origin to the cell
};
static_assert(sizeof(ecal_geometry) == 222836);

}  // namespace hlt
