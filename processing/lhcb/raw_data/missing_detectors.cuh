// Missing detectors: flags an event without a single bank of a required detector.
//
// Without this check such an event would look like an event without hits. It is reconstructed as far as possible, and
// kept. One half of a detector is enough: the readout reports missing sources of a half.
// In:  types of the fragments of VELO, UT, SciFi and muon stations; the required detectors. Out: events.flags.
// One block per event; its first thread stops at the first bank of each detector.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/raw_data/generated/flags.h"
#include "lhcb/raw_data/generated/missing_detectors.h"
#include "lhcb/raw_data/generated/raw_data_types.h"

namespace hlt {

/// True if an event has a bank of a sub-detector.
__device__ bool has_bank(const raw_banks& banks, const event_row& event, uint32_t subdetector)
{
    const row_range rows = rows_of(banks, event.mep, subdetector);
    for (uint32_t i = rows.first; i < rows.first + rows.count; ++i)
        if (fragment_of(banks, banks.mfp_rows[i], event.index).type != no_bank_type) return true;
    return false;
}

}  // namespace hlt

HLT_KERNEL(missing_detectors)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event) || threadIdx.x != 0) return;
    const hlt::event_row place = p.raw_banks.event_rows[event];
    const auto is_missing = [&](uint32_t required, uint32_t a, uint32_t c) {
        return required != 0 && !hlt::has_bank(p.raw_banks, place, a) && !hlt::has_bank(p.raw_banks, place, c);
    };
    if (is_missing(p.velo, hlt::velo_a, hlt::velo_c) || is_missing(p.ut, hlt::ut_a, hlt::ut_c) ||
        is_missing(p.scifi, hlt::scifi_a, hlt::scifi_c) || is_missing(p.muon, hlt::muon_a, hlt::muon_c))
        p.events.flags[event] |= hlt::missing_detector;
}
