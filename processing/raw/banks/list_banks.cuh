// The banks of an event: source, type, version and size of each, their sums, number and time of the event.
//
// Nothing of a bank is decoded, apart from number and time of the event if the configuration names banks for them.
// Without one the number is that of the MFP header plus the place in the MEP; the MFPs of a MEP agree on it
// (docs/formats/mfp.md). Without one, or if the time exceeds 64 bits, the event has no time. In:  the rows of the MEP
// of the event, the places of their fragments, sources.offset. Out: sources.bank; number, time and sums of the event;
// flags. One block per event; threads stride over the sources. Bounds:
// sources of an event as sources.count. A fragment that reaches beyond its MFP has size 0 and type broken_bank, so no
// byte outside of an MFP is read. A sum of 2^16 sizes of 16 bits fits in 32 bits.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "raw/banks/generated/raw_bank_types.h"
#include "raw/banks/generated/raw_flags.h"
#include "raw/banks/generated/raw_list_banks.h"

namespace hlt {

constexpr uint32_t no_row = 0xffffffffu;

/// Sums over the banks of an event. Shared memory has no initial values, so the members have none.
struct bank_sums {
    uint32_t banks;
    uint32_t errors;
    uint32_t bytes;
    uint32_t largest;
    uint32_t flags;
    uint32_t number_row;
    uint32_t time_row;
};

/// Whether a bank tells of an error.
__device__ bool is_error_bank(uint32_t type)
{
    return type == broken_bank || type == several_banks || type == board_error;
}

/// Load a little-endian integer of `n` bytes (at most 8) at byte `offset` of a bank. Returns whether the bank has it.
__device__ bool load_number(const fragment_view& bank, uint32_t offset, uint32_t n, uint64_t& number)
{
    n = min_of(n, 8u);
    if (n > bank.size || offset > bank.size - n) return false;
    number = 0;
    for (uint32_t i = 0; i < n; ++i) number |= uint64_t{bank.data[offset + i]} << (8u * i);
    return true;
}

/// Make ns of a time: `divisor` units of it are `unit_ns` ns. Returns false for a result of more than 64 bits.
__device__ bool make_ns(uint64_t& time, uint32_t unit_ns, uint32_t divisor)
{
    const uint64_t whole = time / divisor, rest = time % divisor * unit_ns / divisor;
    if (unit_ns != 0u && whole > (~uint64_t{0} - rest) / unit_ns) return false;
    time = whole * unit_ns + rest;
    return true;
}

}  // namespace hlt

HLT_KERNEL(raw_list_banks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ hlt::bank_sums sums;
    if (threadIdx.x == 0) sums = {0, 0, 0, 0, 0, hlt::no_row, hlt::no_row};
    __syncthreads();

    const hlt::event_row place = p.raw_banks.event_rows[event];
    const uint32_t first_row = hlt::rows_of(p.raw_banks, place.mep, 0).first;
    const uint32_t n_rows = p.sources.count[event];
    hlt::source_bank* const found = p.sources.bank + p.sources.first(event);
    hlt::bank_sums mine{0, 0, 0, 0, 0, hlt::no_row, hlt::no_row};
    for (uint32_t i = threadIdx.x; i < n_rows; i += blockDim.x) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[first_row + i];
        const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, place.index);
        found[i] = {static_cast<uint16_t>(row.source_id), static_cast<uint16_t>(bank.type),
                    static_cast<uint16_t>(bank.size), static_cast<uint8_t>(row.version),
                    static_cast<uint8_t>(row.source_id >> 11)};
        if (bank.type == hlt::no_bank) continue;
        const bool is_error = hlt::is_error_bank(bank.type);
        const bool has_number = bank.type == p.number_type, has_time = bank.type == p.time_type;
        const bool is_known = bank.type >= p.first_known_type && bank.type <= p.last_known_type;
        mine.banks += 1u;
        mine.errors += is_error ? 1u : 0u;
        mine.bytes += bank.size;
        mine.largest = hlt::max_of(mine.largest, bank.size);
        if (is_error) mine.flags |= hlt::bank_error;
        if (!is_known && !is_error && !has_number && !has_time && bank.type != hlt::odin_bank)
            mine.flags |= hlt::unknown_type;
        if (bank.size > p.max_bank_bytes) mine.flags |= hlt::large_bank;
        if (has_number) mine.number_row = hlt::min_of(mine.number_row, first_row + i);
        if (has_time) mine.time_row = hlt::min_of(mine.time_row, first_row + i);
    }
    if (mine.banks != 0) {
        atomicAdd(&sums.banks, mine.banks);
        atomicAdd(&sums.errors, mine.errors);
        atomicAdd(&sums.bytes, mine.bytes);
        atomicMax(&sums.largest, mine.largest);
        atomicOr(&sums.flags, mine.flags);
        atomicMin(&sums.number_row, mine.number_row);
        atomicMin(&sums.time_row, mine.time_row);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;

    const auto load = [&](uint32_t row, uint32_t offset, uint32_t n, uint64_t& number) {
        if (row == hlt::no_row) return false;
        return hlt::load_number(hlt::fragment_of(p.raw_banks, p.raw_banks.mfp_rows[row], place.index), offset, n,
                                number);
    };
    uint64_t number = 0, time = 0;
    uint32_t flags = sums.flags | (sums.banks < p.min_banks ? uint32_t{hlt::missing_banks} : 0u);
    if (!load(sums.number_row, p.number_offset, p.number_bytes, number)) {
        if (p.number_type != hlt::no_bank) flags |= hlt::no_event_number;
        if (n_rows != 0) {
            const uint8_t* const mfp = p.raw_banks.bytes + p.raw_banks.mfp_rows[first_row].data_offset;
            number = (uint64_t{hlt::load_u32(mfp + 12)} << 32 | hlt::load_u32(mfp + 8)) + place.index;
        }
    }
    const bool has_time =
        load(sums.time_row, p.time_offset, p.time_bytes, time) && hlt::make_ns(time, p.time_unit_ns, p.time_divisor);
    if (!has_time && p.time_type != hlt::no_bank) flags |= hlt::no_event_time;
    p.event_times.count[event] = has_time ? 1u : 0u;
    p.event_times.time_ns[p.event_times.first(event)] = has_time ? time : 0u;
    p.banks.count[event] = sums.banks;
    p.error_banks.count[event] = sums.errors;
    p.events.bank_bytes[event] = sums.bytes;
    p.events.largest_bank[event] = sums.largest;
    p.events.number[2u * event] = static_cast<uint32_t>(number);
    p.events.number[2u * event + 1u] = static_cast<uint32_t>(number >> 32);
    if (flags != 0) p.events.flags[event] |= flags;
}
