#include "mep_places.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "buffer_view.h"
#include "little_endian.h"
#include "mfp.h"

namespace nb = nanobind;

namespace {

constexpr uint16_t mep_magic = 0xCEFA;
constexpr std::size_t mep_header_size = 8, word = 4;
constexpr std::size_t mfp_alignment = 8;
constexpr uint16_t odin = 0;  // sub-detector of ODIN, the top five bits of its source id

// What one MEP holds, or why it is refused: a RejectReason value, and the number of the MFP at fault, -1 if it is none.
struct FoundMep {
    const char* refusal = "";
    int64_t at_fault = -1;
    uint64_t first_event = 0;
    uint16_t n_events = 0;
    std::vector<int64_t> places;  // source id, offset in bytes, bytes of each MFP

    FoundMep(const uint8_t* bytes, std::size_t size) { refusal = find(bytes, size); }

  private:
    std::size_t n_mfps() const { return places.size() / 3; }

    const char* find(const uint8_t* bytes, std::size_t size)
    {
        if (size < mep_header_size) return "truncated";
        if (u16_at(bytes) != mep_magic) return "bad_magic";
        const std::size_t n = u16_at(bytes + 2), announced = word * std::size_t{u32_at(bytes + 4)};
        if (announced < mep_header_size) return "bad_size";
        if (announced != size) return announced > size ? "truncated" : "bad_size";
        if (n == 0) return "bad_size";
        const std::size_t offsets_at = mep_header_size + padded_to_4(2 * n), data_at = offsets_at + word * n;
        if (data_at > size) return "bad_size";
        places.reserve(3 * n);
        std::size_t end = data_at;
        for (std::size_t i = 0; i < n; ++i) {
            at_fault = static_cast<int64_t>(i);
            const std::size_t offset = word * std::size_t{u32_at(bytes + offsets_at + word * i)};
            if (offset < end || offset + 2 * word > size) return "bad_size";
            const std::size_t packet_size = u32_at(bytes + offset + word);
            if (packet_size > size - offset) return "truncated";
            end = offset + packet_size;
            const uint8_t* mfp = bytes + offset;
            if (const char* reason = refusal_of_mfp(mfp, packet_size); *reason) return reason;
            const uint16_t source = u16_at(mfp + 16);
            if (source != u16_at(bytes + mep_header_size + 2 * i)) return "mismatch";
            places.insert(places.end(), {source, static_cast<int64_t>(offset), static_cast<int64_t>(packet_size)});
        }
        return check_rules(bytes);
    }

    // Sources ascend without repeats, at most one is ODIN, and all MFPs have the same events.
    const char* check_rules(const uint8_t* bytes)
    {
        const uint8_t* first = bytes + places[1];
        first_event = u64_at(first + 8);
        n_events = u16_at(first + 2);
        for (std::size_t i = 1; i < n_mfps(); ++i) {
            at_fault = static_cast<int64_t>(i);
            const int64_t before = places[3 * (i - 1)], source = places[3 * i];
            const uint8_t* mfp = bytes + places[3 * i + 1];
            if (source == before) return "duplicate";
            if (source < before) return "malformed";
            if (source >> 11 == odin) return "duplicate";
            if (u64_at(mfp + 8) != first_event || u16_at(mfp + 2) != n_events) return "mismatch";
        }
        at_fault = -1;
        return "";
    }
};

// The reason to refuse a MEP or "", the number of the MFP at fault or -1, the id of its first event, the number of its
// events, and i64[n, 3]: source id, offset and bytes of each MFP.
nb::tuple mep_places(const nb::handle& mep)
{
    const View view(mep.ptr());
    auto* places = new std::vector<int64_t>();
    const nb::capsule owner(places, [](void* held) noexcept { delete static_cast<std::vector<int64_t>*>(held); });
    FoundMep found = [&view] {
        const nb::gil_scoped_release released;
        return FoundMep(view.bytes(), view.size());
    }();
    const bool refused = *found.refusal != 0;
    if (!refused) *places = std::move(found.places);
    const std::size_t n = places->size() / 3;
    nb::ndarray<nb::numpy, int64_t, nb::ndim<2>> array(places->data(), {n, 3}, owner);
    return nb::make_tuple(found.refusal, found.at_fault, refused ? 0 : found.first_event, refused ? 0 : found.n_events,
                          array);
}

struct Row {
    int64_t source, offset, size;
};

// The MEP of MFPs in a slot: rows are i64[n, 3], source id, offset and bytes of each, in any order. The MFPs were
// checked when they were placed; only their places are checked here.
nb::bytes join_mfps(const nb::handle& slot, const nb::ndarray<const int64_t, nb::shape<-1, 3>, nb::c_contig>& rows)
{
    const View view(slot.ptr());
    const std::size_t n = rows.shape(0);
    if (n == 0 || n > 0xFFFF) throw std::invalid_argument("a MEP has 1 to 65535 MFPs");
    std::vector<Row> mfps(n);
    std::memcpy(mfps.data(), rows.data(), n * sizeof(Row));
    std::sort(mfps.begin(), mfps.end(), [](const Row& a, const Row& b) { return a.source < b.source; });
    const auto aligned = [](std::size_t at) { return (at + mfp_alignment - 1) & ~(mfp_alignment - 1); };
    const std::size_t offsets_at = mep_header_size + padded_to_4(2 * n), data_at = offsets_at + word * n;
    std::size_t end = data_at;
    for (const auto& [source, offset, size] : mfps) {
        if (source < 0 || source > 0xFFFF || offset < 0 || size < 0 || static_cast<std::size_t>(offset) > view.size() ||
            static_cast<std::size_t>(size) > view.size() - static_cast<std::size_t>(offset))
            throw std::invalid_argument("an MFP lies outside of its slot");
        end = aligned(end) + static_cast<std::size_t>(size);
    }
    const std::size_t total = padded_to_4(end);
    if (total / word > UINT32_MAX) throw std::invalid_argument("a MEP has at most 16 GiB");
    nb::bytes mep = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(total)));
    if (!mep.is_valid()) throw nb::python_error();
    auto* const to = reinterpret_cast<uint8_t*>(PyBytes_AS_STRING(mep.ptr()));
    put_u16(to, mep_magic);
    put_u16(to + 2, static_cast<uint16_t>(n));
    put_u32(to + 4, static_cast<uint32_t>(total / word));
    std::memset(to + mep_header_size, 0, offsets_at - mep_header_size);
    end = data_at;
    for (std::size_t i = 0; i < n; ++i) {
        const auto& [source, offset, size] = mfps[i];
        const std::size_t begin = aligned(end);
        std::memset(to + end, 0, begin - end);
        put_u16(to + mep_header_size + 2 * i, static_cast<uint16_t>(source));
        put_u32(to + offsets_at + word * i, static_cast<uint32_t>(begin / word));
        std::memcpy(to + begin, view.bytes() + offset, static_cast<std::size_t>(size));
        end = begin + static_cast<std::size_t>(size);
    }
    std::memset(to + end, 0, total - end);
    return mep;
}

}  // namespace

void add_mep_places(nb::module_& module)
{
    module.def("mep_places", &mep_places, nb::arg("mep"),
               "The reason to refuse a MEP or an empty text, the number of the MFP at fault or -1, the id of its first "
               "event, the number of its events, and i64[n, 3]: source id, offset and bytes of each MFP");
    module.def("join_mfps", &join_mfps, nb::arg("slot"), nb::arg("rows"),
               "The Run-3 MEP of MFPs in a slot; rows are i64[n, 3]: source id, offset and bytes of each");
}
