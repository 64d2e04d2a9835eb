// The ODIN bank of every event: run, time and event numbers, bunch crossing (formats.md B7, versions 6 and 7).
//
// One block per event, its first thread does the work: a bank has 40 bytes. A missing bank, a DaqError bank in its
// place or one of another type, version or size sets the flag odin_error and leaves zeros.
// Bounds: 40 bytes of the fragment, whose size is checked.
//
// Words of version 7: run, type | step << 16, GPS time low, high, TCK, partition, misc, orbit, event id low, high.
// Words of version 6: run, type | step << 16, orbit, event id high, low, GPS time high, low, status, bunch, TCK.
#pragma once

#include "framework/device/batch.cuh"

namespace hlt {

/// What the kernels keep of an ODIN bank.
struct odin_data {
    uint32_t run;
    uint32_t event_type;    // bit mask
    uint32_t gps_time_low;  // us
    uint32_t gps_time_high;
    uint32_t event_id_low;
    uint32_t event_id_high;
    uint32_t bunch_id;
    uint32_t crossing_type;  // 0 none, 1 beam 1, 2 beam 2, 3 both
};

constexpr uint32_t odin_bank_type = 16;
constexpr uint32_t odin_bank_size = 40;

}  // namespace hlt

struct odin_decode_parameters {
    const hlt::batch_header* batch_header;
    const uint8_t* raw_input;
    const hlt::mfp_row* mfp_rows;
    const hlt::row_range* mep_rows;
    const hlt::event_row* event_rows;
    const uint32_t* fragment_offset;
    const uint16_t* fragment_size;
    const uint8_t* fragment_type;
    uint32_t* event_flags;
    hlt::odin_data* odin;
};

HLT_KERNEL(odin_decode)
{
    const odin_decode_parameters p = *parameters;
    if (blockIdx.x >= p.batch_header->n_events || threadIdx.x != 0) return;

    const hlt::event_row event = p.event_rows[blockIdx.x];
    const hlt::row_range rows = p.mep_rows[event.mep * hlt::n_subdetectors + hlt::subdetector::odin];
    hlt::odin_data odin{};
    bool decoded = false;
    if (rows.count > 0) {
        const hlt::mfp_row row = p.mfp_rows[rows.first];
        const hlt::fragment_view bank =
            hlt::fragment_of(p.raw_input, p.fragment_offset, p.fragment_size, p.fragment_type, row, event.index);
        if (bank.type == hlt::odin_bank_type && bank.size == hlt::odin_bank_size) {
            uint32_t word[hlt::odin_bank_size / 4];
            for (uint32_t i = 0; i < hlt::odin_bank_size / 4; ++i) word[i] = hlt::load_u32(bank.data + 4 * i);
            decoded = row.version == 6 || row.version == 7;
            if (row.version == 7)
                odin = {word[0], word[1] & 0xFFFFu, word[2],          word[3],
                        word[8], word[9],           word[6] & 0xFFFu, word[6] >> 12 & 3u};
            else if (row.version == 6)
                odin = {word[0], word[1] & 0xFFFFu, word[6],          word[5],
                        word[4], word[3],           word[8] & 0xFFFu, word[8] >> 22 & 3u};
        }
    }
    p.odin[blockIdx.x] = odin;
    if (!decoded) p.event_flags[blockIdx.x] |= hlt::odin_error;
}
