// Tables of the raw banks of events, and their transposition to one MFP per readout source (docs/formats/mfp.md).
// A table has a row for each bank. Its payload may lie in any of several buffers, so that tables of events from several
// files, from unpacked records and from MFPs are joined without a copy of the payloads.
#include "event_table.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "buffer_view.h"
#include "mfp.h"
#include "raw_bank.h"

namespace nb = nanobind;

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WritableBytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Positions = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Skipped = nb::ndarray<const uint8_t, nb::shape<-1, 256>, nb::c_contig, nb::device::cpu>;

// A row of a table: BANK_ROW of event_table.py.
struct BankRow {
    uint8_t type, version;
    uint16_t source;
    uint32_t size;   // bytes of the payload
    uint64_t place;  // number of the buffer, and offset of the payload in it (`offset_bits` bits)
};
static_assert(sizeof(BankRow) == 16);
constexpr unsigned offset_bits = 40;
constexpr std::size_t ahead_in_event = 2048;  // prefetch distance
constexpr uint64_t offset_mask = (uint64_t{1} << offset_bits) - 1;

uint32_t key_of(const BankRow& row)
{
    return row.type | uint32_t{row.version} << 8 | static_cast<uint32_t>(row.source) << 16;
}

// The rows of a table, which are an array of bytes, and the events in it.
class Table {
  public:
    Table(const Bytes& rows, const Positions& begins, const Positions& ends)
        : rows_(reinterpret_cast<const BankRow*>(rows.data())),
          begins_(begins.data()),
          ends_(ends.data()),
          n_(begins.size())
    {
        const std::size_t n_rows = rows.size() / sizeof(BankRow);
        if (ends.size() != n_ || n_rows >= std::numeric_limits<uint32_t>::max())
            throw nb::value_error("each event must have a begin and an end");
        for (std::size_t event = 0; event < n_; ++event)
            if (begins_[event] > ends_[event] || ends_[event] > n_rows)
                throw nb::value_error("an event lies outside the table");
    }
    std::size_t size() const { return n_; }
    std::size_t begin(std::size_t event) const { return begins_[event]; }
    std::size_t end(std::size_t event) const { return ends_[event]; }
    const BankRow& row(std::size_t at) const { return rows_[at]; }

  private:
    const BankRow* rows_;
    const uint64_t *begins_, *ends_;
    std::size_t n_;
};

// The buffers of a table, which stay valid during the lifetime of the object.
class Buffers {
  public:
    explicit Buffers(const nb::tuple& buffers)
    {
        views_.reserve(buffers.size());
        for (const nb::handle each : buffers) views_.emplace_back(each.ptr());
    }
    // The payload of a bank; throws for one outside its buffer.
    const uint8_t* payload(const BankRow& row) const
    {
        const std::size_t number = row.place >> offset_bits, at = row.place & offset_mask;
        if (number >= views_.size() || at > views_[number].size() || row.size > views_[number].size() - at)
            throw nb::value_error("a bank lies outside its buffer");
        return views_[number].bytes() + at;
    }

  private:
    std::vector<View> views_;
};

nb::bytes as_bytes(const std::vector<BankRow>& rows)
{
    return nb::bytes(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(BankRow));
}

// The rows of the raw banks that fill each of some events, the end of each event in the rows, and the number of events
// before the first damaged one, which ends the table.
nb::tuple index_banks(const Bytes& bytes, const std::vector<uint64_t>& begins, const std::vector<uint64_t>& ends)
{
    if (begins.size() != ends.size() || bytes.size() > offset_mask)
        throw nb::value_error("each event must have a begin and an end");
    std::vector<BankRow> rows;
    std::vector<uint64_t> row_ends;
    {
        const nb::gil_scoped_release released;
        rows.reserve(begins.size() * 1024);
        for (std::size_t event = 0; event < begins.size(); ++event) {
            const std::size_t first_row = rows.size();
            std::size_t at = begins[event];
            const std::size_t end = ends[event];
            if (at > end || end > bytes.size()) break;
            while (at < end && end - at >= bank_header_size && rows.size() - first_row < max_banks_of_event) {
                const uint8_t* bank = bytes.data() + at;
                const std::size_t length = u16_at(bank + 2);
                if (u16_at(bank) != bank_magic || length < bank_header_size || padded_to_4(length) > end - at) break;
                __builtin_prefetch(bank + ahead_in_event);
                rows.push_back({bank[4], bank[5], static_cast<uint16_t>(u16_at(bank + 6)),
                                static_cast<uint32_t>(length - bank_header_size), at + bank_header_size});
                at += padded_to_4(length);
            }
            if (at != end) {
                rows.resize(first_row);
                break;
            }
            row_ends.push_back(rows.size());
        }
    }
    return nb::make_tuple(as_bytes(rows), row_ends);
}

// The same for events that are lists of tuples (type, version, source id, payload); also returns a copy of the
// payloads, which lie in one buffer.
nb::tuple index_objects(const nb::sequence& events)
{
    std::vector<uint8_t> payloads;
    std::vector<BankRow> rows;
    std::vector<uint64_t> row_ends;
    for (const nb::handle event : events) {
        for (const nb::handle bank : nb::cast<nb::sequence>(event)) {
            if (!PyTuple_Check(bank.ptr()) || NB_TUPLE_GET_SIZE(bank.ptr()) != 4)
                throw nb::value_error("a raw bank must have four parts");
            BankRow row{};
            const View payload(NB_TUPLE_GET_ITEM(bank.ptr(), 3));
            if (!nb::try_cast(nb::handle(NB_TUPLE_GET_ITEM(bank.ptr(), 0)), row.type) ||
                !nb::try_cast(nb::handle(NB_TUPLE_GET_ITEM(bank.ptr(), 1)), row.version) ||
                !nb::try_cast(nb::handle(NB_TUPLE_GET_ITEM(bank.ptr(), 2)), row.source) ||
                payload.size() > std::numeric_limits<uint32_t>::max())
                throw nb::value_error("a raw bank does not fit its header");
            row.size = static_cast<uint32_t>(payload.size());
            row.place = payloads.size();
            rows.push_back(row);
            payloads.insert(payloads.end(), payload.bytes(), payload.bytes() + payload.size());
        }
        row_ends.push_back(rows.size());
    }
    return nb::make_tuple(nb::bytes(reinterpret_cast<const char*>(payloads.data()), payloads.size()), as_bytes(rows),
                          row_ends);
}

// The banks of rows `begin` to `end` as objects of `type`, a tuple of type, version, source id and a view of the
// payload. `buffers` are memoryviews of bytes.
nb::list bank_objects(const Bytes& rows, std::size_t begin, std::size_t end, const nb::tuple& buffers,
                      const nb::type_object& type)
{
    if (begin > end || end > rows.size() / sizeof(BankRow)) throw nb::value_error("the rows lie outside the table");
    // The stable ABI hides the fields of a type.
    static const auto new_tuple = reinterpret_cast<newfunc>(PyType_GetSlot(&PyTuple_Type, Py_tp_new));
    nb::list banks;
    for (std::size_t i = begin; i < end; ++i) {
        const BankRow& row = reinterpret_cast<const BankRow*>(rows.data())[i];
        const std::size_t at = row.place & offset_mask;
        const nb::object payload = buffers[row.place >> offset_bits][nb::slice(at, at + row.size)];
        const nb::tuple parts = nb::make_tuple(row.type, row.version, row.source, payload);
        banks.append(
            nb::steal(new_tuple(reinterpret_cast<PyTypeObject*>(type.ptr()), nb::make_tuple(parts).ptr(), nullptr)));
    }
    return banks;
}

// Faults of the events: codes of mfp_packing.py.
enum class Problem : int { none, second_bank, other_version, reserved_type, long_payload };

class MfpPacker {
  public:
    // `error_type`: type of the fragment of a source with several banks in an event; such an event is a fault if it is
    // negative. `error_types`: types of error banks. They have versions of their own and take the one of their MFP.
    MfpPacker(int error_type, const std::vector<uint8_t>& error_types) : error_type_(error_type)
    {
        for (const uint8_t type : error_types) is_error_[type] = true;
        if (error_type >= no_bank) throw nb::value_error("the type of error banks is not a bank type");
    }

    // Banks of this key belong to the source at `column`, to no source, or to one that is not read.
    void route(uint32_t key, int32_t column)
    {
        if (column < not_read) throw nb::value_error("this source does not exist");
        column_of_key_[key] = column;
        n_columns_ = std::max(n_columns_, static_cast<std::size_t>(std::max(column, no_source) + 1));
        columns_.clear();
        order_.clear();
        place_of_key_.clear();
    }

    // Keys of banks that are not routed, types of banks without source, and the types of the banks that are read: for
    // each event a mask of 256 bits.
    nb::tuple scan(const Bytes& rows, const Positions& begins, const Positions& ends)
    {
        const Table table(rows, begins, ends);
        std::vector<uint32_t> unknown;
        std::array<bool, 256> without_source{};
        std::vector<uint8_t> masks(table.size() * 32, 0);
        columns_.clear();
        std::size_t expected = 0;
        for (std::size_t event = 0; event < table.size(); ++event) {
            for (std::size_t at = table.begin(event); at < table.end(event); ++at, ++expected) {
                const uint32_t key = key_of(table.row(at));
                // Most events have the same banks in the same order.
                if (expected >= order_.size()) expected = 0;
                if (order_.empty() || order_[expected].key != key) expected = place_of(key, unknown);
                const int32_t column = order_[expected].column;
                columns_.push_back(column);
                if (column == no_source) without_source[key & 0xFF] = true;
                if (column >= 0) masks[event * 32 + (key & 0xFF) / 8] |= static_cast<uint8_t>(1u << (key & 7));
            }
        }
        nb::list types;
        for (int type = 0; type < 256; ++type)
            if (without_source[static_cast<std::size_t>(type)]) types.append(type);
        return nb::make_tuple(unknown, types, nb::bytes(reinterpret_cast<const char*>(masks.data()), masks.size()));
    }

    // The MFPs of the events scanned last: columns, bytes and versions; and a fault of the events: problem, event, key
    // of the bank, and type or version of the earlier bank or the size. Banks of event i are skipped where
    // `skipped[variants[i]]` is set for their type.
    nb::tuple measure(const Bytes& rows, const Positions& begins, const Positions& ends, const Skipped& skipped,
                      const Bytes& variants)
    {
        const Table table(rows, begins, ends);
        const std::size_t n = table.size();
        if (n == 0 || n > 0xFFFF) throw nb::value_error("a MEP must have 1 to 65535 events");
        if (variants.size() != n) throw nb::value_error("each event must have a variant");
        for (std::size_t event = 0; event < n; ++event)
            if (variants.data()[event] >= skipped.shape(0)) throw nb::value_error("this variant does not exist");
        std::size_t n_rows = 0;
        for (std::size_t event = 0; event < n; ++event) n_rows += table.end(event) - table.begin(event);
        if (columns_.size() != n_rows) throw nb::value_error("the events differ from the scanned ones");
        row_at_.assign(n * n_columns_, no_row);
        doubled_.clear();
        std::vector<uint64_t> bytes(n_columns_, 0);
        std::vector<int32_t> versions(n_columns_, -1), error_versions(n_columns_, -1);
        nb::tuple finding = nb::make_tuple(static_cast<int>(Problem::none), 0, 0, 0);
        bool is_long = false;
        const int32_t* next = columns_.data();
        for (std::size_t event = 0; event < n; ++event) {
            const uint8_t* const skips = skipped.data() + 256 * std::size_t{variants.data()[event]};
            uint32_t* const row_at = row_at_.data() + event * n_columns_;
            for (std::size_t at = table.begin(event); at < table.end(event); ++at) {
                const int32_t routed = *next++;
                const BankRow& row = table.row(at);
                if (routed < 0 || skips[row.type]) continue;
                const auto column = static_cast<std::size_t>(routed);
                const auto fault = [&](Problem problem, std::size_t detail) {
                    finding = nb::make_tuple(static_cast<int>(problem), event, key_of(row), detail);
                    return nb::make_tuple(finding, nb::list(), nb::list(), nb::list());
                };
                if (row.type == no_bank) return fault(Problem::reserved_type, 0);
                if (row_at[column] != no_row) {
                    if (error_type_ < 0) return fault(Problem::second_bank, table.row(row_at[column]).type);
                    doubled_.emplace_back(event, column);
                    continue;
                }
                if (is_error_[row.type]) {
                    if (error_versions[column] < 0) error_versions[column] = row.version;
                } else {
                    if (versions[column] < 0) versions[column] = row.version;
                    if (versions[column] != row.version)
                        return fault(Problem::other_version, static_cast<std::size_t>(versions[column]));
                }
                if (row.size > 0xFFFF && !is_long) {
                    // A fault of the packets, which are made of all events.
                    is_long = true;
                    finding = nb::make_tuple(static_cast<int>(Problem::long_payload), event, key_of(row), row.size);
                }
                row_at[column] = static_cast<uint32_t>(at);
                bytes[column] += padded_fragment(row.size);
            }
        }
        nb::list columns, sizes, kept_versions;
        for (std::size_t column = 0; column < n_columns_; ++column) {
            const int32_t version = versions[column] < 0 ? error_versions[column] : versions[column];
            if (version < 0) continue;
            columns.append(column);
            sizes.append(bytes[column] + mfp_data_at(n));
            kept_versions.append(version);
        }
        return nb::make_tuple(finding, columns, sizes, kept_versions);
    }

    // Write MFPs of the events measured last to their places in a buffer of zeros.
    void pack(const Bytes& rows, const Positions& begins, const Positions& ends, const nb::tuple& buffers,
              const std::vector<std::size_t>& columns, const std::vector<uint16_t>& sources,
              const std::vector<uint8_t>& versions, const std::vector<uint64_t>& places,
              const std::vector<uint64_t>& sizes, uint64_t first_event, const WritableBytes& to)
    {
        const Table table(rows, begins, ends);
        const Buffers payloads(buffers);
        const std::size_t n = table.size(), n_mfps = columns.size();
        if (row_at_.size() != n * n_columns_) throw nb::value_error("the events differ from the measured ones");
        if (sources.size() != n_mfps || versions.size() != n_mfps || places.size() != n_mfps || sizes.size() != n_mfps)
            throw nb::value_error("each MFP must have a source, a version, a place and a size");
        const nb::gil_scoped_release released;
        for (std::size_t i = 0; i < n_mfps; ++i) {
            if (columns[i] >= n_columns_ || places[i] > to.size() || sizes[i] > to.size() - places[i] ||
                sizes[i] < mfp_data_at(n) || sizes[i] > std::numeric_limits<uint32_t>::max())
                throw nb::value_error("an MFP lies outside the buffer");
            uint8_t* const mfp = to.data() + places[i];
            const uint8_t* const end = mfp + sizes[i];
            put_mfp_head(mfp, n, static_cast<uint32_t>(sizes[i]), first_event, sources[i], versions[i]);
            uint8_t* fragment = mfp + mfp_data_at(n);
            for (std::size_t event = 0; event < n; ++event) {
                // The banks of a column lie in another part of memory each.
                if (event + ahead < n)
                    if (const uint32_t later = row_at_[(event + ahead) * n_columns_ + columns[i]]; later != no_row)
                        __builtin_prefetch(payloads.payload(table.row(later)));
                const uint32_t at = row_at_[event * n_columns_ + columns[i]];
                if (at == no_row) continue;
                const BankRow& row = table.row(at);
                if (padded_fragment(row.size) > static_cast<std::size_t>(end - fragment))
                    throw nb::value_error("the events differ from the measured ones");
                mfp[mfp_header_size + event] = row.type;
                put_u16(mfp + mfp_sizes_at(n) + 2 * event, row.size);
                fragment = put_fragment(fragment, payloads.payload(row), row.size);
            }
            for (const auto& [event, column] : doubled_)
                if (column == columns[i]) mfp[mfp_header_size + event] = static_cast<uint8_t>(error_type_);
        }
    }

  private:
    static constexpr int32_t no_source = -1, not_read = -2;
    static constexpr uint32_t no_row = std::numeric_limits<uint32_t>::max();
    static constexpr std::size_t ahead = 8;

    struct Known {
        uint32_t key;
        int32_t column;
    };

    int error_type_;
    std::array<bool, 256> is_error_{};
    std::unordered_map<uint32_t, int32_t> column_of_key_;
    std::size_t n_columns_ = 0;
    std::vector<Known> order_;  // the keys in the order of their first banks
    std::unordered_map<uint32_t, std::size_t> place_of_key_;
    std::vector<int32_t> columns_;                              // of each row of the scanned events
    std::vector<uint32_t> row_at_;                              // for each event and column
    std::vector<std::pair<std::size_t, std::size_t>> doubled_;  // events and columns with several banks

    // Place of a key in `order_`. A key without route is added to `unknown` and taken for one that is not read.
    std::size_t place_of(uint32_t key, std::vector<uint32_t>& unknown)
    {
        const auto [found, is_new] = place_of_key_.try_emplace(key, order_.size());
        if (is_new) {
            const auto route = column_of_key_.find(key);
            if (route == column_of_key_.end()) unknown.push_back(key);
            order_.push_back({key, route == column_of_key_.end() ? not_read : route->second});
        }
        return found->second;
    }
};

}  // namespace

void define_event_table(nb::module_& module)
{
    module.def("index_banks", &index_banks, nb::arg("bytes"), nb::arg("begins"), nb::arg("ends"),
               "Rows of the raw banks of some events and the end of each event, up to the first damaged one");
    module.def("index_objects", &index_objects, nb::arg("events"),
               "Payloads, rows and ends of events that are lists of (type, version, source id, payload)");
    module.def("bank_objects", &bank_objects, nb::arg("rows"), nb::arg("begin"), nb::arg("end"), nb::arg("buffers"),
               nb::arg("type"), "The banks of some rows as objects of a type");
    nb::class_<MfpPacker>(module, "MfpPacker", "Transposes tables of events to one MFP per readout source")
        .def(nb::init<int, const std::vector<uint8_t>&>(), nb::arg("error_type"), nb::arg("error_types"))
        .def("route", &MfpPacker::route, nb::arg("key"), nb::arg("column"),
             "Banks of this key belong to the source at `column`; -1: to no source, -2: to one that is not read")
        .def("scan", &MfpPacker::scan, nb::arg("rows"), nb::arg("begins"), nb::arg("ends"),
             "Keys without route, types of banks without source, and a mask of the types of each event")
        .def("measure", &MfpPacker::measure, nb::arg("rows"), nb::arg("begins"), nb::arg("ends"), nb::arg("skipped"),
             nb::arg("variants"), "A fault of the scanned events; columns, bytes and versions of their MFPs")
        .def("pack", &MfpPacker::pack, nb::arg("rows"), nb::arg("begins"), nb::arg("ends"), nb::arg("buffers"),
             nb::arg("columns"), nb::arg("sources"), nb::arg("versions"), nb::arg("places"), nb::arg("sizes"),
             nb::arg("first_event"), nb::arg("to"), "Write the MFPs of the measured events to their places");
}
