// Hits of the RICH (docs/formats/rich-hits.md) as positions in the focal plane.
//
// In: the rows and fragments of the RICH, rich.pmt_position. Out: x, y and time of each hit in the order of the bank,
// their number, the number of the event, flags; the event has
// no ring yet. One block per event; threads stride over the hits. A bank of another
// type, version or size than its own number of hits tells gives no hit, nor does one with more than rich_max_hits. A
// hit with the number of no photomultiplier is left out. No byte outside of the bank is read. Bound: rich_max_hits.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "na62/rich/generated/rich_flags.h"
#include "na62/rich/generated/rich_read_hits.h"
#include "na62/rich/generated/rich_types.h"

namespace hlt {

constexpr uint32_t rich_hit_bytes = 3;

/// The bank of the RICH in an event, its number of hits, and the flags that it gives.
struct rich_bank {
    const uint8_t* hits;
    uint32_t n_hits;
    uint32_t flags;
};

__device__ rich_bank find_rich_bank(const raw_banks& banks, const event_row& place, uint32_t (&number)[2])
{
    rich_bank found{nullptr, 0, no_rich};
    number[0] = number[1] = 0;
    const row_range rows = rows_of(banks, place.mep, rich_subdetector);
    for (uint32_t i = rows.first; i < rows.first + rows.count; ++i) {
        const mfp_row row = banks.mfp_rows[i];
        if (row.source_id != rich_source) continue;
        const uint8_t* const mfp = banks.bytes + row.data_offset;
        const uint32_t low = load_u32(mfp + 8);
        number[0] = low + place.index;
        number[1] = load_u32(mfp + 12) + (number[0] < low ? 1u : 0u);
        const fragment_view bank = fragment_of(banks, row, place.index);
        if (bank.type == no_bank) continue;
        found.flags = bad_rich_bank;
        if (bank.type != rich_hits_bank || row.version != rich_version || bank.size == 0) continue;
        const uint32_t n = bank.data[0];
        if (n > rich_max_hits)
            found.flags = too_many_rich_hits;
        else if (bank.size == 1u + rich_hit_bytes * n)
            found = {bank.data + 1, n, 0};
    }
    return found;
}

__device__ uint32_t pmt_of_hit(const uint8_t* hits, uint32_t i)
{
    const uint8_t* const hit = hits + rich_hit_bytes * i;
    return hit[0] | static_cast<uint32_t>(hit[1]) << 8;
}

}  // namespace hlt

HLT_KERNEL(rich_read_hits)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    uint32_t number[2];
    const hlt::rich_bank bank = hlt::find_rich_bank(p.raw_banks, p.raw_banks.event_rows[event], number);
    const uint32_t first = p.rich_hits.first(event);
    uint32_t n_good = 0;
    for (uint32_t begin = 0; begin < bank.n_hits; begin += blockDim.x) {
        const uint32_t i = begin + threadIdx.x;
        const uint32_t pmt = i < bank.n_hits ? hlt::pmt_of_hit(bank.hits, i) : hlt::rich_pmts;
        const bool is_good = pmt < hlt::rich_pmts;
        uint32_t n_here;
        const uint32_t place = first + n_good + hlt::block_exclusive_count(is_good, scratch, n_here);
        n_good += n_here;
        if (!is_good) continue;
        p.rich_hits.x[place] = p.rich.pmt_position[2u * pmt];
        p.rich_hits.y[place] = p.rich.pmt_position[2u * pmt + 1u];
        p.rich_hits.time[place] = bank.hits[hlt::rich_hit_bytes * i + 2u];
    }
    if (threadIdx.x != 0) return;
    p.rich_hits.count[event] = n_good;
    p.rings.count[event] = 0;
    p.events.number[2u * event] = number[0];
    p.events.number[2u * event + 1u] = number[1];
    const uint32_t flags = bank.flags | (n_good < bank.n_hits ? uint32_t{hlt::bad_pmt} : 0u);
    if (flags != 0) p.events.flags[event] |= flags;
}
