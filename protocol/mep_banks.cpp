#include "mep_banks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "mfp.h"
#include "raw_bank.h"
#include "small_copy.h"
#include "written_banks.h"

namespace {

// Events per group, whose records are made together, and sources per tile, whose pieces of a group lie together. A
// piece has eight bytes, so a cache line holds one event of a tile.
constexpr std::size_t group_size = 32, tile = 8;
// Prefetch distances for scattered data: MFPs, their tables, and tiles of fragments.
constexpr std::size_t heads_ahead = 8, tables_ahead = 4, tiles_ahead = 2;
// If at least one in `dense` events of a group is kept, the group is copied source by source: the fragments of a source
// share cache lines. Fewer events are copied one by one: their fragments share no lines, and each record is written in
// one pass.
constexpr std::size_t dense = 4;
[[noreturn]] void throw_not_sound()
{
    throw std::invalid_argument("an MFP is damaged, or its events are not those of its MEP");
}

uint16_t size_at(const uint8_t* sizes, std::size_t event)
{
    uint16_t size;
    std::memcpy(&size, sizes + 2 * event, sizeof size);
    return size;
}

// The sum of sizes is also compiled for wider registers; the version for this processor is chosen at the start.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__has_attribute)
#if __has_attribute(target_clones)
#define FOR_WIDE_REGISTERS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#endif
#ifndef FOR_WIDE_REGISTERS
#define FOR_WIDE_REGISTERS
#endif

// Sum of the padded sizes of n fragments; reads sizes up to the next multiple of 16.
FOR_WIDE_REGISTERS uint32_t padded_sum_by_16(const uint8_t* sizes, uint32_t n, uint32_t mask)
{
    constexpr uint32_t at_once = 16;
    using Sizes = uint16_t __attribute__((vector_size(at_once * sizeof(uint16_t))));
    using Sums = uint32_t __attribute__((vector_size(at_once * sizeof(uint32_t))));
    constexpr Sums index = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Sums sums = {};
    for (uint32_t first = 0; first <= n; first += at_once) {
        Sizes of_these;
        std::memcpy(&of_these, sizes + 2 * std::size_t{first}, sizeof of_these);
        const Sums padded = (__builtin_convertvector(of_these, Sums) + mask) & ~mask;
        sums += padded & reinterpret_cast<Sums>(index < n - first);
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i < at_once; ++i) sum += sums[i];
    return sum;
}

}  // namespace

MepBanks::MepBanks(const uint8_t* buffer, std::size_t buffer_size, std::vector<PlacedMfp> mfps, const int64_t* events,
                   std::size_t n_kept, std::size_t first, std::size_t n_events)
    : n_events_(static_cast<uint32_t>(n_events))
{
    const auto before = [](const PlacedMfp& a, const PlacedMfp& b) {
        return std::pair(a.source, a.offset) < std::pair(b.source, b.offset);
    };
    if (!std::is_sorted(mfps.begin(), mfps.end(), before)) std::sort(mfps.begin(), mfps.end(), before);
    sources_.reserve(mfps.size());
    for (std::size_t m = 0; m < mfps.size(); ++m) {
        const auto& [source, offset, size] = mfps[m];
        if (offset > buffer_size || size > buffer_size - offset) throw_not_sound();
        if (m + heads_ahead < mfps.size())
            __builtin_prefetch(buffer + std::min<uint64_t>(mfps[m + heads_ahead].offset, buffer_size));
        const uint8_t* mfp = buffer + offset;
        if (*refusal_of_mfp_head(mfp, size) || u16_at(mfp + 2) != n_events) throw_not_sound();
        sources_.push_back({mfp, mfp + mfp_header_size, mfp + mfp_sizes_at(n_events), size, (1u << mfp[18]) - 1, 0,
                            static_cast<uint32_t>(mfp_data_at(n_events)), static_cast<uint16_t>(source), mfp[19]});
    }
    events_.reserve(n_kept);
    for (std::size_t k = 0; k < n_kept; ++k)
        events_.push_back(static_cast<uint32_t>(events[k] - static_cast<int64_t>(first)));
    n_tiles_ = (sources_.size() + tile - 1) / tile;
    pieces_.resize(n_kept * n_tiles_ * tile);
}

uint64_t MepBanks::measure(std::size_t* bodies, trigger_banks::Odin* odins)
{
    uint64_t left_out = 0;
    const std::size_t n = sources_.size();
    for (std::size_t begin = 0; begin < events_.size(); begin += group_size) {
        const std::size_t end = std::min(begin + group_size, events_.size());
        Piece* pieces = pieces_.data() + begin * n_tiles_ * tile;
        for (std::size_t m = 0; m < n; ++m)
            left_out += measure_source(sources_[m], sources_[std::min(m + tables_ahead, n - 1)], begin, end,
                                       pieces + m / tile * (end - begin) * tile + m % tile, bodies, odins);
    }
    return left_out;
}

uint64_t MepBanks::measure_source(Source& source, const Source& following, std::size_t begin, std::size_t end,
                                  Piece* pieces, std::size_t* bodies, trigger_banks::Odin* odins) const
{
    uint64_t left_out = 0;
    for (std::size_t k = begin; k < end; ++k, pieces += tile) {
        const uint32_t event = events_[k];
        // The hardware prefetcher follows one table, but not from one MFP to the next.
        __builtin_prefetch(following.sizes + 2 * std::size_t{event});
        __builtin_prefetch(following.types + event);
        advance(source, event, n_events_);
        const uint16_t size = size_at(source.sizes, event);
        uint8_t type = source.types[event];
        if (uint64_t{source.at} + size > source.mfp_size) throw_not_sound();
        if (type == trigger_banks::odin_type && !odins[k].readable)
            odins[k] = trigger_banks::Odin::of_bank(type, source.version, source.mfp + source.at, size);
        if (trigger_banks::is_trigger_bank(type)) type = no_bank;
        if (type != no_bank && !can_be_written(type, size)) {
            ++left_out;
            type = no_bank;
        }
        *pieces = {source.at, size, type};
        bodies[k] += type == no_bank ? 0 : bank_header_size + padded_to_4(size);
    }
    return left_out;
}

// Inlined by force: the compiler removes calls of functions that only prefetch.
__attribute__((always_inline)) inline void MepBanks::prefetch(const uint8_t* mfp, const Piece& piece)
{
    __builtin_prefetch(mfp + piece.offset);
    if (piece.size > 1) __builtin_prefetch(mfp + piece.offset + piece.size - 1);
}

inline uint8_t* MepBanks::copy_fragment(const Source& source, const Piece& piece, uint8_t* to)
{
    const auto [offset, size, type] = piece;
    if (type == no_bank) return to;
    put_bank_header(to, bank_header_size + size, type, source.version, source.id);
    uint8_t* const end = to + bank_header_size + padded_to_4(size);
    // Zero the last word of the payload first: its end is the padding.
    if (size) put_u32(end - 4, 0);
    copy_small(to + bank_header_size, source.mfp + offset, size);
    return end;
}

// Advance to a later event.
inline void MepBanks::advance(Source& source, uint32_t event, uint32_t n_events)
{
    const uint32_t n = event - source.event;
    const uint8_t* sizes = source.sizes + 2 * std::size_t{source.event};
    if (n == 1)
        source.at += (size_at(sizes, 0) + source.mask) & ~source.mask;
    else if (uint64_t{source.event} + n + 16 <= n_events)
        source.at += padded_sum_by_16(sizes, n, source.mask);
    else
        source.at += padded_sum(sizes, 0, n, source.mask);
    source.event = event;
}

void MepBanks::copy(uint8_t** places) const
{
    for (std::size_t begin = 0; begin < events_.size(); begin += group_size) {
        const std::size_t n_group = std::min(group_size, events_.size() - begin);
        const Piece* pieces = pieces_.data() + begin * n_tiles_ * tile;
        if (events_[begin + n_group - 1] - events_[begin] < dense * n_group)
            copy_by_source(places + begin, pieces, n_group);
        else
            for (std::size_t k = 0; k < n_group; ++k)
                places[begin + k] = copy_event(places[begin + k], pieces + k * tile, n_group);
    }
}

uint8_t* MepBanks::copy_event(uint8_t* to, const Piece* pieces, std::size_t n_group) const
{
    const Source* const sources = sources_.data();
    const std::size_t n = sources_.size(), to_next_tile = n_group * tile;
    for (std::size_t first = 0; first < n; first += tile, pieces += to_next_tile) {
        const Piece* ahead = pieces + tiles_ahead * to_next_tile;
        for (std::size_t i = 0; i < std::min(tile, n - first); ++i) {
            if (const std::size_t m = first + i + tiles_ahead * tile; m < n) prefetch(sources[m].mfp, ahead[i]);
            to = copy_fragment(sources[first + i], pieces[i], to);
        }
    }
    return to;
}

void MepBanks::copy_by_source(uint8_t** places, const Piece* pieces, std::size_t n_group) const
{
    const Source* const sources = sources_.data();
    const std::size_t n = sources_.size();
    std::array<uint8_t*, group_size> to;
    std::copy_n(places, n_group, to.begin());
    for (std::size_t m = 0; m < n; ++m) {
        const Piece* of_source = pieces + m / tile * n_group * tile + m % tile;
        if (m + 1 < n) {
            const Piece* next = pieces + (m + 1) / tile * n_group * tile + (m + 1) % tile;
            for (std::size_t k = 0; k < n_group; ++k) prefetch(sources[m + 1].mfp, next[k * tile]);
        }
        for (std::size_t k = 0; k < n_group; ++k) to[k] = copy_fragment(sources[m], of_source[k * tile], to[k]);
    }
    std::copy_n(to.begin(), n_group, places);
}
