// Checksum of MDF records (docs/formats/mdf.md).
#pragma once

#include <cstddef>
#include <cstdint>

// Bob Jenkins' one-at-a-time hash, seed 0. Characters are signed, as in the C++ code that defined the format.
inline uint32_t jenkins_step(uint32_t hash, uint32_t byte)
{
    hash += static_cast<uint32_t>(static_cast<int32_t>(byte << 24) >> 24);
    hash += hash << 10;
    return hash ^ hash >> 6;
}

inline uint32_t jenkins_end(uint32_t hash)
{
    hash += hash << 3;
    hash ^= hash >> 11;
    return hash + (hash << 15);
}

inline uint32_t jenkins(const uint8_t* bytes, std::size_t size)
{
    uint32_t hash = 0;
    for (std::size_t i = 0; i < size; ++i) hash = jenkins_step(hash, bytes[i]);
    return jenkins_end(hash);
}

struct HashedBytes {
    const uint8_t* data;
    std::size_t size;
};

// The hashes of n > 0 pieces of memory. Each byte depends on the previous one, so the hash of one piece is slow. Here
// the compiler vectorises over sixteen pieces.
void jenkins(const HashedBytes* pieces, std::size_t n, uint32_t* hashes);
