// Little-endian integers and the sizes of headers on the wire (docs/formats).
#pragma once

#include <cstddef>
#include <cstdint>

namespace wire {

constexpr std::size_t frame_header_size = 40, crc_at = 36;
constexpr uint32_t frame_magic = 0x464E4C48;
constexpr uint16_t frame_version = 1;

constexpr std::size_t mfp_header_size = 20, max_fragments = 0xFFFF;
constexpr uint16_t mfp_magic = 0x40CE;
constexpr uint8_t no_bank = 255;  // type of an absent bank

constexpr std::size_t bank_header_size = 8;
constexpr uint16_t bank_magic = 0xCBCB;

inline uint16_t u16_at(const uint8_t* bytes) { return static_cast<uint16_t>(bytes[0] | bytes[1] << 8); }
inline uint32_t u32_at(const uint8_t* bytes) { return u16_at(bytes) | static_cast<uint32_t>(u16_at(bytes + 2)) << 16; }
inline uint64_t u64_at(const uint8_t* bytes) { return u32_at(bytes) | static_cast<uint64_t>(u32_at(bytes + 4)) << 32; }

template <typename T>
void put(uint8_t* bytes, T value)
{
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<uint8_t>(value >> (8 * i));
}

constexpr std::size_t aligned(std::size_t size, std::size_t to) { return (size + to - 1) & ~(to - 1); }

// Where the sizes and the fragments of an MFP begin.
constexpr std::size_t sizes_offset(std::size_t n) { return aligned(mfp_header_size + n, 4); }
constexpr std::size_t data_offset(std::size_t n) { return aligned(sizes_offset(n) + 2 * n, 4); }

}  // namespace wire
