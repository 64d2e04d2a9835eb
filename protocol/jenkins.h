// Checksum of MDF records (docs/formats/mdf.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

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
inline void jenkins(const HashedBytes* pieces, std::size_t n, uint32_t* hashes)
{
    constexpr std::size_t lanes = 16, none = ~std::size_t{0};
    const uint8_t* at[lanes];
    std::size_t left[lanes], piece[lanes];
    uint32_t hash[lanes] = {};
    std::size_t next = 0;
    const auto refill = [&](std::size_t lane) {
        hash[lane] = 0;
        piece[lane] = next < n ? next++ : none;
        if (piece[lane] != none) {
            at[lane] = pieces[piece[lane]].data;
            left[lane] = pieces[piece[lane]].size;
        }
    };
    for (std::size_t lane = 0; lane < lanes; ++lane) refill(lane);
    while (true) {
        std::size_t shortest = none, busy = 0;
        for (std::size_t lane = 0; lane < lanes; ++lane)
            if (piece[lane] != none && left[lane] < shortest) shortest = left[busy = lane];
        if (shortest == none) return;
        // A lane without work repeats one that has work.
        for (std::size_t lane = 0; lane < lanes; ++lane)
            if (piece[lane] == none) at[lane] = at[busy];
        // Words are assembled some time before their use: a load right after smaller stores would wait for them.
        constexpr std::size_t ahead = 16;
        std::size_t i = 0;
        for (; i + 4 * ahead <= shortest; i += 4 * ahead) {
            uint32_t words[ahead][lanes];
            for (std::size_t lane = 0; lane < lanes; ++lane)
                for (std::size_t k = 0; k < ahead; ++k) std::memcpy(&words[k][lane], at[lane] + i + 4 * k, 4);
            for (std::size_t k = 0; k < ahead; ++k)
                for (int byte = 0; byte < 4; ++byte)
                    for (std::size_t lane = 0; lane < lanes; ++lane)
                        hash[lane] = jenkins_step(hash[lane], words[k][lane] >> 8 * byte);
        }
        for (; i < shortest; ++i)
            for (std::size_t lane = 0; lane < lanes; ++lane) hash[lane] = jenkins_step(hash[lane], at[lane][i]);
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            at[lane] += shortest;
            if (piece[lane] == none || (left[lane] -= shortest)) continue;
            hashes[piece[lane]] = jenkins_end(hash[lane]);
            refill(lane);
        }
    }
}
