// Written by tools/generate_device_headers.py from lhcb/scifi/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t scifi_detector = 5;
constexpr uint32_t n_scifi_layers = 12;
constexpr uint32_t n_scifi_banks = 240;
constexpr uint32_t n_scifi_mats = 1024;
constexpr uint32_t n_scifi_mat_indices = 1536;
constexpr uint32_t first_scifi_mat = 512;
constexpr uint32_t scifi_channels_per_mat = 512;
constexpr uint32_t scifi_sipms_per_mat = 4;
constexpr uint32_t scifi_channels_per_link = 128;
constexpr uint32_t scifi_links_of_bank = 24;
constexpr uint32_t max_scifi_words_of_links = 744;
constexpr uint32_t no_scifi_place = 65535;
constexpr uint32_t scifi_piece = 4;
constexpr uint32_t scifi_min_edge_distance = 3;
constexpr uint32_t scifi_narrow = 4;
constexpr uint32_t scifi_piece_of_wide = 0;
constexpr uint32_t n_scifi_zones = 24;
constexpr uint32_t scifi_zone_stride = 32;
constexpr uint32_t max_scifi_hits_of_event = 65535;
constexpr uint32_t scifi_hit_padding = 8;
constexpr uint32_t no_scifi_hit = 65535;

enum class scifi_rule : uint32_t {
    one_hit_per_word = 4,
    version_5 = 5,
    version_6 = 6,
    version_7 = 7,
    version_8 = 8,
};

struct scifi_mat {
    float x_first;  // mm, of half-channel 0 at y = 0
    float dx_du;
    float z_first;  // mm, at y = 0
    float dz_du;
    float y_end_first;  // mm, end near the beam of the fibre of half-channel 0
    float dy_end_du;
    float length_y;  // mm, from that end to the SiPM; negative below the beam
    float dx_dy;
    float dz_dy;
    float half_pitch;  // mm
    float die_gap;  // mm
    float sipm_pitch;  // mm
    uint32_t place;  // in the order of zone and x
    uint32_t zone;
    uint32_t falls;  // 1 if x falls with the channel
    uint32_t bank;  // bank of the mat
};
static_assert(sizeof(scifi_mat) == 64);

struct scifi_read_out {
    uint16_t first_mat[240];  // index of the mat of link 0 of each bank
    uint16_t n_mats[240];  // number of consecutive mats of each bank
    uint16_t mat[1024];  // at each place, in the order of zone and x
    uint16_t first_place[32];  // of each zone; from 24 on: the number of mats
    uint32_t n_masked;  // channels
    uint32_t masked[24576];  // a bit for each channel, 512 times the mat index plus the channel
};
static_assert(sizeof(scifi_read_out) == 101380);

struct scifi_sipms {
    uint32_t n_banks;  // with lists of SiPMs
    uint16_t source[512];  // id of each bank, rising
    uint16_t place[12288];  // of the SiPM of each link: 4 times that of its mat plus its number there; 65535: off
};
static_assert(sizeof(scifi_sipms) == 25604);

}  // namespace hlt
