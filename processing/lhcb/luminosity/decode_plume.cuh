// The bank of PLUME to ADC values and over-threshold bits of its channels (docs/formats/plume-banks.md).
//
// Only the board with source id plume_source is read. A bank of another version or size gives no values and flags the
// event, as does an error bank in its place; an event without a bank is flagged if banks are required. The luminometer
// does not depend on the reconstruction, so events that the global event cut rejected are read too.
// In:  the fragments of the row of the board. Out: events.{plume_adc [event][64], plume_over_threshold [event][2],
// plume_read}; events.flags.
// One block per event. The first thread finds the bank, then the threads stride over channels.
// Bounds: the bank has exactly plume_bank_bytes bytes.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/luminosity/generated/lumi_types.h"
#include "lhcb/luminosity/generated/luminosity_decode_plume.h"
#include "lhcb/raw_data/generated/flags.h"
#include "lhcb/raw_data/generated/raw_data_types.h"

HLT_KERNEL(luminosity_decode_plume)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t is_read;
    __shared__ uint32_t place;  // of the bank in the input

    if (threadIdx.x == 0) {
        const hlt::event_row at = p.raw_banks.event_rows[event];
        const hlt::row_range rows = hlt::rows_of(p.raw_banks, at.mep, hlt::plume);
        bool found = false, valid = false;
        for (uint32_t i = rows.first; i < rows.first + rows.count; ++i) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[i];
            if (row.source_id != hlt::plume_source) continue;
            const hlt::fragment_view fragment = hlt::fragment_of(p.raw_banks, row, at.index);
            if (fragment.type == hlt::no_bank) continue;
            found = true;
            valid = fragment.type == hlt::plume_bank_type && row.version == hlt::plume_version_channels &&
                    fragment.size == hlt::plume_bank_bytes;
            place = static_cast<uint32_t>(fragment.data - p.raw_banks.bytes);
        }
        is_read = valid ? 1u : 0u;
        p.events.plume_read[event] = is_read;
        if (found && !valid) p.events.flags[event] |= hlt::bank_error;
        if (!found && p.required != 0u) p.events.flags[event] |= hlt::missing_detector;
    }
    __syncthreads();

    const uint8_t* const bank = is_read != 0u ? p.raw_banks.bytes + place : nullptr;
    uint16_t* const adc = p.events.plume_adc + event * hlt::n_plume_channels;
    for (uint32_t channel = threadIdx.x; channel < hlt::n_plume_channels; channel += blockDim.x) {
        // Two channels of 12 bits in three bytes, the most significant bit first.
        uint32_t value = 0;
        if (bank != nullptr) {
            const uint8_t* const bytes = bank + hlt::plume_mask_bytes + channel / 2u * 3u;
            value = channel % 2u == 0u ? static_cast<uint32_t>(bytes[0]) << 4 | bytes[1] >> 4
                                       : (static_cast<uint32_t>(bytes[1]) & 0xfu) << 8 | bytes[2];
        }
        adc[channel] = static_cast<uint16_t>(value);
    }
    for (uint32_t half = threadIdx.x; half < hlt::n_plume_masks; half += blockDim.x) {
        uint32_t mask = 0;
        for (uint32_t channel = 0; bank != nullptr && channel < 32u; ++channel)
            mask |= (static_cast<uint32_t>(bank[4u * half + channel / 8u]) >> (7u - channel % 8u) & 1u) << channel;
        p.events.plume_over_threshold[hlt::n_plume_masks * event + half] = mask;
    }
}
