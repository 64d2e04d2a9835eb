// The banks of super-pixels of an event on the CPU, for every clustering.
#pragma once

#include "lhcb/velo/decoding/bank.cuh"

namespace hlt {

/// Pass the banks of super-pixels of an event to a clustering, and write its hits behind those of retina clusters.
/// Returns false, without a change, if the common kernel must process the event.
///
/// Clustering: take(bank, end of its MFP) and find_clusters() return false for such an event; is_broken() is true if a
/// word was wrong; store_hits(first place) returns the place behind the last hit.
template <typename Parameters, typename Clustering>
inline __attribute__((always_inline)) bool find_hits_of_banks(const Parameters& p, uint32_t event,
                                                              Clustering& clustering)
{
    constexpr uint32_t ahead = 8;  // banks, which lie far apart
    const event_row place = p.raw_banks.event_rows[event];
    const row_range rows = velo_rows_of(p.raw_banks, place.mep);
    const uint32_t end = rows.first + rows.count;
    prefetch_fragments(p.raw_banks, {rows.first, min_of(rows.count, ahead)}, place.index);
    for (uint32_t i = rows.first; i < end; ++i) {
        prefetch_fragments(p.raw_banks, {i + ahead, i + ahead < end ? 1u : 0u}, place.index);
        const mfp_row row = p.raw_banks.mfp_rows[i];
        const velo_bank bank = velo_bank_of(fragment_of(p.raw_banks, row, place.index), row);
        if (bank.kind != velo_bank_kind::super_pixels) continue;
        if (!clustering.take(bank, p.raw_banks.bytes + row.data_offset + row.packet_size)) return false;
    }
    if (!clustering.find_clusters()) return false;
    if (clustering.is_broken()) p.events.flags[event] |= bank_error;
    const uint32_t first = p.velo_unsorted.first(event);
    p.velo_unsorted.count[event] = clustering.store_hits(first + p.velo_unsorted.count[event]) - first;
    return true;
}

}  // namespace hlt
