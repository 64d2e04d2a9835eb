// Little-endian numbers: all wire and file formats use them.
#pragma once

#include <cstddef>
#include <cstdint>

inline uint16_t u16_at(const uint8_t* bytes) { return static_cast<uint16_t>(bytes[0] | bytes[1] << 8); }
inline uint32_t u32_at(const uint8_t* bytes) { return u16_at(bytes) | static_cast<uint32_t>(u16_at(bytes + 2)) << 16; }
inline uint64_t u64_at(const uint8_t* bytes) { return u32_at(bytes) | static_cast<uint64_t>(u32_at(bytes + 4)) << 32; }

inline void put_u16(uint8_t* bytes, uint32_t value)
{
    bytes[0] = static_cast<uint8_t>(value);
    bytes[1] = static_cast<uint8_t>(value >> 8);
}

inline void put_u32(uint8_t* bytes, uint32_t value)
{
    put_u16(bytes, value);
    put_u16(bytes + 2, value >> 16);
}

inline constexpr std::size_t padded_to_4(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

inline void put_u64(uint8_t* bytes, uint64_t value)
{
    put_u32(bytes, static_cast<uint32_t>(value));
    put_u32(bytes + 4, static_cast<uint32_t>(value >> 32));
}
