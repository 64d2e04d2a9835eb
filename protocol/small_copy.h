// Copies of mostly small data: for the payload of a bank, a call of the C library takes longer than the copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

// Copies n to 2 n bytes; the last n bytes are a copy of their own.
template <std::size_t n>
inline void copy_both_ends(uint8_t* to, const uint8_t* from, std::size_t size)
{
    std::memcpy(to, from, n);
    std::memcpy(to + size - n, from + size - n, n);
}

inline void copy_small(uint8_t* to, const uint8_t* from, std::size_t size)
{
    constexpr std::size_t step = 32, most_inlined = 512;
    if (size > most_inlined) {
        std::memcpy(to, from, size);
    } else if (size >= step) {
        for (std::size_t i = 0; i + step < size; i += step) std::memcpy(to + i, from + i, step);
        std::memcpy(to + size - step, from + size - step, step);
    } else if (size >= 16) {
        copy_both_ends<16>(to, from, size);
    } else if (size >= 8) {
        copy_both_ends<8>(to, from, size);
    } else if (size >= 4) {
        copy_both_ends<4>(to, from, size);
    } else {
        for (std::size_t i = 0; i < size; ++i) to[i] = from[i];
    }
}
