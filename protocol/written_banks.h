// Banks that a node can write to its files and read again (docs/reference/protocol.md, "Limits of what can be
// written"). The intake refuses an MFP with another bank: what is acknowledged must be in the files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "raw_bank.h"
#include "trigger_banks.h"

constexpr uint8_t tae_header = 48;  // readers of files take a record that begins with it for time-aligned events
constexpr uint16_t max_bank_payload = max_bank_size - bank_header_size;

// Whether the node writes a bank of this type only itself, or never.
inline bool is_type_of_node(uint8_t type) { return (type == tae_header) | trigger_banks::is_trigger_bank(type); }

inline bool can_be_written(uint8_t type, std::size_t size) { return type != tae_header && size <= max_bank_payload; }

// Reason to refuse the n banks of an MFP (a RejectReason value), or "". `types` and `sizes` are its arrays.
inline const char* refusal_of_banks(const uint8_t* types, const uint8_t* sizes, uint32_t n)
{
    // No early end: without branches the compiler handles many banks at once.
    uint8_t of_node = 0;
    for (uint32_t i = 0; i < n; ++i) of_node |= static_cast<uint8_t>(is_type_of_node(types[i]));
    if (of_node) return "reserved_type";
    // Sizes above the limit are those whose bits above the lowest three are all set: a test without order is fast.
    static_assert(max_bank_payload == 0xFFF7);
    uint16_t too_large = 0;
    for (uint32_t i = 0; i < n; ++i) {
        uint16_t size;
        std::memcpy(&size, sizes + 2 * std::size_t{i}, sizeof size);
        too_large |= static_cast<uint16_t>((size & 0xFFF8) == 0xFFF8);
    }
    return too_large ? "bank_too_large" : "";
}
