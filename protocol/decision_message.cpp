// The decision message of one MEP (docs/formats/decision-message.md), straight from the results of a batch.
//
// The general encoder makes arrays, an object and a map first. That takes 10 us in a loop, but 130 us in a node that
// works 100 times a second: the caches then have none of its code. This one touches little memory.
#include "decision_message.h"

#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "buffer_view.h"

namespace nb = nanobind;

namespace {

constexpr std::size_t max_events = 0xFFFF;

// Appends values in msgpack, each in its shortest form (msgpack specification, "Formats").
class MsgpackWriter {
  public:
    void unsigned_integer(uint64_t value)
    {
        if (value < 0x80)
            byte(value);
        else if (value <= 0xFF)
            number(0xCC, value, 1);
        else if (value <= 0xFFFF)
            number(0xCD, value, 2);
        else if (value <= 0xFFFF'FFFF)
            number(0xCE, value, 4);
        else
            number(0xCF, value, 8);
    }

    void text(std::string_view value)
    {
        if (value.size() < 32)
            byte(0xA0 | value.size());
        else if (value.size() <= 0xFF)
            number(0xD9, value.size(), 1);
        else
            number(0xDA, value.size(), 2);
        append(value.data(), value.size());
    }

    // Makes room for a byte string of `size`, with zeros; returns its place until the next call.
    uint8_t* bytes(std::size_t size)
    {
        if (size <= 0xFF)
            number(0xC4, size, 1);
        else if (size <= 0xFFFF)
            number(0xC5, size, 2);
        else
            number(0xC6, size, 4);
        content_.resize(content_.size() + size);
        return content_.data() + content_.size() - size;
    }

    void empty_list() { byte(0x90); }

    // The head of a map of at most 0xFFFF fields.
    void map(std::size_t fields)
    {
        if (fields < 16)
            byte(0x80 | fields);
        else
            number(0xDE, fields, 2);
    }

    void append(const void* data, std::size_t size)
    {
        const auto* const begin = static_cast<const uint8_t*>(data);
        content_.insert(content_.end(), begin, begin + size);
    }

    void clear() { content_.clear(); }
    const std::vector<uint8_t>& content() const { return content_; }

  private:
    void byte(uint64_t value) { content_.push_back(static_cast<uint8_t>(value)); }

    void number(uint8_t format, uint64_t value, int size)
    {
        byte(format);
        for (int i = size; i-- > 0;) byte(value >> 8 * i);
    }

    std::vector<uint8_t> content_;
};

// Encodes decisions on complete MEPs, without output lists.
class DecisionWriter {
  public:
    // Names of the node and of the chain; number of lines; version of the message.
    DecisionWriter(const std::string& node, std::string chain, uint16_t n_lines, uint32_t version)
        : chain_(std::move(chain)), n_lines_(n_lines), words_((n_lines + 31) / 32)
    {
        MsgpackWriter head;
        head.map(chain_.empty() ? 15 : 16);
        head.text("v");
        head.unsigned_integer(version);
        head.text("type");
        head.text("decision");
        head.text("node");
        head.text(node);
        head_ = head.content();
    }

    // accepted u8[n], lines u32[n, words] and flags u32[n] of the events of the MEP, or of more.
    nb::bytes write(uint32_t run, uint64_t mep, uint64_t seq, uint64_t first_event, std::size_t n_events, uint32_t tck,
                    const nb::handle& accepted, const nb::handle& lines, const nb::handle& flags)
    {
        const View of_accepted(accepted.ptr()), of_lines(lines.ptr()), of_flags(flags.ptr());
        const std::size_t line_bytes = 4 * words_ * n_events, flag_bytes = 4 * n_events;
        if (n_events > max_events || of_accepted.size() < n_events || of_lines.size() < line_bytes ||
            of_flags.size() < flag_bytes)
            throw nb::value_error("the results have fewer rows than the MEP has events");
        out_.clear();
        out_.append(head_.data(), head_.size());
        integer("run", run);
        integer("mep", mep);
        integer("seq", seq);
        integer("first_event", first_event);
        integer("n_events", n_events);
        integer("n_lines", n_lines_);
        integer("tck", tck);
        out_.text("close_reason");
        out_.text("complete");
        out_.text("missing_sources");
        out_.empty_list();
        out_.text("accepted");
        uint8_t* const bitmap = out_.bytes((n_events + 7) / 8);
        for (std::size_t i = 0; i < n_events; ++i)
            bitmap[i / 8] |= static_cast<uint8_t>((of_accepted.bytes()[i] != 0) << i % 8);
        out_.text("lines");
        std::memcpy(out_.bytes(line_bytes), of_lines.bytes(), line_bytes);
        out_.text("flags");
        std::memcpy(out_.bytes(flag_bytes), of_flags.bytes(), flag_bytes);
        if (!chain_.empty()) {
            out_.text("chain");
            out_.text(chain_);
        }
        return nb::bytes(out_.content().data(), out_.content().size());
    }

  private:
    void integer(std::string_view name, uint64_t value)
    {
        out_.text(name);
        out_.unsigned_integer(value);
    }

    std::string chain_;
    uint16_t n_lines_;
    std::size_t words_;
    std::vector<uint8_t> head_;  // the fields that are always the same
    MsgpackWriter out_;
};

}  // namespace

void add_decision_message(nb::module_& module)
{
    nb::class_<DecisionWriter>(module, "DecisionWriter", "Writes decision messages of complete MEPs")
        .def(nb::init<const std::string&, std::string, uint16_t, uint32_t>(), nb::arg("node"), nb::arg("chain"),
             nb::arg("n_lines"), nb::arg("version"))
        .def("write", &DecisionWriter::write, nb::arg("run"), nb::arg("mep"), nb::arg("seq"), nb::arg("first_event"),
             nb::arg("n_events"), nb::arg("tck"), nb::arg("accepted"), nb::arg("lines"), nb::arg("flags"),
             "The message, from rows of `accepted` u8, `lines` u32 and `flags` u32 of each event");
}
