// Multi-fragment packets (docs/formats/mfp.md): their checks, which are those of Mfp.parse, and a walk over their
// fragments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "little_endian.h"

constexpr std::size_t mfp_header_size = 20;
constexpr uint8_t no_bank = 255;  // type of an absent bank

inline std::size_t mfp_sizes_at(std::size_t n) { return padded_to_4(mfp_header_size + n); }
inline std::size_t mfp_data_at(std::size_t n) { return padded_to_4(mfp_sizes_at(n) + 2 * n); }

// Sum of the padded sizes of n fragments, of which `types` and `sizes` are the arrays of an MFP, or -1 where an absent
// bank has a size.
inline int64_t padded_fragments(const uint8_t* types, const uint8_t* sizes, uint32_t n, uint32_t align)
{
    const uint32_t mask = (1u << align) - 1;
    uint64_t sum = 0;
    bool absent_with_size = false;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t size = u16_at(sizes + 2 * i);
        sum += (size + mask) & ~mask;
        absent_with_size |= types[i] == no_bank && size != 0;
    }
    return absent_with_size ? -1 : static_cast<int64_t>(sum);
}

// Why an MFP is refused, as a RejectReason's value, or "".
inline const char* refusal_of_mfp(const uint8_t* mfp, std::size_t size)
{
    if (size < mfp_header_size) return "truncated";
    if (u16_at(mfp) != 0x40CE) return "bad_magic";
    const uint32_t packet_size = u32_at(mfp + 4);
    if (packet_size != size) return packet_size > size ? "truncated" : "bad_size";
    const uint32_t n = u16_at(mfp + 2), align = mfp[18];
    if (n == 0) return "bad_size";
    if (align < 2 || align > 8) return "malformed";
    const std::size_t data_at = mfp_data_at(n);
    if (data_at > size) return "bad_size";
    if (u64_at(mfp + 8) > UINT64_MAX - (n - 1)) return "malformed";
    const int64_t fragments = padded_fragments(mfp + mfp_header_size, mfp + mfp_sizes_at(n), n, align);
    if (fragments < 0) return "malformed";
    return data_at + static_cast<uint64_t>(fragments) == size ? "" : "bad_size";
}

// An MFP that is not refused.
struct MfpView {
    const uint8_t* bytes;

    uint32_t n_fragments() const { return u16_at(bytes + 2); }
    uint16_t source() const { return u16_at(bytes + 16); }
    uint8_t version() const { return bytes[19]; }

    // Call `use(k, type, data, size)` for the fragments `events[k]`, which ascend and are below n_fragments().
    // Fragments are padded to 4 bytes at least.
    template <typename Use>
    void for_each(const int64_t* events, std::size_t n_events, Use use) const
    {
        const uint32_t n = n_fragments(), mask = (1u << bytes[18]) - 1;
        const uint8_t* types = bytes + mfp_header_size;
        const uint8_t* sizes = bytes + mfp_sizes_at(n);
        std::size_t at = mfp_data_at(n);
        uint32_t fragment = 0;
        for (std::size_t k = 0; k < n_events; ++k) {
            const uint32_t wanted = static_cast<uint32_t>(events[k]);
            for (; fragment < wanted; ++fragment) at += (u16_at(sizes + 2 * fragment) + mask) & ~mask;
            use(k, types[wanted], bytes + at, u16_at(sizes + 2 * wanted));
        }
    }
};
