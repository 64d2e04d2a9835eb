// The header of a UDP datagram in front of an MFP (docs/formats/udp-datagram.md), and the checks of a datagram.
#pragma once

#include <cstddef>
#include <cstdint>

#include "little_endian.h"
#include "mfp.h"
#include "written_banks.h"

constexpr std::size_t datagram_header_size = 32;
constexpr uint32_t datagram_magic = 0x554E4C48;  // HLNU
constexpr uint16_t datagram_version = 1;

// Bits of the flags.
constexpr uint16_t start_of_burst = 1, end_of_burst = 2, end_of_run = 4;

enum class DatagramFault : uint8_t { none, truncated, bad_magic, bad_version, bad_size, malformed, bad_mfp };

// A datagram that is sound, or its fault. `mfp` points into the datagram.
struct Datagram {
    DatagramFault fault = DatagramFault::none;
    uint16_t flags = 0, source = 0, n_events = 0;
    uint32_t run = 0, burst = 0, sequence = 0;
    uint64_t first_event = 0;
    const uint8_t* mfp = nullptr;
    std::size_t mfp_size = 0;

    Datagram(const uint8_t* bytes, std::size_t size)
    {
        fault = header(bytes, size);
        if (fault != DatagramFault::none) return;
        if (*refusal_of_mfp(mfp, mfp_size)) {
            fault = DatagramFault::bad_mfp;
            return;
        }
        n_events = u16_at(mfp + 2);
        first_event = u64_at(mfp + 8);
        const bool is_it = u16_at(mfp + 16) == source;
        if (!is_it || *refusal_of_banks(mfp + mfp_header_size, mfp + mfp_sizes_at(n_events), n_events))
            fault = DatagramFault::bad_mfp;
    }

  private:
    DatagramFault header(const uint8_t* bytes, std::size_t size)
    {
        if (size < datagram_header_size) return DatagramFault::truncated;
        if (u32_at(bytes) != datagram_magic) return DatagramFault::bad_magic;
        if (u16_at(bytes + 4) != datagram_version) return DatagramFault::bad_version;
        flags = u16_at(bytes + 6);
        run = u32_at(bytes + 8);
        burst = u32_at(bytes + 12);
        sequence = u32_at(bytes + 16);
        source = u16_at(bytes + 20);
        mfp = bytes + datagram_header_size;
        mfp_size = size - datagram_header_size;
        if (u32_at(bytes + 24) != mfp_size) return DatagramFault::bad_size;
        const bool has_unknown = (flags & ~(start_of_burst | end_of_burst | end_of_run)) != 0;
        const bool ends_run_in_burst = (flags & end_of_run) != 0 && (flags & end_of_burst) == 0;
        // Sequence numbers end below 2^32, so that the number after the last one is a number, too.
        if (has_unknown || ends_run_in_burst || u16_at(bytes + 22) || u32_at(bytes + 28) || sequence == UINT32_MAX)
            return DatagramFault::malformed;
        return DatagramFault::none;
    }
};
