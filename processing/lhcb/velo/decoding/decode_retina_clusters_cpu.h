// Retina clusters on the CPU: the common kernel, on eight words of a bank at once.
#pragma once

#include "framework/device/lanes.cuh"
#include "lhcb/velo/decoding/decode_retina_clusters.cuh"
#include "lhcb/velo/decoding/sensor_hits_cpu.h"

namespace hlt {

/// Element k of the transformation of the sensor of each lane.
template <bool sensor_pairs>
inline __attribute__((always_inline)) float8 of_sensors(const velo_geometry& geometry, const uint8x32& sensor,
                                                        uint32_t first_sensor, uint32_t k)
{
    if (!sensor_pairs) return float8{} + geometry.local_to_global[first_sensor][k];
    const float* const all = reinterpret_cast<const float*>(geometry.local_to_global);
    return values_at(all, sensor * 12u + k);
}

/// Decode n words into the places from `at` on; up to seven more places are overwritten. Reads no byte from `end` on.
/// Returns true if a column does not exist.
template <uint32_t version>
bool decode_retina_words(const uint8_t* words, uint32_t n, const uint8_t* end, uint32_t first_sensor,
                         const velo_geometry& geometry, const decoded_hits& out, uint32_t at)
{
    constexpr uint32_t fraction_bits = version == velo_version_eighths ? 3u : 2u;
    constexpr float fraction_unit = version == velo_version_eighths ? 0.125f : 0.25f;
    constexpr uint32_t fraction_mask = (1u << fraction_bits) - 1u;
    int8x32 broken{};
    for (uint32_t i = 0; i < n; i += 8u, words += sizeof(uint8x32)) {
        uint8x32 word{};
        if (static_cast<std::size_t>(end - words) >= sizeof word)
            load8(word, words);
        else
            std::memcpy(&word, words, min_of(n - i, 8u) * sizeof(uint32_t));
        const uint8x32 wanted = word >> (2u * fraction_bits + 8u) & 0x3ffu;
        const uint8x32 column = wanted < n_velo_columns ? wanted : uint8x32{} + (n_velo_columns - 1u);
        const uint8x32 row = word >> fraction_bits & 0xffu;
        const uint8x32 fraction_x = word >> (fraction_bits + 8u) & fraction_mask, fraction_y = word & fraction_mask;
        const uint8x32 sensor = (version == velo_version_sensor_pairs ? word >> 22 & 1u : uint8x32{}) + first_sensor;
        const int8x32 is_broken = wanted >= n_velo_columns;
        broken |= is_broken & first_lanes(n - i);

        const float8 local_x = values_at(geometry.local_x, column) +
                               as_float(fraction_x) * fraction_unit * values_at(geometry.x_pitch, column);
        const float8 local_y = (as_float(row) + as_float(fraction_y) * fraction_unit + 0.5f) * velo_pixel_pitch;
        const auto t = [&](uint32_t k) __attribute__((always_inline)) {
            return of_sensors<version == velo_version_sensor_pairs>(geometry, sensor, first_sensor, k);
        };
        store_lanes(out.x + at + i, t(0) * local_x + t(1) * local_y + t(9));
        store_lanes(out.y + at + i, t(3) * local_x + t(4) * local_y + t(10));
        store_lanes(out.z + at + i, t(6) * local_x + t(7) * local_y + t(11));
        store_lanes(out.id + at + i,
                    (2u << 28 | (fraction_x != 0u ? uint8x32{} + (1u << 27) : uint8x32{}) |
                     (fraction_y != 0u ? uint8x32{} + (1u << 26) : uint8x32{}) | sensor << 18 | column << 8 | row));
        const uint8x32 pair = (word == 0u) | is_broken ? uint8x32{} + no_module_pair : sensor / 8u;
        store_bytes8(out.module_pair + at + i, pair);
    }
    return bits_of(broken) != 0u;
}

}  // namespace hlt

HLT_CPU_FORM(velo_decode_retina_clusters)
{
    if (!p.takes(event)) return;
    const uint32_t first = p.velo_unsorted.first(event);
    p.velo_unsorted.count[event] = 0;
    if (p.velo_clusters.bound[event] <= p.velo_clusters.super_pixel_bound[event]) return;
    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::velo_rows_of(p.raw_banks, place.mep);
    hlt::prefetch_fragments(p.raw_banks, rows, place.index);
    const hlt::decoded_hits out{p.velo_unsorted.x,   p.velo_unsorted.y,  p.velo_unsorted.z,
                                p.velo_unsorted.phi, p.velo_unsorted.id, p.velo_unsorted.module_pair};
    uint32_t at = first;
    bool broken = false;
    for (uint32_t i = rows.first; i < rows.first + rows.count; ++i) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[i];
        const hlt::velo_bank bank = hlt::velo_bank_of(hlt::fragment_of(p.raw_banks, row, place.index), row);
        if (bank.kind != hlt::velo_bank_kind::retina) continue;
        const uint32_t n = bank.count_words(broken);
        const uint8_t* const words = bank.payload + (bank.has_count ? 4u : 0u);
        const uint8_t* const end = p.raw_banks.bytes + row.data_offset + row.packet_size;
        const hlt::velo_geometry& geometry = *p.velo_geometry;
        if (bank.version == hlt::velo_version_eighths)
            broken |=
                hlt::decode_retina_words<hlt::velo_version_eighths>(words, n, end, bank.sensor, geometry, out, at);
        else if (bank.version == hlt::velo_version_quarters)
            broken |=
                hlt::decode_retina_words<hlt::velo_version_quarters>(words, n, end, bank.sensor, geometry, out, at);
        else
            broken |=
                hlt::decode_retina_words<hlt::velo_version_sensor_pairs>(words, n, end, bank.sensor, geometry, out, at);
        at += n;
    }
    out.find_phi(first, at);
    if (broken) p.events.flags[event] |= hlt::bank_error;
    p.velo_unsorted.count[event] = at - first;
}
