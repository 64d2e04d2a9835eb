// Multi-fragment packets (docs/formats/mfp.md): the checks of Mfp.parse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "little_endian.h"
#include "small_copy.h"

constexpr std::size_t mfp_header_size = 20;
constexpr uint16_t mfp_magic = 0x40CE;
constexpr uint8_t no_bank = 255;  // type of an absent bank

inline std::size_t mfp_sizes_at(std::size_t n) { return padded_to_4(mfp_header_size + n); }
inline std::size_t mfp_data_at(std::size_t n) { return padded_to_4(mfp_sizes_at(n) + 2 * n); }

// Packing of the MFPs that this code writes: fragments are padded to 2^3 bytes.
constexpr uint8_t written_align = 3;
inline std::size_t padded_fragment(std::size_t size)
{
    constexpr std::size_t step = std::size_t{1} << written_align;
    return (size + step - 1) & ~(step - 1);
}

// Write the header of an MFP of n fragments, and its arrays for fragments that are all absent.
inline void put_mfp_head(uint8_t* mfp, std::size_t n, uint32_t packet_size, uint64_t first_event, uint16_t source,
                         uint8_t version)
{
    put_u16(mfp, mfp_magic);
    put_u16(mfp + 2, static_cast<uint16_t>(n));
    put_u32(mfp + 4, packet_size);
    put_u64(mfp + 8, first_event);
    put_u16(mfp + 16, source);
    mfp[18] = written_align;
    mfp[19] = version;
    std::memset(mfp + mfp_header_size, no_bank, n);
    std::memset(mfp + mfp_header_size + n, 0, mfp_data_at(n) - mfp_header_size - n);
}

// Write a fragment and its padding; returns the place of the next one.
inline uint8_t* put_fragment(uint8_t* to, const uint8_t* payload, std::size_t size)
{
    const std::size_t padded = padded_fragment(size);
    if (padded) put_u64(to + padded - 8, 0);
    copy_small(to, payload, size);
    return to + padded;
}

// Sum of the padded sizes of the fragments from `first` to `last` (excluded); `mask` is the packing minus 1.
inline uint32_t padded_sum(const uint8_t* sizes, uint32_t first, uint32_t last, uint32_t mask)
{
    uint32_t sum = 0;
    for (uint32_t i = first; i < last; ++i) {
        uint16_t size;
        std::memcpy(&size, sizes + 2 * std::size_t{i}, sizeof size);
        sum += (size + mask) & ~mask;
    }
    return sum;
}

// Sum of the padded sizes of n fragments; -1 if an absent bank has a size. `types` and `sizes` are the arrays of the
// MFP.
inline int64_t padded_fragments(const uint8_t* types, const uint8_t* sizes, uint32_t n, uint32_t align)
{
    uint32_t absent_with_size = 0;
    for (uint32_t i = 0; i < n; ++i) {
        uint16_t size;
        std::memcpy(&size, sizes + 2 * std::size_t{i}, sizeof size);
        absent_with_size |= types[i] == no_bank ? size : 0;
    }
    // At most 65,535 fragments of 65,535 bytes and their padding: 32 bits are enough.
    static_assert(0xFFFFull * (0xFFFFull + 1) <= UINT32_MAX);
    return absent_with_size ? -1 : static_cast<int64_t>(padded_sum(sizes, 0, n, (1u << align) - 1));
}

// Reason to refuse an MFP because of its header (a RejectReason value), or "".
inline const char* refusal_of_mfp_head(const uint8_t* mfp, std::size_t size)
{
    if (size < mfp_header_size) return "truncated";
    if (u16_at(mfp) != mfp_magic) return "bad_magic";
    const uint32_t packet_size = u32_at(mfp + 4);
    if (packet_size != size) return packet_size > size ? "truncated" : "bad_size";
    const uint32_t n = u16_at(mfp + 2), align = mfp[18];
    if (n == 0) return "bad_size";
    if (align < 2 || align > 8) return "malformed";
    if (mfp_data_at(n) > size) return "bad_size";
    return u64_at(mfp + 8) > UINT64_MAX - (n - 1) ? "malformed" : "";
}

// Reason to refuse an MFP (a RejectReason value), or "". Reads the header from `head`, a copy of the first
// `mfp_header_size` bytes, so that no other process can change it between two reads.
inline const char* refusal_of_mfp(const uint8_t* head, const uint8_t* mfp, std::size_t size)
{
    if (const char* refusal = refusal_of_mfp_head(head, size); *refusal) return refusal;
    const uint32_t n = u16_at(head + 2);
    const int64_t fragments = padded_fragments(mfp + mfp_header_size, mfp + mfp_sizes_at(n), n, head[18]);
    if (fragments < 0) return "malformed";
    return mfp_data_at(n) + static_cast<uint64_t>(fragments) == size ? "" : "bad_size";
}

// The same for an MFP that no other process can change.
inline const char* refusal_of_mfp(const uint8_t* mfp, std::size_t size) { return refusal_of_mfp(mfp, mfp, size); }
