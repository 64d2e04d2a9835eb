// Checks and copy of a received frame and its MFP: the checks are those of frame_header.decode_header, Mfp.parse and
// frame_header.check_crc, and that a node can write the banks (written_banks.h). Both headers are read only once,
// because another process may change the bytes meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crc32c.h"
#include "little_endian.h"
#include "mfp.h"
#include "private_copy.h"
#include "transport_frame.h"
#include "written_banks.h"

// The transport header (docs/formats/transport-frame.md) at the start of a frame.
struct FrameHeader {
    uint32_t magic, run, length, crc;
    uint16_t version, source, reserved;
    uint64_t mep, token;

    explicit FrameHeader(const uint8_t* frame)
        : magic(u32_at(frame)),
          run(u32_at(frame + 8)),
          length(u32_at(frame + 12)),
          crc(u32_at(frame + crc_at)),
          version(u16_at(frame + 4)),
          source(u16_at(frame + 32)),
          reserved(u16_at(frame + 34)),
          mep(u64_at(frame + 16)),
          token(u64_at(frame + token_at))
    {
    }
};

// Reason to refuse the header of a frame (a RejectReason value), or "".
inline const char* refusal_of_header(const FrameHeader& header, std::size_t size)
{
    if (size < frame_header_size) return "truncated";
    if (header.magic != frame_magic) return "bad_magic";
    if (header.version != frame_version) return "bad_version";
    if (header.length > size) return "oversized";
    if (header.length > size - frame_header_size) return "truncated";
    if (header.length < size - frame_header_size) return "bad_size";
    // A feeder confirms a MEP with the next id, so the last id of 64 bits can never be confirmed.
    return header.reserved || header.mep == UINT64_MAX ? "malformed" : "";
}

// Header fields of a frame; its CRC is not checked.
struct InspectedFrame {
    bool is_readable;
    const char* refusal;  // reason to refuse frame or MFP, or ""
    FrameHeader header;
    uint64_t first_event;
    uint16_t n_events;

    InspectedFrame(const uint8_t* frame, std::size_t size)
        : InspectedFrame(PrivateCopy<frame_header_size + mfp_header_size>(frame, size), frame, size)
    {
    }

  private:
    InspectedFrame(const PrivateCopy<frame_header_size + mfp_header_size>& head, const uint8_t* frame, std::size_t size)
        : refusal(nullptr), header(head.bytes), first_event(0), n_events(0)
    {
        refusal = refusal_of_header(header, size);
        is_readable = !*refusal;
        if (!is_readable) return;
        const uint8_t *mfp = head.bytes + frame_header_size, *placed = frame + frame_header_size;
        refusal = refusal_of_mfp(mfp, placed, header.length);
        if (*refusal) return;
        first_event = u64_at(mfp + 8);
        n_events = u16_at(mfp + 2);
        refusal = u16_at(mfp + 16) != header.source
                      ? "malformed"
                      : refusal_of_banks(placed + mfp_header_size, placed + mfp_sizes_at(n_events), n_events);
    }
};

// The announced CRC of a frame, and the CRC of its header, from which the CRC of the MFP continues. A frame with a
// damaged header never has the right CRC.
struct FrameCrc {
    bool is_sound;
    uint32_t announced, of_header;

    FrameCrc(const uint8_t* frame, std::size_t size, crc32c::Copy copy)
        : FrameCrc(PrivateCopy<frame_header_size>(frame, size), size, copy)
    {
    }

  private:
    FrameCrc(const PrivateCopy<frame_header_size>& head, std::size_t size, crc32c::Copy copy)
        : is_sound(!*refusal_of_header(FrameHeader(head.bytes), size)),
          announced(FrameHeader(head.bytes).crc),
          of_header(copy(0, head.bytes, nullptr, crc_at))
    {
    }
};

// Copies the MFP of a frame to `to` unless it is null, and computes the CRC during the copy. Returns whether the CRC is
// the announced one. A frame with a damaged header is not copied.
inline bool copy_and_check(const uint8_t* frame, std::size_t size, uint8_t* to, crc32c::Copy copy)
{
    const FrameCrc crc(frame, size, copy);
    return crc.is_sound &&
           copy(crc.of_header, frame + frame_header_size, to, size - frame_header_size) == crc.announced;
}

// Reason to refuse a copied MFP (a RejectReason value), or "" if it is the MFP that its frame announced.
inline const char* refusal_of_placed(const uint8_t* mfp, std::size_t size, uint16_t source, uint64_t first_event,
                                     uint16_t n_events)
{
    if (const char* refusal = refusal_of_mfp(mfp, size); *refusal) return refusal;
    const bool is_it = u16_at(mfp + 16) == source && u64_at(mfp + 8) == first_event && u16_at(mfp + 2) == n_events;
    return is_it ? refusal_of_banks(mfp + mfp_header_size, mfp + mfp_sizes_at(n_events), n_events) : "malformed";
}
