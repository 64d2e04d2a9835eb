// Python extension hltnode.protocol._native: loops over bytes that are too slow in Python and missing in libraries.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "buffer_view.h"
#include "crc32c.h"
#include "decision_message.h"
#include "event_records.h"
#include "event_table.h"
#include "fragment_frame.h"
#include "jenkins.h"
#include "mep_places.h"
#include "mfp.h"
#include "packing.h"
#include "raw_bank.h"
#include "shared_frames.h"
#include "window_list.h"

namespace nb = nanobind;

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Sum of the padded sizes of the n fragments of an MFP (docs/formats/mfp.md), or -1 if an absent bank has a size. The
// caller has checked that both arrays lie inside the packet.
int64_t fragment_bytes(const Bytes& mfp, uint32_t n, uint32_t align)
{
    const std::size_t sizes_at = mfp_sizes_at(n);
    if (align > 15 || sizes_at + 2 * std::size_t{n} > mfp.size())
        throw nb::value_error("the arrays of the MFP do not lie inside the packet");
    return padded_fragments(mfp.data() + mfp_header_size, mfp.data() + sizes_at, n, align);
}

// Header fields of a frame: whether its header is readable, the reason to refuse frame or MFP ("" for none), run,
// source, MEP, bytes of the MFP, first event, number of events, token. The CRC is not checked.
nb::tuple inspect_frame(const nb::handle& received)
{
    const View frame(received.ptr());
    const InspectedFrame found(frame.bytes(), frame.size());
    if (!found.is_readable) return nb::make_tuple(false, found.refusal, 0, 0, 0, 0, 0, 0, 0);
    const FrameHeader& header = found.header;
    return nb::make_tuple(true, found.refusal, header.run, header.source, header.mep, header.length, found.first_event,
                          found.n_events, header.token);
}

// A thread that releases the GIL may wait to get it back; that is too long for a microsecond of work.
constexpr std::size_t long_work = 1 << 14;

bool copy_and_check(const View& frame, uint8_t* to, crc32c::Copy copy)
{
    if (frame.size() < long_work) return ::copy_and_check(frame.bytes(), frame.size(), to, copy);
    const nb::gil_scoped_release released;
    return ::copy_and_check(frame.bytes(), frame.size(), to, copy);
}

crc32c::Copy implementation_at(std::size_t index)
{
    if (index >= crc32c::implementations().size())
        throw nb::index_error("this implementation of CRC32C does not exist");
    return crc32c::implementations()[index].copy;
}

bool has_right_crc(const nb::handle& received, std::size_t implementation)
{
    const View frame(received.ptr());
    return copy_and_check(frame, nullptr, implementation_at(implementation));
}

bool copy_mfp(const nb::handle& received, const nb::handle& slot, std::size_t offset, std::size_t implementation)
{
    const View frame(received.ptr());
    const View place(slot.ptr(), PyBUF_WRITABLE);
    if (offset > place.size() || frame.size() > place.size() - offset + frame_header_size)
        throw nb::value_error("the MFP does not fit into the slot");
    return copy_and_check(frame, static_cast<uint8_t*>(place.data()) + offset, implementation_at(implementation));
}

nb::list crc32c_implementations()
{
    nb::list names;
    for (const auto& implementation : crc32c::implementations()) names.append(implementation.name);
    return names;
}

// The raw banks (docs/formats/raw-bank.md) that fill a memoryview of bytes, as objects of `type`, a tuple of type,
// version, source id and a view of the payload. Also returns the offset of the first damaged bank, of the first one
// above the limit of an event, or the end.
nb::tuple scan_banks(const nb::handle& view, const nb::type_object& type)
{
    const View bytes(view.ptr());
    const uint8_t* data = bytes.bytes();
    // The stable ABI hides the fields of a type.
    static const auto new_tuple = reinterpret_cast<newfunc>(PyType_GetSlot(&PyTuple_Type, Py_tp_new));
    nb::list banks;
    std::size_t at = 0;
    while (banks.size() < max_banks_of_event && bytes.size() - at >= bank_header_size &&
           u16_at(data + at) == bank_magic) {
        const std::size_t length = u16_at(data + at + 2), following = at + padded_to_4(length);
        if (length < bank_header_size || following > bytes.size()) break;
        const nb::object payload = view[nb::slice(at + bank_header_size, at + length)];
        const nb::tuple parts = nb::make_tuple(data[at + 4], data[at + 5], u16_at(data + at + 6), payload);
        banks.append(
            nb::steal(new_tuple(reinterpret_cast<PyTypeObject*>(type.ptr()), nb::make_tuple(parts).ptr(), nullptr)));
        at = following;
    }
    return nb::make_tuple(banks, at);
}

// The number of banks and the bytes of their payloads, by ascending type and version, and the banks of the types
// `picked`.
nb::tuple count_banks(const nb::list& banks, const std::vector<uint8_t>& picked)
{
    struct Total {
        std::size_t n = 0, bytes = 0;
    };
    std::map<std::pair<uint8_t, uint8_t>, Total> totals;
    nb::list found;
    for (const nb::handle bank : banks) {
        if (!PyTuple_Check(bank.ptr()) || NB_TUPLE_GET_SIZE(bank.ptr()) != 4)
            throw nb::value_error("a raw bank must have four parts");
        const auto type = nb::cast<uint8_t>(nb::handle(NB_TUPLE_GET_ITEM(bank.ptr(), 0)));
        const auto version = nb::cast<uint8_t>(nb::handle(NB_TUPLE_GET_ITEM(bank.ptr(), 1)));
        Total& total = totals[{type, version}];
        ++total.n;
        total.bytes += nb::len(nb::handle(NB_TUPLE_GET_ITEM(bank.ptr(), 3)));
        if (std::find(picked.begin(), picked.end(), type) != picked.end()) found.append(bank);
    }
    nb::list counted;
    for (const auto& [key, total] : totals) counted.append(nb::make_tuple(key.first, key.second, total.n, total.bytes));
    return nb::make_tuple(counted, found);
}

// Starts of the particles of a truth bank (docs/formats/truth-banks.md), and the lengths of their three lists of ids. A
// particle has `fixed_size` bytes and three lists, each a number n and n ids of 32 bits. Stops at the end of the bytes.
// Returns starts, lengths (three per particle) and the end.
nb::tuple find_particles(const Bytes& data, std::size_t at, std::size_t n, std::size_t fixed_size)
{
    constexpr std::size_t n_lists = 3, word = 4;
    nb::list starts, lengths;
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < n; ++i) {
        starts.append(at);
        at += fixed_size;
        for (std::size_t k = 0; k < n_lists; ++k) {
            if (at + word > data.size()) return nb::make_tuple(starts, lengths, -1);
            const uint8_t* number = data.data() + at;
            const std::size_t n_ids = u32_at(number);
            lengths.append(n_ids);
            at += word * (n_ids + 1);
        }
    }
    return nb::make_tuple(starts, lengths, at);
}

// Header, payload and padding of raw banks (docs/formats/raw-bank.md), given as tuples (type, version, source id,
// payload), back to back. Throws for a bank that does not fit its header.
nb::bytes encode_banks(const nb::list& banks)
{
    std::vector<uint8_t> out;
    out.reserve(1 << 18);
    for (const nb::handle bank : banks) {
        if (!PyTuple_Check(bank.ptr()) || NB_TUPLE_GET_SIZE(bank.ptr()) != 4)
            throw nb::value_error("a raw bank must have four parts");
        uint8_t type, version;
        uint16_t source;
        const View payload(NB_TUPLE_GET_ITEM(bank.ptr(), 3));
        const std::size_t length = bank_header_size + payload.size();
        if (!nb::try_cast(nb::handle(NB_TUPLE_GET_ITEM(bank.ptr(), 0)), type) ||
            !nb::try_cast(nb::handle(NB_TUPLE_GET_ITEM(bank.ptr(), 1)), version) ||
            !nb::try_cast(nb::handle(NB_TUPLE_GET_ITEM(bank.ptr(), 2)), source) || length > max_bank_size)
            throw nb::value_error("a raw bank does not fit its header");
        const std::size_t at = out.size();
        out.resize(at + padded_to_4(length));
        put_bank_header(out.data() + at, length, type, version, source);
        std::memcpy(out.data() + at + bank_header_size, payload.data(), payload.size());
    }
    return nb::bytes(out.data(), out.size());
}

}  // namespace

NB_MODULE(_native, module)
{
    // nanobind would report objects that live until the process ends as leaks.
    nb::set_leak_warnings(false);
    module.doc() = "Loops over bytes of the wire and file formats";
    module.def(
        "jenkins", [](const Bytes& bytes) { return jenkins(bytes.data(), bytes.size()); }, nb::arg("bytes"),
        nb::call_guard<nb::gil_scoped_release>(),
        "Bob Jenkins' one-at-a-time hash of a buffer of bytes, with signed characters and seed 0");
    module.def(
        "scan_banks", &scan_banks, nb::arg("view"), nb::arg("type"),
        "The raw banks that fill a view of bytes, and the offset of the first damaged one, of the first one above "
        "the limit of an event, or the end");
    module.attr("MAX_BANKS_OF_EVENT") = max_banks_of_event;
    module.def("count_banks", &count_banks, nb::arg("banks"), nb::arg("picked"),
               "Number and bytes of banks by type and version, and the banks of the types picked");
    module.def("find_particles", &find_particles, nb::arg("data"), nb::arg("at"), nb::arg("n"), nb::arg("fixed_size"),
               "Starts of particles in truth data, lengths of their lists, and the end, -1 if the bytes end too early");
    module.def("encode_banks", &encode_banks, nb::arg("banks"),
               "Raw banks, given as (type, version, source id, payload), back to back; ValueError if one does not fit");
    module.def("inspect_frame", &inspect_frame, nb::arg("frame"),
               "Header fields of a frame and the reason to refuse it; the CRC is not checked");
    module.def("has_right_crc", &has_right_crc, nb::arg("frame"), nb::arg("implementation") = 0,
               "True if the header of a frame is valid and its CRC32C is the announced one");
    module.def("copy_mfp", &copy_mfp, nb::arg("frame"), nb::arg("slot"), nb::arg("offset"),
               nb::arg("implementation") = 0,
               "Copy the MFP of a frame to an offset of a slot; True if header and CRC32C are right");
    module.def("joined_crc32c", &crc32c::joined, nb::arg("first"), nb::arg("second"), nb::arg("second_size"),
               "The CRC32C of two consecutive parts, from the CRC32C of each and the size of the second in bytes");
    module.def("crc32c_implementations", &crc32c_implementations,
               "Names of the implementations of CRC32C that this machine can run, the fastest first");
    define_packing(module);
    module.def("fragment_bytes", &fragment_bytes, nb::arg("mfp"), nb::arg("n"), nb::arg("align"),
               "Sum of the padded sizes of the n fragments of an MFP, or -1 if an absent bank has a size");
    add_decision_message(module);
    add_event_records(module);
    add_window_list(module);
    define_event_table(module);
    add_shared_frames(module);
    add_mep_places(module);
}
