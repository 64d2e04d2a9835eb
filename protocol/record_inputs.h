// What the records of events are made of, without the interpreter: output lists, windows, and the banks of events,
// which lie in the MFPs of a batch or come as a list for each event.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "buffer_view.h"
#include "mep_banks.h"
#include "raw_bank.h"
#include "trigger_banks.h"
#include "window_records.h"
#include "written_banks.h"

namespace record_inputs {

namespace nb = nanobind;

template <typename T, int dimensions>
using Array = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using Words = Array<const uint32_t, 1>;
using Rows = Array<const uint32_t, 2>;
using Events = Array<const int64_t, 1>;
using Ends = Array<uint64_t, 1>;
using Times = Array<const int32_t, 1>;
using Marks = Array<const uint8_t, 1>;
using Ids = Array<const uint64_t, 1>;
using Places = Array<const int64_t, 2>;                     // source id, offset, bytes of each MFP
using Meps = std::vector<std::tuple<std::size_t, Places>>;  // number of events, places of the MFPs

// The words of the selected objects: those of event e are `words` from `offsets`[e] to `offsets`[e + 1].
struct SelectedRows {
    const Words& offsets;
    const Words& words;

    trigger_banks::Selected of_event(std::size_t event) const
    {
        return {words.data() + offsets(event), offsets(event + 1) - offsets(event)};
    }
};

// An output list of a batch. The elements of event e are those from `offsets`[e] to `offsets`[e + 1]; `description` are
// the words of its name and values, `values` the bytes of each value of all elements.
class ListTable {
  public:
    ListTable(const nb::handle& list, std::size_t n_events)
        : offsets_(nb::cast<Words>(list.attr("offsets"))), type_(nb::cast<uint8_t>(list.attr("bank_type")))
    {
        const View description(nb::object(list.attr("description")).ptr());
        for (const nb::handle value : nb::object(list.attr("values"))) values_.push_back(nb::cast<ListBytes>(value));
        if (type_ < trigger_banks::first_list || type_ >= trigger_banks::first_list + trigger_banks::max_lists)
            throw nb::value_error("an output list has the type of another bank");
        if (description.size() % 4 || offsets_.size() != n_events + 1 || offsets_(0) != 0)
            throw nb::value_error("an output list has another number of events");
        for (std::size_t e = 0; e < n_events; ++e)
            if (offsets_(e) > offsets_(e + 1)) throw nb::value_error("the offsets of an output list do not ascend");
        std::size_t element = 0;
        for (const ListBytes& value : values_) {
            if (value.shape(0) < offsets_(n_events))
                throw nb::value_error("the values of an output list end before its offsets");
            element += value.shape(1);
        }
        description_.resize(description.size() / 4);
        if (!description_.empty()) std::memcpy(description_.data(), description.bytes(), description.size());
        // The part that does not grow: header, and the padding of each value.
        const std::size_t fixed = 4 * (header_words + description_.size() + values_.size());
        if (element == 0 || fixed + element > max_bank_payload)
            throw nb::value_error("one element of an output list exceeds a bank");
        per_bank_ = static_cast<uint32_t>((max_bank_payload - fixed) / element);
    }

    // Append the banks of an event: one, or several if one cannot hold all elements.
    void append(std::size_t event, uint16_t source, std::vector<uint32_t>& out) const
    {
        const uint32_t begin = offsets_(event), total = offsets_(event + 1) - begin;
        uint32_t first = 0;
        do {
            const uint32_t n = std::min(total - first, per_bank_);
            std::size_t words = header_words + description_.size();
            for (const ListBytes& value : values_) words += padded_to_4(n * value.shape(1)) / 4;
            std::size_t at = out.size();
            out.resize(at + bank_header_size / 4 + words);
            put_bank_header(reinterpret_cast<uint8_t*>(out.data() + at), bank_header_size + 4 * words, type_, version,
                            source);
            at += bank_header_size / 4;
            for (const uint32_t word : {total, first, n}) out[at++] = word;
            at = static_cast<std::size_t>(std::copy(description_.begin(), description_.end(), out.begin() + at) -
                                          out.begin());
            for (const ListBytes& value : values_) {
                const std::size_t size = value.shape(1);
                if (n) std::memcpy(out.data() + at, value.data() + (begin + first) * size, n * size);
                at += padded_to_4(n * size) / 4;
            }
            first += n;
        } while (first < total);
    }

    bool is_empty(std::size_t event) const { return offsets_(event) == offsets_(event + 1); }

  private:
    using ListBytes = Array<const uint8_t, 2>;  // [elements][bytes of one]

    static constexpr std::size_t header_words = 3;
    static constexpr uint8_t version = 1;

    Words offsets_;
    std::vector<ListBytes> values_;
    std::vector<uint32_t> description_;
    uint32_t per_bank_ = 0;
    uint8_t type_;
};
using Lists = std::vector<ListTable>;

inline Lists lists_of(const nb::list& lists, std::size_t n_events)
{
    Lists found;
    for (const nb::handle list : lists) found.emplace_back(list, n_events);
    return found;
}

// State of one event between the passes.
struct Record {
    std::size_t trailer_end = 0;  // end of its words in the trigger banks of all events
    uint32_t run = 0;
    trigger_banks::Odin odin;
    std::array<uint32_t, 3> routing{};
};

inline std::vector<PlacedMfp> placed(const Places& places)
{
    std::vector<PlacedMfp> mfps;
    mfps.reserve(places.shape(0));
    for (std::size_t i = 0; i < places.shape(0); ++i)
        mfps.push_back({static_cast<uint32_t>(places(i, 0)), static_cast<uint64_t>(places(i, 1)),
                        static_cast<uint64_t>(places(i, 2))});
    return mfps;
}

// The windows of the sub-slices of a batch: those of event e from `offsets`[e] to `offsets`[e + 1]. Only those of
// events with a mark in `kept` are written.
struct WindowTable {
    const Words& offsets;
    const Times &starts, &ends;
    const Words& lines;
    const Marks& kept;

    void check(std::size_t n_events) const
    {
        if (offsets.size() != n_events + 1 || kept.size() != n_events || offsets(0) != 0)
            throw nb::value_error("the windows have another number of events");
        for (std::size_t e = 0; e < n_events; ++e)
            if (offsets(e) > offsets(e + 1)) throw nb::value_error("the offsets of windows do not ascend");
        const std::size_t n = offsets(n_events);
        if (starts.size() < n || ends.size() < n || lines.size() < n)
            throw nb::value_error("the windows end before their offsets");
    }

    // The windows of the events from `first` on, and the event of each.
    void of_slice(std::size_t first, std::size_t n_events, int64_t length, std::vector<window_records::Window>& windows,
                  std::vector<std::size_t>& events) const
    {
        for (std::size_t e = first; e < first + n_events; ++e) {
            if (!kept(e)) continue;
            const int64_t begin = static_cast<int64_t>(e - first) * length;
            for (uint32_t i = offsets(e); i < offsets(e + 1); ++i) {
                windows.push_back({begin + starts(i), begin + ends(i), lines(i)});
                events.push_back(e);
            }
        }
    }
};

// What was written of the windows of a batch.
struct WindowSums {
    uint64_t windows = 0, hits = 0, cut_off = 0, hits_outside = 0, bytes_left = 0, kept_ns = 0;
};

// Banks of some events of the MEPs of a batch.
class BatchBanks {
  public:
    BatchBanks(const View& buffer, const Meps& meps, const Events& events)
    {
        std::size_t first = 0, k = 0;
        for (const auto& [n_events, places] : meps) {
            const std::size_t begin = k;
            while (k < events.size() && static_cast<std::size_t>(events(k)) < first + n_events) ++k;
            if (k > begin) {
                begins_.push_back(begin);
                meps_.emplace_back(buffer.bytes(), buffer.size(), placed(places), events.data() + begin, k - begin,
                                   first, n_events);
            }
            first += n_events;
        }
    }

    uint64_t measure(std::size_t* bodies, trigger_banks::Odin* odins)
    {
        uint64_t unwritten = 0;
        for (std::size_t i = 0; i < meps_.size(); ++i)
            unwritten += meps_[i].measure(bodies + begins_[i], odins + begins_[i]);
        return unwritten;
    }

    void copy(uint8_t** places) const
    {
        for (std::size_t i = 0; i < meps_.size(); ++i) meps_[i].copy(places + begins_[i]);
    }

  private:
    std::vector<std::size_t> begins_;  // first kept event of each MEP with kept events
    std::vector<MepBanks> meps_;
};

// Banks given as a list for each event, without trigger banks.
class ListedBanks {
  public:
    explicit ListedBanks(const nb::list& events)
    {
        for (const nb::handle banks : events) {
            for (const nb::handle bank : banks) {
                if (!PyTuple_Check(bank.ptr()) || NB_TUPLE_GET_SIZE(bank.ptr()) != 4)
                    throw nb::value_error("a raw bank must have four parts");
                const auto part = [&](Py_ssize_t i) { return nb::handle(NB_TUPLE_GET_ITEM(bank.ptr(), i)); };
                const uint8_t type = nb::cast<uint8_t>(part(0));
                if (!trigger_banks::is_trigger_bank(type))
                    banks_.push_back(
                        {View(part(3).ptr()), nb::cast<uint16_t>(part(2)), type, nb::cast<uint8_t>(part(1))});
            }
            ends_.push_back(banks_.size());
        }
    }

    uint64_t measure(std::size_t* bodies, trigger_banks::Odin* odins) const
    {
        uint64_t unwritten = 0;
        for_each([&](std::size_t k, const Bank& bank) {
            const std::size_t size = bank.payload.size();
            if (bank.type == trigger_banks::odin_type && !odins[k].readable)
                odins[k] = trigger_banks::Odin::of_bank(bank.type, bank.version, bank.payload.bytes(), size);
            if (!can_be_written(bank.type, size))
                ++unwritten;
            else
                bodies[k] += bank_header_size + padded_to_4(size);
        });
        return unwritten;
    }

    void copy(uint8_t** places) const
    {
        for_each([&](std::size_t k, const Bank& bank) {
            const std::size_t size = bank.payload.size(), end = bank_header_size + padded_to_4(size);
            if (!can_be_written(bank.type, size)) return;
            put_bank_header(places[k], bank_header_size + size, bank.type, bank.version, bank.source);
            // Zero the last word of the payload first: its end is the padding.
            if (size) {
                put_u32(places[k] + end - 4, 0);
                std::memcpy(places[k] + bank_header_size, bank.payload.bytes(), size);
            }
            places[k] += end;
        });
    }

    // The run of each event from its ODIN bank; an event without a readable one keeps its run.
    void find_runs(std::vector<Record>& records) const
    {
        for_each([&](std::size_t k, const Bank& bank) {
            const uint8_t* payload = bank.payload.bytes();
            if (trigger_banks::Odin::of_bank(bank.type, bank.version, payload, bank.payload.size()).readable)
                records[k].run = u32_at(payload);
        });
    }

  private:
    struct Bank {
        View payload;
        uint16_t source;
        uint8_t type, version;
    };

    // Calls use(k, bank) for the banks of each event.
    template <typename Use>
    void for_each(const Use& use) const
    {
        for (std::size_t k = 0, i = 0; k < ends_.size(); ++k)
            for (; i < ends_[k]; ++i) use(k, banks_[i]);
    }

    std::vector<Bank> banks_;
    std::vector<std::size_t> ends_;
};

}  // namespace record_inputs
