// Two passes over the banks of some events of a batch, without the interpreter: the first pass finds the sizes and
// encodes the trigger banks, the second copies everything into one buffer. Each bank of the input is copied once.
//
// Trigger banks of the input are skipped: the newly encoded ones replace them.
#include "event_records.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "buffer_view.h"
#include "jenkins.h"
#include "mep_banks.h"
#include "raw_bank.h"
#include "record_inputs.h"
#include "trigger_banks.h"
#include "window_records.h"
#include "written_banks.h"

namespace nb = nanobind;
using namespace record_inputs;

namespace {

constexpr std::size_t mdf_header_size = 48, checksum_at = 12, checksum_from = 16;
// Header, bank of the window and trigger banks of a usual record of a window.
constexpr std::size_t record_overhead = 512;

class RecordEncoder {
  public:
    RecordEncoder(uint32_t key, uint32_t tck, uint32_t task_id, uint16_t source_id, uint32_t not_run,
                  uint32_t unreadable, uint32_t cut, uint32_t error_bit, uint32_t lumi_bit, const Rows& routing,
                  uint32_t lumi_key, uint32_t lumi_words, const Rows& lumi_counters, bool checksums,
                  uint32_t list_left_out)
        : checksums_(checksums), without_lists_(not_run | list_left_out)
    {
        format_.key = key;
        format_.tck = tck;
        format_.task_id = task_id;
        format_.source_id = source_id;
        format_.not_run = not_run;
        format_.unreadable = unreadable;
        format_.cut = cut;
        format_.error_bit = error_bit;
        format_.lumi_bit = lumi_bit;
        format_.lumi_key = lumi_key;
        format_.lumi_words = lumi_words;
        format_.n_lines = static_cast<uint32_t>(routing.shape(0));
        if (routing.shape(1) != 3 || lumi_counters.shape(1) != 3 || error_bit > 31 || lumi_bit > 31 ||
            bank_header_size + 4 * (3 + routing.shape(0)) > max_bank_size ||
            bank_header_size + 4 * std::size_t{lumi_words} > max_bank_size)
            throw nb::value_error("the format of the trigger banks is invalid");
        for (std::size_t line = 0; line < format_.n_lines; ++line)
            format_.routing.push_back({routing(line, 0), routing(line, 1), routing(line, 2)});
        for (std::size_t i = 0; i < lumi_counters.shape(0); ++i) {
            const trigger_banks::LumiCounter counter{lumi_counters(i, 0), lumi_counters(i, 1), lumi_counters(i, 2)};
            if (counter.bits < 1 || counter.offset % 32 + counter.bits > 32 || counter.offset / 32 >= lumi_words)
                throw nb::value_error("a luminosity counter does not lie in one word of its bank");
            n_counts_ = std::max<std::size_t>(n_counts_, counter.source + 1);
            format_.lumi_counters.push_back(counter);
        }
        n_counts_ -= std::min<std::size_t>(n_counts_, trigger_banks::first_count);
    }

    // Records of the events `events` (ascending) of a batch, whose MFPs lie in `buffer`.
    nb::tuple of_batch(const nb::handle& buffer, const Meps& meps, const Events& events, uint32_t run,
                       const Rows& lines, const Words& flags, const Rows& counts, const Words& selected_offsets,
                       const Words& selected_words, const Ends& ends, const nb::list& output_lists) const
    {
        const SelectedRows selected{selected_offsets, selected_words};
        check_rows(lines, flags, counts, selected);
        const Lists lists = lists_of(output_lists, flags.size());
        check_events(events, flags.size());
        std::size_t n_events = 0;
        for (const auto& [n, places] : meps) {
            n_events += n;
            if (places.shape(1) != 3) throw nb::value_error("an MFP must have a source, an offset and a size");
        }
        if (n_events != flags.size())
            throw nb::value_error("the numbers of events of the MEPs and of the batch differ");
        const View bytes(buffer.ptr());
        std::vector<Record> records(events.size());
        for (Record& record : records) record.run = run;
        return encode(
            records, [&] { return BatchBanks(bytes, meps, events); }, events, lines, flags, counts, selected, lists,
            ends);
    }

    // Records of some events (ascending) whose raw banks are given as lists of (type, version, source id, payload).
    nb::tuple of_events(const nb::list& banks_of_events, const Events& events, const Rows& lines, const Words& flags,
                        const Rows& counts, const Words& selected_offsets, const Words& selected_words,
                        const Ends& ends, const nb::list& output_lists) const
    {
        const SelectedRows selected{selected_offsets, selected_words};
        check_rows(lines, flags, counts, selected);
        const Lists lists = lists_of(output_lists, flags.size());
        check_events(events, flags.size());
        if (banks_of_events.size() != events.size()) throw nb::value_error("each event must have a list of banks");
        const ListedBanks banks(banks_of_events);
        std::vector<Record> records(events.size());
        banks.find_runs(records);
        return encode(
            records, [&]() -> const ListedBanks& { return banks; }, events, lines, flags, counts, selected, lists,
            ends);
    }

    // Records of the windows of the slices of a batch; `slices` has the number of each, `missing` whether it lacks a
    // source.
    nb::tuple of_windows(const window_records::Layout& layout, const nb::handle& buffer, const Meps& meps,
                         const Ids& slices, const Marks& missing, uint32_t run, const Rows& lines, const Words& flags,
                         const Words& offsets, const Times& starts, const Times& window_ends, const Words& window_lines,
                         const Marks& kept) const
    {
        const std::size_t n_events = flags.size();
        const WindowTable table{offsets, starts, window_ends, window_lines, kept};
        table.check(n_events);
        std::size_t n_of_meps = 0;
        for (const auto& [n, places] : meps) {
            n_of_meps += n;
            if (places.shape(1) != 3 || n <= std::size_t{layout.margin_before} + layout.margin_behind)
                throw nb::value_error("a slice must have sub-slices beside its margins");
        }
        if (n_of_meps != n_events || slices.size() != meps.size() || missing.size() != meps.size() ||
            lines.shape(0) != n_events || lines.shape(1) != (format_.n_lines + 31) / 32)
            throw nb::value_error("the numbers of slices and events differ");
        const View bytes(buffer.ptr());
        std::vector<uint8_t> data;
        std::vector<uint64_t> ends, ids;
        WindowSums sums;
        {
            const nb::gil_scoped_release released;
            std::size_t first = 0;
            for (std::size_t m = 0; m < meps.size(); ++m) {
                const auto& [n, places] = meps[m];
                append_slice(layout, bytes, n, places, slices(m), missing(m) != 0, run, lines, flags, table, first,
                             data, ends, sums);
                ids.resize(ends.size(), slices(m));
                first += n;
            }
        }
        return nb::make_tuple(nb::bytes(data.data(), data.size()), nb::bytes(ends.data(), 8 * ends.size()),
                              nb::bytes(ids.data(), 8 * ids.size()), sums.windows, sums.hits, sums.cut_off,
                              sums.hits_outside, sums.bytes_left, sums.kept_ns);
    }

  private:
    void append_slice(const window_records::Layout& layout, const View& bytes, std::size_t n_events,
                      const Places& places, uint64_t slice, bool missing, uint32_t run, const Rows& lines,
                      const Words& flags, const WindowTable& table, std::size_t first, std::vector<uint8_t>& data,
                      std::vector<uint64_t>& ends, WindowSums& sums) const
    {
        std::vector<window_records::Window> windows;
        std::vector<std::size_t> events;
        table.of_slice(first, n_events, layout.sub_slice_ns, windows, events);
        if (windows.empty()) return;
        std::vector<uint32_t> order, words, trailer;
        // A run has no time before its start.
        const int64_t earliest = slice ? INT64_MIN : int64_t{layout.margin_before} * layout.sub_slice_ns;
        windows = window_records::merged(std::move(windows), layout, n_events, earliest, order);
        window_records::SliceHits hits(bytes.bytes(), bytes.size(), placed(places), n_events, layout);
        // Without it, the records of a slice are copied each time that the memory has to grow. At least twice the
        // memory, because each slice of a batch would copy the records of all before it.
        const std::size_t needed = data.size() + hits.nbytes() + windows.size() * record_overhead;
        if (needed > data.capacity()) data.reserve(std::max(needed, 2 * data.capacity()));
        trigger_banks::Writer writer(format_);
        const std::vector<uint32_t> no_counts(n_counts_ + 1);
        hits.read(windows, [&](window_records::Record& record) {
            if (missing) record.window.status |= window_records::source_missing;
            words.assign(lines.shape(1), 0);
            for (uint32_t i = record.window.first; i < record.window.first + record.window.n; ++i)
                for (std::size_t w = 0; w < words.size(); ++w) words[w] |= lines(events[order[i]], w);
            uint32_t all_flags = 0;
            for (std::size_t s = 0; s < record.n_banks.size(); ++s)
                all_flags |= flags(first + record.first_sub_slice + s);
            Record of_header;
            of_header.run = run;
            trailer.clear();
            of_header.routing = writer.append({{}, words.data(), all_flags, no_counts.data(), {}}, trailer);
            const std::size_t begin = data.size();
            data.resize(begin + mdf_header_size);
            window_records::append_window_bank(record, layout, run, slice, static_cast<uint32_t>(n_events), all_flags,
                                               format_.source_id, data);
            data.insert(data.end(), record.banks.data(), record.banks.data() + record.banks.size());
            const auto* const trailing = reinterpret_cast<const uint8_t*>(trailer.data());
            data.insert(data.end(), trailing, trailing + 4 * trailer.size());
            put_header(data.data() + begin, data.size() - begin, of_header);
            if (checksums_) {
                uint8_t* const hashed = data.data() + begin + checksum_from;
                put_u32(data.data() + begin + checksum_at, jenkins(hashed, data.size() - begin - checksum_from));
            }
            ends.push_back(data.size());
            sums.hits += record.hits;
            sums.kept_ns += static_cast<uint64_t>(record.window.end - record.window.begin);
            sums.cut_off += (record.window.status & window_records::cut_off) != 0;
        });
        sums.windows += order.size();
        sums.hits_outside += hits.hits_outside;
        sums.bytes_left += hits.bytes_left;
    }

    void check_rows(const Rows& lines, const Words& flags, const Rows& counts, const SelectedRows& selected) const
    {
        const std::size_t n = flags.size();
        if (lines.shape(0) != n || lines.shape(1) != (format_.n_lines + 31) / 32 || counts.shape(0) != n ||
            counts.shape(1) < n_counts_ || selected.offsets.size() != n + 1)
            throw nb::value_error("decisions, flags, counts and selected objects have different numbers of events");
        for (std::size_t e = 0; e < n; ++e)
            if (selected.offsets(e) > selected.offsets(e + 1))
                throw nb::value_error("the offsets of selected objects do not ascend");
        if (selected.offsets(n) > selected.words.size())
            throw nb::value_error("the words of selected objects end before their offsets");
    }

    static void check_events(const Events& events, std::size_t n_events)
    {
        int64_t before = -1;
        for (std::size_t k = 0; k < events.size(); ++k) {
            if (events(k) <= before || events(k) >= static_cast<int64_t>(n_events))
                throw nb::value_error("the kept events do not ascend, or do not exist");
            before = events(k);
        }
    }

    // Calls `find_banks` without the interpreter.
    template <typename FindBanks>
    nb::tuple encode(std::vector<Record>& records, const FindBanks& find_banks, const Events& events, const Rows& lines,
                     const Words& flags, const Rows& counts, const SelectedRows& selected, const Lists& lists,
                     const Ends& ends) const
    {
        if (ends.size() != records.size()) throw nb::value_error("each kept event must have an end");
        nb::object encoded;
        uint64_t unwritten = 0, left_out = 0;
        {
            nb::gil_scoped_release released;
            auto&& banks = find_banks();
            std::vector<uint32_t> trailers;
            trigger_banks::Writer writer(format_);
            std::size_t total = 0;
            std::vector<std::size_t> bodies(records.size());
            std::vector<trigger_banks::Odin> odins(records.size());
            unwritten = banks.measure(bodies.data(), odins.data());
            for (std::size_t k = 0; k < records.size(); ++k) {
                Record& record = records[k];
                record.odin = odins[k];
                const std::size_t e = static_cast<std::size_t>(events(k)), trailer = trailers.size();
                record.routing = writer.append({selected.of_event(e), lines.data() + e * lines.shape(1), flags(e),
                                                counts.data() + e * counts.shape(1), record.odin},
                                               trailers);
                for (const ListTable& list : lists)
                    if (!(list.is_empty(e) && flags(e) & without_lists_)) list.append(e, format_.source_id, trailers);
                record.trailer_end = trailers.size();
                total += mdf_header_size + bodies[k] + 4 * (record.trailer_end - trailer);
                ends(k) = total;
            }
            left_out = writer.left_out;
            uint8_t* data;
            {
                const nb::gil_scoped_acquire acquired;
                encoded = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(total)));
                if (!encoded.is_valid()) throw nb::python_error();
                data = reinterpret_cast<uint8_t*>(PyBytes_AsString(encoded.ptr()));
            }
            std::vector<uint8_t*> places(records.size());
            for (std::size_t k = 0; k < records.size(); ++k) places[k] = data + (k ? ends(k - 1) : 0) + mdf_header_size;
            banks.copy(places.data());
            const uint32_t* trailer = trailers.data();
            for (std::size_t k = 0; k < records.size(); ++k) {
                const std::size_t begin = k ? ends(k - 1) : 0;
                put_header(data + begin, ends(k) - begin, records[k]);
                const uint32_t* end = trailers.data() + records[k].trailer_end;
                std::copy(reinterpret_cast<const uint8_t*>(trailer), reinterpret_cast<const uint8_t*>(end), places[k]);
                trailer = end;
            }
            if (checksums_) put_checksums(data, ends);
        }
        return nb::make_tuple(encoded, unwritten, left_out);
    }

    static void put_checksums(uint8_t* data, const Ends& ends)
    {
        std::vector<HashedBytes> parts;
        for (std::size_t k = 0; k < ends.size(); ++k) {
            const uint8_t *begin = data + (k ? ends(k - 1) : 0) + checksum_from, *end = data + ends(k);
            parts.push_back({begin, static_cast<std::size_t>(end - begin)});
        }
        std::vector<uint32_t> hashes(parts.size());
        jenkins(parts.data(), parts.size(), hashes.data());
        for (std::size_t k = 0; k < ends.size(); ++k) put_u32(data + (k ? ends(k - 1) : 0) + checksum_at, hashes[k]);
    }

    static void put_header(uint8_t* at, std::size_t size, const Record& record)
    {
        constexpr uint8_t version = 3, subheader_words = 7, data_type_banks = 1;
        constexpr uint32_t no_mask = 0xFFFFFFFF;
        for (int copy = 0; copy < 3; ++copy) put_u32(at + 4 * copy, static_cast<uint32_t>(size));
        put_u32(at + checksum_at, 0);
        at[16] = 0;
        at[17] = version << 4 | subheader_words;
        at[18] = data_type_banks;
        at[19] = 0;
        for (int word = 0; word < 3; ++word) put_u32(at + 20 + 4 * word, record.routing[word]);
        put_u32(at + 32, no_mask);
        put_u32(at + 36, record.run);
        put_u32(at + 40, record.odin.orbit);
        put_u32(at + 44, record.odin.bunch_id);
    }

    trigger_banks::Format format_;
    std::size_t n_counts_ = 0;
    bool checksums_;
    uint32_t without_lists_;  // flags of events whose lists may be incomplete
};

}  // namespace

void add_event_records(nb::module_& module)
{
    using window_records::Layout;
    nb::class_<Layout>(module, "WindowLayout", "How a chain cuts time, and the record of a hit")
        .def(
            "__init__",
            [](Layout* self, uint32_t sub_slice_ns, uint32_t margin_before, uint32_t margin_behind, uint32_t hit_size,
               uint32_t time_offset, uint32_t time_bytes, bool big_endian, uint32_t unit_numerator,
               uint32_t unit_denominator, const std::vector<uint8_t>& no_hits,
               const std::map<uint32_t, int64_t>& clock_offsets_ns) {
                Layout layout{sub_slice_ns, margin_before,  margin_behind,    hit_size, time_offset,     time_bytes,
                              big_endian,   unit_numerator, unit_denominator, {},       clock_offsets_ns};
                for (const uint8_t type : no_hits) layout.no_hits[type] = true;
                layout.check();
                new (self) Layout(layout);
            },
            nb::kw_only(), nb::arg("sub_slice_ns"), nb::arg("margin_before"), nb::arg("margin_behind"),
            nb::arg("hit_size"), nb::arg("time_offset"), nb::arg("time_bytes"), nb::arg("big_endian"),
            nb::arg("unit_numerator"), nb::arg("unit_denominator"), nb::arg("no_hits"),
            nb::arg("clock_offsets_ns") = std::map<uint32_t, int64_t>{})
        .def_rw("in_vectors", &Layout::in_vectors);
    nb::class_<RecordEncoder>(module, "RecordEncoder", "Writes kept events as MDF records with trigger banks")
        .def(nb::init<uint32_t, uint32_t, uint32_t, uint16_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                      const Rows&, uint32_t, uint32_t, const Rows&, bool, uint32_t>(),
             nb::kw_only(), nb::arg("key"), nb::arg("tck"), nb::arg("task_id"), nb::arg("source_id"),
             nb::arg("not_run"), nb::arg("unreadable"), nb::arg("cut"), nb::arg("error_bit"), nb::arg("lumi_bit"),
             nb::arg("routing"), nb::arg("lumi_key"), nb::arg("lumi_words"), nb::arg("lumi_counters"),
             nb::arg("checksums"), nb::arg("list_left_out"))
        .def("of_batch", &RecordEncoder::of_batch, nb::arg("buffer"), nb::arg("meps"), nb::arg("events"),
             nb::arg("run"), nb::arg("lines"), nb::arg("flags"), nb::arg("counts"), nb::arg("selected_offsets"),
             nb::arg("selected_words"), nb::arg("ends"), nb::arg("lists"),
             "Records of some events of a batch; ValueError for inconsistent tables")
        .def("of_events", &RecordEncoder::of_events, nb::arg("banks"), nb::arg("events"), nb::arg("lines"),
             nb::arg("flags"), nb::arg("counts"), nb::arg("selected_offsets"), nb::arg("selected_words"),
             nb::arg("ends"), nb::arg("lists"),
             "Records of some events with given banks; ValueError for inconsistent tables")
        .def("of_windows", &RecordEncoder::of_windows, nb::arg("layout"), nb::arg("buffer"), nb::arg("meps"),
             nb::arg("slices"), nb::arg("missing"), nb::arg("run"), nb::arg("lines"), nb::arg("flags"),
             nb::arg("offsets"), nb::arg("starts"), nb::arg("window_ends"), nb::arg("window_lines"), nb::arg("kept"),
             "Records of the windows of time slices; ValueError for inconsistent tables");
}
