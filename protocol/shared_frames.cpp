// Frames in memory that another process may change at any moment: their places, and the check of their copies.
#include "shared_frames.h"

#include <cstddef>
#include <cstdint>

#include "buffer_view.h"
#include "fragment_frame.h"
#include "frame_range.h"

namespace nb = nanobind;

namespace {

constexpr int64_t alignment = shared_frame_alignment;

// As in fragment_frame.h, for the bytes at an offset of a slot.
const char* refusal_in_slot(const nb::handle& slot, std::size_t offset, std::size_t size, uint16_t source,
                            uint64_t first_event, uint16_t n_events)
{
    const View bytes(slot.ptr());
    if (offset > bytes.size() || size > bytes.size() - offset) throw nb::value_error("the MFP is not in the slot");
    return ::refusal_of_placed(bytes.bytes() + offset, size, source, first_event, n_events);
}

int64_t offset_of(const View& segment, const View& part)
{
    const uintptr_t begin = reinterpret_cast<uintptr_t>(segment.bytes()),
                    at = reinterpret_cast<uintptr_t>(part.bytes());
    if (at < begin || at - begin > segment.size() || part.size() > segment.size() - (at - begin)) return -1;
    return static_cast<int64_t>(at - begin);
}

// Offset of a buffer in a segment, or -1 if it lies outside.
int64_t offset_in(const nb::handle& segment, const nb::handle& part)
{
    return offset_of(View(segment.ptr()), View(part.ptr()));
}

// Up to `most` ranges (offset, size) that hold the first of these frames, and the number of these frames. Ends before
// the first frame outside the segment. A frame at the next aligned place after the previous one shares its range.
nb::tuple ranges_in(const nb::handle& segment, const nb::list& frames, std::size_t most)
{
    const View whole(segment.ptr());
    nb::list ranges;
    int64_t begin = -1, end = -1;
    std::size_t n = 0;
    for (const nb::handle each : frames) {
        const View frame(each.ptr());
        const int64_t at = offset_of(whole, frame);
        if (at < 0) break;
        if (begin < 0 || at != (end + alignment - 1) / alignment * alignment) {
            if (begin >= 0) ranges.append(nb::make_tuple(begin, end - begin));
            begin = -1;
            if (ranges.size() == most) break;
            begin = at;
        }
        end = at + static_cast<int64_t>(frame.size());
        ++n;
    }
    if (begin >= 0) ranges.append(nb::make_tuple(begin, end - begin));
    return nb::make_tuple(ranges, n);
}

}  // namespace

void add_shared_frames(nb::module_& module)
{
    module.def("refusal_of_placed", &refusal_in_slot, nb::arg("slot"), nb::arg("offset"), nb::arg("size"),
               nb::arg("source"), nb::arg("first_event"), nb::arg("n_events"),
               "Reason to refuse the MFP in a slot because it differs from the announced one, or an empty text");
    module.def("ranges_in", &ranges_in, nb::arg("segment"), nb::arg("frames"), nb::arg("most"),
               "Ranges of a segment that hold the first of these frames, and the number of these frames");
    module.def("offset_in", &offset_in, nb::arg("segment"), nb::arg("part"),
               "Offset of a buffer in a segment, -1 if it lies outside");
}
