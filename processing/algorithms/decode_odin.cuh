// The ODIN bank of every event: run, time and event numbers, bunch crossing (docs/formats/odin.md).
//
// One block per event; its first thread does the work, because a bank has only 40 bytes. A missing bank, a DaqError
// bank, or a bank of another type, version or size sets the flag odin_error and gives zeros.
// Bounds: 40 bytes of the fragment, whose size is checked.
//
// Words of version 7: run, type | step << 16, GPS time low, high, TCK, partition, misc, orbit, event id low, high.
// Words of version 6: run, type | step << 16, orbit, event id high, low, GPS time high, low, status, bunch, TCK.
#pragma once

#include "algorithms/generated/decode_odin.h"
#include "framework/device/raw_banks.cuh"

HLT_KERNEL(decode_odin)
{
    if (!p.takes(blockIdx.x) || threadIdx.x != 0) return;

    const hlt::event_row event = p.raw_banks.event_rows[blockIdx.x];
    const hlt::row_range rows = hlt::rows_of(p.raw_banks, event.mep, hlt::odin_subdetector);
    hlt::odin_data odin{};
    bool decoded = false;
    if (rows.count > 0) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first];
        const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, event.index);
        if (bank.type == hlt::odin_bank_type && bank.size == hlt::odin_bank_size) {
            uint32_t word[hlt::odin_bank_size / 4];
            for (uint32_t i = 0; i < hlt::odin_bank_size / 4; ++i) word[i] = hlt::load_u32(bank.data + 4 * i);
            decoded = row.version == 6 || row.version == 7;
            if (row.version == 7)
                odin = {word[0],
                        word[1] & 0xFFFFu,
                        word[2],
                        word[3],
                        word[8],
                        word[9],
                        word[6] & 0xFFFu,
                        word[6] >> 12 & 3u,
                        word[7],
                        word[6] >> 15 & 1u,
                        word[6] >> 16 & 63u};
            else if (row.version == 6)
                odin = {word[0],          word[1] & 0xFFFFu,  word[6], word[5], word[4], word[3],
                        word[8] & 0xFFFu, word[8] >> 22 & 3u, word[2], 0u,      0u};
        }
    }
    p.events.odin[blockIdx.x] = odin;
    if (!decoded) p.events.flags[blockIdx.x] |= hlt::odin_error;
}
