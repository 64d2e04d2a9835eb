// CRC32C (Castagnoli), computed while bytes are copied: memory is read once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace crc32c {

// The CRC32C of `size` bytes at `from`, going on from `crc` (0 at the beginning); copies them to `to` unless that is
// null. The two ranges do not overlap.
using Copy = uint32_t (*)(uint32_t crc, const uint8_t* from, uint8_t* to, std::size_t size);

struct Implementation {
    const char* name;
    Copy copy;
};

// Those that this machine can run, the fastest first.
const std::vector<Implementation>& implementations();

}  // namespace crc32c
