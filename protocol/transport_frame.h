// The transport header in front of an MFP (docs/formats/transport-frame.md).
#pragma once

#include <cstddef>
#include <cstdint>

constexpr std::size_t frame_header_size = 48, crc_at = 36, token_at = 40;
constexpr uint32_t frame_magic = 0x464E4C48;
constexpr uint16_t frame_version = 2;
