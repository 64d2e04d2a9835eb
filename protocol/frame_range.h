// Consecutive frames in memory that another process may change at any moment (docs/formats/memory-socket.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "little_endian.h"
#include "private_copy.h"
#include "transport_frame.h"

constexpr std::size_t shared_frame_alignment = 64, frame_length_at = 12;

struct FrameInRange {
    std::size_t end, next;  // end of this frame, start of the next one; both within the range
};

// The frame at `at` in a range of `size` bytes. Its length is read once and gives the end; later reads of the frame are
// compared with it. A frame that extends beyond the range, or has no header, ends with the range; the check of its
// header then refuses it.
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
