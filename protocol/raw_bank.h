// The header of a raw bank (docs/formats/raw-bank.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "little_endian.h"

constexpr std::size_t bank_header_size = 8;
constexpr std::size_t max_bank_size = 0xFFFF;  // header included, padding not
constexpr uint16_t bank_magic = 0xCBCB;
// Banks of one event. A MEP has at most 65,535 sources; as many more may be trigger and truth banks. Without a limit, a
// compressed record of 92 kB unpacks to 8 million banks, and their objects to 2.6 GB.
constexpr std::size_t max_banks_of_event = std::size_t{1} << 17;

inline void put_bank_header(uint8_t* at, std::size_t length, uint8_t type, uint8_t version, uint16_t source)
{
    put_u16(at, bank_magic);
    put_u16(at + 2, static_cast<uint32_t>(length));
    at[4] = type;
    at[5] = version;
    put_u16(at + 6, source);
}
