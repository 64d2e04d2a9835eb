// UT raw banks to hits, sorted by sector group (docs/physics/ut.md).
//
// Hits are sorted as words: sector << 11 | distance of the strip from the first one in quarters, with sectors numbered
// by group and from below. The hits are counted by sector, laid out, then ranked inside their sector. Equal words are
// the same hit, so the result does not depend on the order of threads. Of two banks of one board, only the one with the
// smaller source id is read. A strip or lane that does not exist, and a second bank of a board, flag the event. An
// event with more hits in a sector than the sector has strips is flagged as overflow and has no hits: this is not a
// physics event, and the limit bounds the cost of ranking.
// In:  the fragments of the UT rows, ut_geometry, ut_hits.bound. Out: ut_hits.{x, z, y_begin, y_end, weight, id},
// ut_hits.{count, group_offset, sector_offset} [event]; events.flags.
// One block per event; a thread decodes one bank at a time, places come from a prefix sum over the banks.
// Bounds: the hits of all banks of the event were counted into ut_hits.bound; an event of bound 0 is skipped.
#pragma once

#include "framework/generated/launch_types.h"
#include "lhcb/ut/bank.cuh"
#include "lhcb/ut/generated/ut_decode_banks.h"

namespace hlt {

constexpr uint32_t ut_quarters = 4;
constexpr uint32_t ut_word_bits = 11;  // of the distance, in quarters
constexpr uint32_t ut_word_mask = (1u << ut_word_bits) - 1u;
static_assert(n_ut_strips * ut_quarters == 1u << ut_word_bits);
constexpr uint32_t no_ut_word = 0xffffffffu;
constexpr uint32_t max_ut_hits_of_sector = n_ut_strips;

/// The word of a hit; no_ut_word, and `broken` set, if the strip does not exist.
__device__ uint32_t ut_word(const ut_geometry& geometry, uint32_t sector, uint32_t strip, uint32_t fraction,
                            bool& broken)
{
    const uint32_t numbering = geometry.numbering[sector];
    const uint32_t from_first = strip - (numbering & 0xffffu);
    if (from_first >= n_ut_strips) {
        broken = true;
        return no_ut_word;
    }
    const uint32_t along = (numbering & ut_backwards) != 0u ? n_ut_strips - 1u - from_first : from_first;
    const uint32_t distance = ut_quarters * along + fraction;
    return sector << ut_word_bits | ((numbering & ut_descending) != 0u ? ut_word_mask - distance : distance);
}

/// Columns of the hits of an event.
struct decoded_ut_hits {
    float* __restrict__ x;
    float* __restrict__ z;
    float* __restrict__ y_begin;
    float* __restrict__ y_end;
    float* __restrict__ weight;
    uint32_t* __restrict__ id;

    /// Write hit `i`.
    __device__ __forceinline__ void store(uint32_t i, uint32_t word, const ut_geometry& geometry) const
    {
        const uint32_t sector = word >> ut_word_bits, numbering = geometry.numbering[sector];
        const ut_strips& strips = geometry.strips[sector];
        const uint32_t distance = (numbering & ut_descending) != 0u ? ~word & ut_word_mask : word & ut_word_mask;
        const float n = static_cast<float>(static_cast<int32_t>(distance)) * (1.f / static_cast<float>(ut_quarters));
        const float y = strips.y + n * strips.dy, other_y = y + strips.height;
        x[i] = strips.x + n * strips.dx;
        z[i] = strips.z + n * strips.dz;
        y_begin[i] = min_of(y, other_y);
        y_end[i] = max_of(y, other_y);
        weight[i] = strips.weight;
        const uint32_t along = distance / ut_quarters;
        id[i] = geometry.channel[sector] + ((numbering & ut_backwards) != 0u ? n_ut_strips - 1u - along : along);
    }
};

#if HLT_ON_GPU

/// Order the words of each sector: from `laid_out` to `sorted`, by their rank.
__device__ void sort_ut_words(event_column<uint32_t> laid_out, event_column<uint32_t> sorted,
                              const uint16_t* sector_offset, uint32_t n_words)
{
    for (uint32_t i = threadIdx.x; i < n_words; i += blockDim.x) {
        const uint32_t word = laid_out[i], sector = word >> ut_word_bits;
        const uint32_t begin = sector_offset[sector], end = sector_offset[sector + 1u];
        uint32_t rank = begin;
        for (uint32_t j = begin; j < end; ++j) {
            const uint32_t other = laid_out[j];
            rank += other < word || (other == word && j < i) ? 1u : 0u;
        }
        sorted[rank] = word;
    }
}

/// The buffer with the result of sort_ut_words.
__device__ const event_column<uint32_t>& sorted_ut_words(const event_column<uint32_t>&,
                                                         const event_column<uint32_t>& sorted)
{
    return sorted;
}

#else

/// Order the words of each sector, in place. Sectors are already in order, so words move only inside their sector, and
/// banks have the strips of a lane in order.
inline void sort_ut_words(event_column<uint32_t> words, event_column<uint32_t>, const uint16_t*, uint32_t n_words)
{
    for (uint32_t i = 1; i < n_words; ++i) {
        const uint32_t word = words[i];
        uint32_t at = i;
        for (; at > 0u && words[at - 1u] > word; --at) words[at] = words[at - 1u];
        words[at] = word;
    }
}

/// The buffer with the result of sort_ut_words.
inline const event_column<uint32_t>& sorted_ut_words(const event_column<uint32_t>& laid_out,
                                                     const event_column<uint32_t>&)
{
    return laid_out;
}

#endif

/// Decode a bank into `words` and count its hits by sector. Returns true if a lane or a strip does not exist.
__device__ bool decode_ut_bank(const ut_bank& bank, const ut_geometry& geometry, event_column<uint32_t> words,
                               uint32_t* counts)
{
    const uint16_t* const sector_of_lane = geometry.sector_of_lane + bank.board * n_ut_lanes;
    bool broken = false;
    uint32_t lane = 0, k = 0;
    for (uint32_t i = 0; i < bank.n_hits; ++i) {
        uint32_t strip, fraction = 0;
        if (bank.version == ut_version_clusters) {
            const uint32_t cluster = load_u16(bank.payload + ut_header_v3 + 2u * i);
            const uint32_t channel = cluster >> 2 & 0xfffu;
            lane = channel / n_ut_strips;
            strip = channel % n_ut_strips + 1u;
            fraction = cluster & 3u;
        } else {
            while (k == ut_lane_hits_v4(bank.payload, lane)) ++lane, k = 0;
            strip = load_u16(bank.payload + ut_header_v4 + 2u * ut_slot_v4(lane, k++)) >> 5;
        }
        const bool exists = lane < n_ut_lanes;
        broken |= !exists;
        const uint32_t sector = exists ? sector_of_lane[lane] : no_ut_sector;
        const uint32_t word = sector == no_ut_sector ? no_ut_word : ut_word(geometry, sector, strip, fraction, broken);
        words[i] = word;
        if (word != no_ut_word) atomicAdd(&counts[sector], 1u);
    }
    return broken;
}

/// Convert the counts of sectors to the places of their first hits, in place. Returns the number of hits; sets
/// `crowded` if a sector has more hits than strips. All threads of the block must call it, with a barrier before and
/// after.
__device__ uint32_t sum_ut_sectors(uint32_t* counts, uint32_t* scratch, bool& crowded)
{
    const uint32_t share = (n_ut_sectors + blockDim.x - 1u) / blockDim.x;
    const uint32_t begin = min_of(threadIdx.x * share, n_ut_sectors), end = min_of(begin + share, n_ut_sectors);
    uint32_t mine = 0, largest = 0, total, n_crowded;
    for (uint32_t sector = begin; sector < end; ++sector) {
        mine += counts[sector];
        largest = max_of(largest, counts[sector]);
    }
    block_exclusive_count(largest > max_ut_hits_of_sector, scratch, n_crowded);
    uint32_t running = block_exclusive_sum(mine, scratch, total);
    for (uint32_t sector = begin; sector < end; ++sector) {
        const uint32_t n = counts[sector];
        counts[sector] = running;
        running += n;
    }
    crowded = n_crowded > 0u;
    return total;
}

}  // namespace hlt

HLT_KERNEL(ut_decode_banks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t counts[hlt::n_ut_sectors];
    __shared__ uint32_t row_of_board[hlt::n_ut_boards];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const hlt::ut_geometry& geometry = *p.ut_geometry;
    const uint32_t first = p.ut_hits.first(event);
    const hlt::event_column<uint32_t> unsorted{p.scratch.unsorted, first}, laid_out{p.scratch.laid_out, first};
    uint16_t* const sector_offset = p.ut_hits.sector_offset + event * hlt::ut_sector_stride;
    uint16_t* const group_offset = p.ut_hits.group_offset + event * hlt::ut_group_stride;

    for (uint32_t i = threadIdx.x; i < hlt::n_ut_sectors; i += blockDim.x) counts[i] = 0;
    for (uint32_t i = threadIdx.x; i < hlt::n_ut_boards; i += blockDim.x) row_of_board[i] = 0xffffffffu;
    __syncthreads();

    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::ut_rows_of(p.raw_banks, place.mep);
    const uint32_t n_banks = p.ut_hits.bound[event] > 0u ? rows.count : 0u;
    hlt::prefetch_fragments(p.raw_banks, {rows.first, n_banks}, place.index);
    uint32_t n_words = 0;
    for (uint32_t base = 0; base < n_banks; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        hlt::ut_bank bank{};
        if (i < n_banks) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + i];
            bank = hlt::ut_bank_of(hlt::fragment_of(p.raw_banks, row, place.index), row);
        }
        // Later rows do not change these values.
        if (bank.n_hits > 0u) atomicMin(&row_of_board[bank.board], i);
        __syncthreads();
        bool broken = bank.n_hits > 0u && row_of_board[bank.board] != i;
        if (broken) bank.n_hits = 0;
        uint32_t total;
        const uint32_t at = n_words + hlt::block_exclusive_sum(bank.n_hits, scratch, total);
        if (bank.n_hits > 0u) broken |= hlt::decode_ut_bank(bank, geometry, unsorted.from(at), counts);
        if (broken) atomicOr(&p.events.flags[event], static_cast<uint32_t>(hlt::bank_error));
        n_words += total;
    }
    __syncthreads();

    bool crowded;
    uint32_t n_hits = hlt::sum_ut_sectors(counts, scratch, crowded);
    __syncthreads();
    if (crowded) n_hits = n_words = 0;
    for (uint32_t i = threadIdx.x; i < hlt::ut_sector_stride; i += blockDim.x)
        sector_offset[i] = static_cast<uint16_t>(crowded || i >= hlt::n_ut_sectors ? n_hits : counts[i]);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < hlt::ut_group_stride; i += blockDim.x)
        group_offset[i] = sector_offset[geometry.first_sector[i]];
    if (threadIdx.x == 0) {
        p.ut_hits.count[event] = n_hits;
        if (crowded) p.events.flags[event] |= hlt::overflow;
    }

    for (uint32_t i = threadIdx.x; i < n_words; i += blockDim.x) {
        const uint32_t word = unsorted[i];
        if (word != hlt::no_ut_word) laid_out[atomicAdd(&counts[word >> hlt::ut_word_bits], 1u)] = word;
    }
    __syncthreads();

    hlt::sort_ut_words(laid_out, unsorted, sector_offset, n_hits);
    __syncthreads();
    const hlt::event_column<uint32_t>& words = hlt::sorted_ut_words(laid_out, unsorted);
    const hlt::decoded_ut_hits out{p.ut_hits.x + first,     p.ut_hits.z + first,      p.ut_hits.y_begin + first,
                                   p.ut_hits.y_end + first, p.ut_hits.weight + first, p.ut_hits.id + first};
    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) out.store(i, words[i], geometry);
}
