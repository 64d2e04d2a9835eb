// Checksum of MDF records (docs/formats/mdf.md).
#pragma once

#include <cstddef>
#include <cstdint>

// Bob Jenkins' one-at-a-time hash, seed 0; characters are signed, as in the C++ code that defined the format.
inline uint32_t jenkins(const uint8_t* bytes, std::size_t size)
{
    uint32_t hash = 0;
    for (std::size_t i = 0; i < size; ++i) {
        hash += static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(bytes[i])));
        hash += hash << 10;
        hash ^= hash >> 6;
    }
    hash += hash << 3;
    hash ^= hash >> 11;
    hash += hash << 15;
    return hash;
}
