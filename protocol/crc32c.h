// CRC32C (Castagnoli), computed during a copy: memory is read once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace crc32c {

// The CRC32C of `size` bytes at `from`, continued from `crc` (0 at the start); copies them to `to` unless it is null.
// The two ranges do not overlap.
using Copy = uint32_t (*)(uint32_t crc, const uint8_t* from, uint8_t* to, std::size_t size);

struct Implementation {
    const char* name;
    Copy copy;
};

// The implementations that this machine can run, the fastest first.
const std::vector<Implementation>& implementations();

// The CRC32C of two consecutive parts, from the CRC32C of each and the size of the second in bytes.
uint32_t joined(uint32_t first, uint32_t second, std::size_t second_size);

}  // namespace crc32c
