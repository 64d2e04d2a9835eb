// Sort by phi on the CPU: the counting sort of the common kernel. A word of 64 bits for each hit holds the sort key and
// the number of the hit.
//
// A few passes over all hits exchange neighbours in the wrong order, without a branch. Hits that are still out of
// order, and hits of one pixel, are then sorted one by one. Hits without a module pair have bins behind all others.
// The common kernel processes events whose ids do not match the sensors of their module pairs.
#pragma once

#include "framework/device/lanes.cuh"
#include "lhcb/velo/tracking/sort_by_phi.cuh"

namespace hlt {

// Words in a register: eight with AVX-512, four with AVX2, otherwise two.
#if defined(HLT_AVX512)
constexpr uint32_t n_sort_lanes = 8;
#define HLT_SORT_PAIRS 1, 0, 3, 2, 5, 4, 7, 6
#define HLT_SORT_MOVED 7, 8, 9, 10, 11, 12, 13, 14
#elif defined(__AVX2__)
constexpr uint32_t n_sort_lanes = 4;
#define HLT_SORT_PAIRS 1, 0, 3, 2
#define HLT_SORT_MOVED 3, 4, 5, 6
#else
constexpr uint32_t n_sort_lanes = 2;
#define HLT_SORT_PAIRS 1, 0
#define HLT_SORT_MOVED 1, 2
#endif
using sort_lanes = unsigned long long __attribute__((vector_size(8 * n_sort_lanes)));
using sort_order = long long __attribute__((vector_size(8 * n_sort_lanes)));

/// The sort word of a hit. From the highest bit: 21 bits of its place, the 23 bits of its LHCbID in which ids of a
/// module pair differ, and its number.
namespace sort_word {
constexpr uint32_t place_shift = 43, id_shift = 16;
constexpr uint32_t bin_shift = place_shift + 16u - phi_bin_bits;
constexpr uint32_t pair_shift = 21;  // of the module pair in the id: it has eight sensors
constexpr uint32_t low_id_bits = (1u << pair_shift) - 1u;
constexpr uint32_t n_bins = n_phi_bins + phi_bins_per_pair;  // with those of hits without a module pair
constexpr uint32_t exchanges = 3;

inline uint32_t number_of(uint64_t word) { return static_cast<uint32_t>(word) & 0xffffu; }
}  // namespace sort_word

/// Words of eight hits. True in lanes whose id does not belong to the pair.
inline __attribute__((always_inline)) int8x32 make_sort_words(uint64_t* words, const uint32_t* id, const int16_t* phi,
                                                              const uint8_t* module_pair, uint32_t first,
                                                              uint32_t n_left)
{
    uint8x32 ids, wanted;
    uint8x16 phis;
    load8(ids, id);
    load8(phis, phi);
    load_bytes8(wanted, module_pair);
    const int8x32 has_pair = wanted < n_velo_module_pairs;
    const uint8x32 pair = has_pair ? wanted : uint8x32{} + n_velo_module_pairs;
    const uint8x32 place = pair << 16 | (widened(phis) ^ 0x8000u);
    constexpr uint32_t orientation = 3u << 26;
    const int8x32 usual = (ids & ~(orientation | sort_word::low_id_bits)) == (2u << 28 | pair << sort_word::pair_shift);
    const uint8x32 low_id = (ids & orientation) >> 5 | (ids & sort_word::low_id_bits);
    const uint8x32 upper = place << (sort_word::place_shift - 32u) | low_id >> (32u - sort_word::id_shift);
    const uint8x32 lower =
        low_id << sort_word::id_shift | (lane_numbers + first);  // below 2^16 in the lanes that count
    store_lanes(words, __builtin_shufflevector(lower, upper, 0, 8, 1, 9, 2, 10, 3, 11));
    store_lanes(words + 4, __builtin_shufflevector(lower, upper, 4, 12, 5, 13, 6, 14, 7, 15));
    return has_pair & ~usual & first_lanes(n_left);
}

/// Write the offsets of eight bins, the sums of their counts from `before` on. Returns the end of the last bin.
inline __attribute__((always_inline)) uint16_t add_up(uint8x16& counts, uint16_t before)
{
    const uint8x16 zero{};
    uint8x16 sums = counts + __builtin_shufflevector(counts, zero, 8, 0, 1, 2, 3, 4, 5, 6);
    sums += __builtin_shufflevector(sums, zero, 8, 9, 0, 1, 2, 3, 4, 5);
    sums += __builtin_shufflevector(sums, zero, 8, 9, 10, 11, 0, 1, 2, 3);
    sums += before;
    counts = sums - counts;
    return sums[7];
}

/// Exchange each lane of even number with the next one if they are out of order.
inline __attribute__((always_inline)) sort_lanes in_pairs(const sort_lanes& mine)
{
    sort_order is_second{};
    for (uint32_t k = 1; k < n_sort_lanes; k += 2u) is_second[k] = -1;
    const sort_lanes other = __builtin_shufflevector(mine, mine, HLT_SORT_PAIRS);
    return (mine < other ? mine : other) ^ ((mine ^ other) & is_second);
}

/// Lanes moved up by one; the first is the last of `before`.
inline __attribute__((always_inline)) sort_lanes moved_up(const sort_lanes& before, const sort_lanes& lanes)
{
    return __builtin_shufflevector(before, lanes, HLT_SORT_MOVED);
}
#undef HLT_SORT_PAIRS
#undef HLT_SORT_MOVED

/// Exchange each word of even number with the next one if they are out of order, then each of odd number. n_sort_lanes
/// words behind the last one must not be less.
inline void exchange_neighbours(uint64_t* __restrict__ words, uint32_t n)
{
    sort_lanes before, mine;
    std::memcpy(&before, words, sizeof before);
    before = in_pairs(before);
    const sort_lanes first = in_pairs(moved_up(sort_lanes{}, before));
    for (uint32_t k = 1; k < n_sort_lanes; ++k) words[k - 1u] = first[k];
    uint32_t i = n_sort_lanes;
    for (; i < n; i += n_sort_lanes) {
        std::memcpy(&mine, words + i, sizeof mine);
        mine = in_pairs(mine);
        const sort_lanes across = in_pairs(moved_up(before, mine));
        std::memcpy(words + i - 1u, &across, sizeof across);
        before = mine;
    }
    words[i - 1u] = before[n_sort_lanes - 1u];
}

/// True if one of the next words is not greater than its predecessor, or belongs to the same pixel.
inline __attribute__((always_inline)) bool has_disorder(const uint64_t* words)
{
    sort_lanes mine, before;
    std::memcpy(&mine, words, sizeof mine);
    std::memcpy(&before, words - 1, sizeof before);
    const sort_order out_of_order = mine >> sort_word::id_shift <= before >> sort_word::id_shift;
#if defined(HLT_AVX512)
    return __builtin_ia32_cmpq512_mask(out_of_order, sort_order{}, 4, static_cast<uint8_t>(0xffu)) != 0;
#elif defined(__AVX2__)
    return __builtin_ia32_ptestz256(out_of_order, out_of_order) == 0;
#else
    return (out_of_order[0] | out_of_order[1]) != 0;
#endif
}

/// Sorts words that are nearly in ascending order; hits of one pixel by x, then y. n_sort_lanes words are read behind
/// the last one.
inline void put_in_order(uint64_t* __restrict__ words, uint32_t n, const float* __restrict__ x,
                         const float* __restrict__ y)
{
    const auto is_before = [&](uint64_t one, uint64_t other) {
        if ((one ^ other) >> sort_word::id_shift != 0u) return one < other;
        const uint32_t hit = sort_word::number_of(one), other_hit = sort_word::number_of(other);
        return x[hit] != x[other_hit] ? x[hit] < x[other_hit] : y[hit] < y[other_hit];
    };
    for (uint32_t base = 1; base < n; base += n_sort_lanes) {
        if (!has_disorder(words + base)) continue;
        for (uint32_t i = base; i < min_of(base + n_sort_lanes, n); ++i) {
            const uint64_t mine = words[i];
            uint32_t at = i;
            for (; at > 0u && is_before(mine, words[at - 1u]); --at) words[at] = words[at - 1u];
            words[at] = mine;
        }
    }
}

}  // namespace hlt

HLT_CPU_FORM(velo_sort_by_phi)
{
    if (!p.takes(event)) return;
    const uint32_t first = p.velo_hits.first(event);
    const uint32_t n = p.velo_unsorted.count[event];
    const float* __restrict__ x = p.velo_unsorted.x + first;
    const float* __restrict__ y = p.velo_unsorted.y + first;
    const float* __restrict__ z = p.velo_unsorted.z + first;
    uint64_t* __restrict__ words = p.scratch.sort_key + first;
    uint64_t unsorted[hlt::max_velo_clusters_of_event + 1u];  // whole vectors
    uint16_t* __restrict__ bin_offset = p.velo_hits.phi_bin_offset + event * hlt::phi_bin_stride;
    uint32_t* const pair_offset = p.velo_hits.module_pair_offset + event * (hlt::n_velo_module_pairs + 1u);

    hlt::drop_masked_velo_hits(*p.velo_geometry, p.velo_unsorted.id + first, p.velo_unsorted.module_pair + first, n);
    hlt::int8x32 unusual{};
    for (uint32_t i = 0; i < n; i += 8u)
        unusual |= hlt::make_sort_words(unsorted + i, p.velo_unsorted.id + first + i, p.velo_unsorted.phi + first + i,
                                        p.velo_unsorted.module_pair + first + i, i, n - i);
    if (hlt::bits_of(unusual) != 0u) {
        velo_sort_by_phi(p, dim3{event, 1, 1});
        return;
    }

    alignas(32) uint16_t places[hlt::sort_word::n_bins] = {};  // counts of the bins, then the place of the next hit
    for (uint32_t i = 0; i < n; ++i) ++places[unsorted[i] >> hlt::sort_word::bin_shift];
    uint32_t largest = 0, pairs = 0;
    for (uint32_t bin = 0; bin < hlt::n_phi_bins; ++bin) {
        const uint32_t hits = places[bin];
        largest = hlt::max_of(largest, hits);
        pairs += hits * hits;
    }
    uint16_t offset = 0;
    for (uint32_t bin = 0; bin < hlt::sort_word::n_bins; bin += 8u) {
        hlt::uint8x16 counts;
        hlt::load8(counts, places + bin);
        offset = hlt::add_up(counts, offset);
        std::memcpy(places + bin, &counts, sizeof counts);
    }
    const uint32_t n_in_bins = places[hlt::n_phi_bins];
    const bool sortable =
        largest <= hlt::max_hits_per_bin && pairs <= hlt::max_pairs_per_hit * hlt::max_of(n_in_bins, hlt::n_phi_bins);
    const uint32_t n_hits = sortable ? n_in_bins : 0u;
    p.velo_clusters.count[event] = n_hits;
    if (!sortable) {
        p.events.flags[event] |= hlt::overflow;
        std::memset(bin_offset, 0, (hlt::n_phi_bins + 1u) * sizeof *bin_offset);
        std::memset(pair_offset, 0, (hlt::n_velo_module_pairs + 1u) * sizeof *pair_offset);
        return;
    }
    std::memcpy(bin_offset, places, (hlt::n_phi_bins + 1u) * sizeof *bin_offset);
    for (uint32_t pair = 0; pair <= hlt::n_velo_module_pairs; ++pair)
        pair_offset[pair] = bin_offset[pair * hlt::phi_bins_per_pair];

    for (uint32_t i = 0; i < n; ++i) words[places[unsorted[i] >> hlt::sort_word::bin_shift]++] = unsorted[i];
    if (n_hits > 1u) {  // an event without hits has no spare places
        for (uint32_t i = 0; i < hlt::velo_hit_padding; ++i) words[n_hits + i] = ~uint64_t{0};
        for (uint32_t k = 0; k < hlt::sort_word::exchanges; ++k) hlt::exchange_neighbours(words, n_hits);
        hlt::put_in_order(words, n_hits, x, y);
    }

    float* __restrict__ hit_x = p.velo_hits.x + first;
    float* __restrict__ hit_y = p.velo_hits.y + first;
    float* __restrict__ hit_z = p.velo_hits.z + first;
    int16_t* __restrict__ hit_phi = p.velo_hits.phi + first;
    uint32_t* __restrict__ hit_id = p.velo_hits.id + first;
    for (uint32_t i = 0; i < n_hits; ++i) {
        const uint32_t from = hlt::sort_word::number_of(words[i]);
        hit_x[i] = x[from];
        hit_y[i] = y[from];
        hit_z[i] = z[from];
    }
    for (uint32_t i = 0; i < n_hits; ++i) {
        const uint32_t place = static_cast<uint32_t>(words[i] >> hlt::sort_word::place_shift);
        const uint32_t low_id = static_cast<uint32_t>(words[i] >> hlt::sort_word::id_shift);
        hit_phi[i] = hlt::phi_of(place);
        hit_id[i] = 2u << 28 | (low_id << 5 & 3u << 26) | place >> 16 << hlt::sort_word::pair_shift |
                    (low_id & hlt::sort_word::low_id_bits);
    }
}
