#include "window_list.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "little_endian.h"
#include "small_copy.h"

namespace nb = nanobind;

namespace {

template <typename T, int dimensions>
using Array = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using Words = Array<const uint32_t, 1>;
using Times = Array<const int32_t, 1>;
using Marks = Array<const uint8_t, 1>;
using Column = Array<const uint8_t, 2>;  // [windows][bytes of one]

// A thread that releases the GIL may wait to get it back; that is too long for some microseconds of work.
constexpr std::size_t long_work = 1 << 14;

// The windows of the sub-slices with a mark in `kept`, without empty ones: the block of a list of values (protocol/
// value_lists.py). Those of sub-slice e are the elements from `offsets`[e] to `offsets`[e + 1]. `text` is the
// description of the list, whose values are `columns` in this order. Those of `start_column` and `end_column` are empty
// in `columns` and come from `starts` and `ends`: ns since the start of the sub-slice, in the list u64 since the start
// of the run. Sub-slice 0 starts at `first_ns`; times before the start of the run are 0. None if the block has more
// bytes than `room`.
nb::object window_list(const nb::bytes& text, const Words& offsets, const Times& starts, const Times& ends,
                       const std::vector<Column>& columns, std::size_t start_column, std::size_t end_column,
                       const Marks& kept, int64_t first_ns, int64_t length_ns, int64_t room)
{
    const std::size_t n_events = kept.size();
    if (offsets.size() != n_events + 1 || offsets(0) != 0)
        throw nb::value_error("the windows have another number of events");
    for (std::size_t e = 0; e < n_events; ++e)
        if (offsets(e) > offsets(e + 1)) throw nb::value_error("the offsets of windows do not ascend");
    const std::size_t n_all = offsets(n_events);
    const auto is_time = [&](std::size_t i) { return i == start_column || i == end_column; };
    for (std::size_t i = 0; i < columns.size(); ++i)
        if (!is_time(i) && columns[i].shape(0) < n_all)
            throw nb::value_error("the values of windows end before their offsets");
    if (starts.size() < n_all || ends.size() < n_all || text.size() % 4)
        throw nb::value_error("the windows end before their offsets");
    const auto size_of = [&](std::size_t i) { return is_time(i) ? sizeof(uint64_t) : columns[i].shape(1); };

    std::vector<uint32_t> rows;
    std::vector<uint64_t> origins;
    std::vector<uint8_t> block;
    {
        std::optional<nb::gil_scoped_release> released;
        if (n_all > long_work) released.emplace();
        rows.reserve(n_all);
        origins.reserve(n_all);
        const std::size_t offsets_at = 4 + text.size() + 4;
        block.resize(offsets_at + 4 * (n_events + 1));
        std::memcpy(block.data() + 4, text.data(), text.size());
        put_u32(block.data() + 4 + text.size(), static_cast<uint32_t>(n_events));
        for (std::size_t e = 0; e < n_events; ++e) {
            const int64_t origin = first_ns + static_cast<int64_t>(e) * length_ns;
            if (kept(e))
                for (uint32_t i = offsets(e); i < offsets(e + 1); ++i)
                    if (starts(i) < ends(i)) {
                        rows.push_back(i);
                        origins.push_back(static_cast<uint64_t>(origin));
                    }
            put_u32(block.data() + offsets_at + 4 * (e + 1), static_cast<uint32_t>(rows.size()));
        }
        std::size_t size = 0;
        for (std::size_t i = 0; i < columns.size(); ++i) size += padded_to_4(rows.size() * size_of(i));
        if (static_cast<int64_t>(block.size() + size) > room) block.clear();
        for (std::size_t i = 0; i < columns.size() && !block.empty(); ++i) {
            const std::size_t at = block.size(), bytes = size_of(i);
            block.resize(at + padded_to_4(rows.size() * bytes));
            uint8_t* to = block.data() + at;
            for (std::size_t k = 0; k < rows.size(); ++k, to += bytes) {
                if (!is_time(i)) {
                    copy_small(to, columns[i].data() + rows[k] * bytes, bytes);
                    continue;
                }
                const int64_t time = i == start_column ? starts(rows[k]) : ends(rows[k]);
                put_u64(to, static_cast<uint64_t>(std::max<int64_t>(static_cast<int64_t>(origins[k]) + time, 0)));
            }
        }
        if (!block.empty()) put_u32(block.data(), static_cast<uint32_t>(block.size()));
    }
    if (block.empty()) return nb::none();
    return nb::bytes(block.data(), block.size());
}

}  // namespace

void add_window_list(nb::module_& module)
{
    module.def("window_list", &window_list, nb::arg("text"), nb::arg("offsets"), nb::arg("starts"), nb::arg("ends"),
               nb::arg("columns"), nb::arg("start_column"), nb::arg("end_column"), nb::arg("kept"), nb::arg("first_ns"),
               nb::arg("length_ns"), nb::arg("room"),
               "The windows of a time slice as the block of a list; None if it does not fit. ValueError for "
               "inconsistent tables");
}
