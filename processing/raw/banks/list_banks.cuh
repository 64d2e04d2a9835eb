// The banks of an event: source, type, version and size of each, their sums, and the number of the event.
//
// Nothing of a bank is decoded, apart from the number of the event if the configuration names a bank for it. Without
// one the number is that of the MFP header plus the place in the MEP; the MFPs of a MEP agree on it
// (docs/formats/mfp.md). In:  the rows of the MEP of the event, the places of their fragments, sources.offset. Out:
// sources.bank; numbers and sums of the event; flags. One block per event; threads stride over the sources. Bounds:
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
};

/// Whether a bank tells of an error.
__device__ bool is_error_bank(uint32_t type)
{
    return type == broken_bank || type == several_banks || type == board_error;
}

/// The `n` bytes (at most 8) of a little-endian integer as two words.
__device__ void load_number(const uint8_t* bytes, uint32_t n, uint32_t (&words)[2])
{
    words[0] = words[1] = 0;
    for (uint32_t i = 0; i < n; ++i) words[i / 4u] |= static_cast<uint32_t>(bytes[i]) << (i % 4u * 8u);
}

}  // namespace hlt

HLT_KERNEL(raw_list_banks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ hlt::bank_sums sums;
    if (threadIdx.x == 0) sums = {0, 0, 0, 0, 0, hlt::no_row};
    __syncthreads();

    const hlt::event_row place = p.raw_banks.event_rows[event];
    const uint32_t first_row = hlt::rows_of(p.raw_banks, place.mep, 0).first;
    const uint32_t n_rows = p.sources.count[event];
    hlt::source_bank* const found = p.sources.bank + p.sources.first(event);
    hlt::bank_sums mine{0, 0, 0, 0, 0, hlt::no_row};
    for (uint32_t i = threadIdx.x; i < n_rows; i += blockDim.x) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[first_row + i];
        const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, place.index);
        found[i] = {static_cast<uint16_t>(row.source_id), static_cast<uint16_t>(bank.type),
                    static_cast<uint16_t>(bank.size), static_cast<uint8_t>(row.version),
                    static_cast<uint8_t>(row.source_id >> 11)};
        if (bank.type == hlt::no_bank) continue;
        const bool is_error = hlt::is_error_bank(bank.type);
        const bool has_number = bank.type == p.number_type;
        const bool is_known = bank.type >= p.first_known_type && bank.type <= p.last_known_type;
        mine.banks += 1u;
        mine.errors += is_error ? 1u : 0u;
        mine.bytes += bank.size;
        mine.largest = hlt::max_of(mine.largest, bank.size);
        if (is_error) mine.flags |= hlt::bank_error;
        if (!is_known && !is_error && !has_number && bank.type != hlt::odin_bank) mine.flags |= hlt::unknown_type;
        if (bank.size > p.max_bank_bytes) mine.flags |= hlt::large_bank;
        if (has_number) mine.number_row = hlt::min_of(mine.number_row, first_row + i);
    }
    if (mine.banks != 0) {
        atomicAdd(&sums.banks, mine.banks);
        atomicAdd(&sums.errors, mine.errors);
        atomicAdd(&sums.bytes, mine.bytes);
        atomicMax(&sums.largest, mine.largest);
        atomicOr(&sums.flags, mine.flags);
        atomicMin(&sums.number_row, mine.number_row);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;

    uint32_t number[2] = {0, 0};
    uint32_t flags = sums.flags | (sums.banks < p.min_banks ? uint32_t{hlt::missing_banks} : 0u);
    bool has_number = false;
    if (sums.number_row != hlt::no_row) {
        const hlt::fragment_view bank =
            hlt::fragment_of(p.raw_banks, p.raw_banks.mfp_rows[sums.number_row], place.index);
        const uint32_t n = hlt::min_of(p.number_bytes, 8u);
        has_number = n <= bank.size && p.number_offset <= bank.size - n;
        if (has_number) hlt::load_number(bank.data + p.number_offset, n, number);
    }
    if (!has_number) {
        if (p.number_type != hlt::no_bank) flags |= hlt::no_event_number;
        if (n_rows != 0) {
            const uint8_t* const mfp = p.raw_banks.bytes + p.raw_banks.mfp_rows[first_row].data_offset;
            const uint32_t low = hlt::load_u32(mfp + 8);
            number[0] = low + place.index;
            number[1] = hlt::load_u32(mfp + 12) + (number[0] < low ? 1u : 0u);
        }
    }
    p.banks.count[event] = sums.banks;
    p.error_banks.count[event] = sums.errors;
    p.events.bank_bytes[event] = sums.bytes;
    p.events.largest_bank[event] = sums.largest;
    p.events.number[2u * event] = number[0];
    p.events.number[2u * event + 1u] = number[1];
    if (flags != 0) p.events.flags[event] |= flags;
}
