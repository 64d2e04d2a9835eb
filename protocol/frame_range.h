// Frames one behind the other in memory that another process may change at any moment (docs/formats/memory-socket.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "little_endian.h"
#include "private_copy.h"
#include "transport_frame.h"

constexpr std::size_t shared_frame_alignment = 64, frame_length_at = 12;

struct FrameInRange {
    std::size_t end, next;  // of this frame, and where the next one begins; neither is beyond the range
};

// The frame at `at` in a range of `size` bytes. Its length is read once, and the end follows from it: what the frame
// says later is compared with it. One that reaches beyond the range, or has no header, ends with the range: its header
// says that it is damaged.
inline FrameInRange frame_in_range(const uint8_t* range, std::size_t size, std::size_t at)
{
    const std::size_t left = size - at;
    if (left < frame_header_size) return {size, size};
    const std::size_t length = u32_at(PrivateCopy<4>(range + at + frame_length_at, 4).bytes);
    if (length > left - frame_header_size) return {size, size};
    const std::size_t end = at + frame_header_size + length;
    const std::size_t next = (end + shared_frame_alignment - 1) / shared_frame_alignment * shared_frame_alignment;
    return {end, next < size ? next : size};
}
