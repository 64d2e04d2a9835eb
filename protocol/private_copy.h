// A copy of bytes that another process may change, taken at one moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

template <std::size_t size>
struct PrivateCopy {
    uint8_t bytes[size] = {};

    // Copies the first `n` bytes at `from`, at most `size`.
    PrivateCopy(const uint8_t* from, std::size_t n)
    {
        std::memcpy(bytes, from, n < size ? n : size);
        // The compiler must not read the original again instead of the copy.
        asm volatile("" : : "r"(bytes) : "memory");
    }
};
