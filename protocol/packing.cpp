// Events to frames (docs/formats/mfp.md, docs/formats/transport-frame.md): the raw banks of the events of a MEP are
// transposed to one MFP per readout source, in one buffer. Space for its transport header precedes each MFP.
#include "packing.h"

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
#include "crc32c.h"
#include "jenkins.h"
#include "mfp.h"
#include "raw_bank.h"
#include "small_copy.h"
#include "transport_frame.h"
#include "written_banks.h"

namespace nb = nanobind;

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WritableBytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Positions = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr int32_t no_column = -1;
constexpr std::size_t max_fragments = 0xFFFF;
constexpr uint32_t no_bank_at = std::numeric_limits<uint32_t>::max();
// Events per group, whose fragments of a source are written together; and prefetch distances: within one event, and in
// each event while the loop goes from source to source.
constexpr std::size_t events_at_a_time = 256, ahead_in_event = 2048, ahead_in_column = 192;
constexpr uint64_t not_made = std::numeric_limits<uint64_t>::max();  // place of a frame that is not packed

constexpr std::size_t aligned(std::size_t size, std::size_t to) { return (size + to - 1) & ~(to - 1); }

// Faults of the events: codes of packing.py.
enum class Problem : int { none, damaged_bank, second_bank, other_version, too_large, reserved_type, too_many_banks };

struct Finding {
    Problem problem = Problem::none;
    std::size_t event = 0;
    std::size_t detail = 0;  // offset in the event, or key of the bank
};

nb::tuple as_tuple(const Finding& finding)
{
    return nb::make_tuple(static_cast<int>(finding.problem), finding.event, finding.detail);
}

// Type, version and source id from the header of a bank; they determine its readout source.
uint32_t key_of(const uint8_t* bank) { return u32_at(bank + 4); }

class Packer {
  public:
    // The sources of every MEP, ascending, and the bank version for MEPs in which a source has no bank.
    // `error_type`: type of the fragment of a source with several banks in an event, which cannot be told apart; such
    // an event is a fault if it is negative.
    // `error_types`: types of error banks. They have versions of their own and take the one of their MFP.
    Packer(const std::vector<uint16_t>& sources, const std::vector<uint8_t>& versions, int error_type,
           const std::vector<uint8_t>& error_types)
        : sources_(sources), versions_(versions), error_type_(error_type)
    {
        for (const uint8_t type : error_types) is_error_[type] = true;
        if (error_type >= no_bank) throw nb::value_error("the type of error banks is not a bank type");
        if (sources.size() != versions.size()) throw nb::value_error("each source must have a version");
    }

    // Banks of this key belong to the source at `column`, or to no source if it is negative.
    void route(uint32_t key, int32_t column)
    {
        if (column >= static_cast<int32_t>(sources_.size())) throw nb::value_error("this source does not exist");
        nodes_[node_of(key)].column = column;
    }

    // The sizes of the frames of some events, a fault of the events, and the unknown keys of their banks. Banks of
    // unknown keys are skipped until they are routed.
    nb::tuple measure(const Bytes& bytes, const Positions& begins, const Positions& ends)
    {
        check_positions(bytes, begins, ends);
        Finding finding;
        doubled_.clear();
        std::vector<uint64_t> sizes(sources_.size(), 0);
        {
            const nb::gil_scoped_release released;
            finding = add_sizes(bytes, begins, ends, sizes);
            const std::size_t n = begins.size();
            for (std::size_t column = 0; column < sources_.size(); ++column) {
                sizes[column] += frame_header_size + mfp_data_at(n);
                if (sizes[column] > std::numeric_limits<uint32_t>::max() && finding.problem == Problem::none)
                    finding = {Problem::too_large, 0, column};
            }
        }
        const std::vector<uint32_t> unknown = std::move(unknown_);
        unknown_.clear();
        std::vector<std::size_t> doubled;
        if (!doubled_.empty()) doubled = {doubled_.size(), doubled_[0].event, sources_[doubled_[0].column]};
        return nb::make_tuple(sizes, as_tuple(finding), unknown, doubled);
    }

    // Write the MFPs of some events to their places, after space for their headers; frames without place are skipped.
    // The events and `sizes` are those of `measure`.
    void pack(const Bytes& bytes, const Positions& begins, const Positions& ends, const std::vector<uint64_t>& places,
              const std::vector<uint64_t>& sizes, const WritableBytes& to, uint64_t first_event)
    {
        check_positions(bytes, begins, ends);
        if (places.size() != sources_.size() || sizes.size() != sources_.size())
            throw nb::value_error("each source must have a place and a size");
        for (std::size_t column = 0; column < sources_.size(); ++column)
            if (places[column] != not_made &&
                (places[column] > to.size() || sizes[column] > to.size() - places[column]))
                throw nb::value_error("the buffer does not fit these events");
        if (bank_at_.size() != begins.size() * sources_.size())
            throw nb::value_error("the events differ from the measured ones");
        const nb::gil_scoped_release released;
        write(bytes, begins, places, sizes, to, first_event);
    }

  private:
    std::vector<uint16_t> sources_;
    std::vector<uint8_t> versions_;
    std::array<bool, 256> is_error_{};
    int error_type_;
    // Events in which a source has several banks.
    struct Doubled {
        std::size_t event, column;
    };
    std::vector<Doubled> doubled_;

    // A known key, and the key that followed it last time: most events have the same banks in the same order.
    struct Node {
        uint32_t key;
        int32_t column;
        uint32_t next;
    };
    std::vector<Node> nodes_ = {{0, no_column, 0}};  // the first one is the start of an event
    std::unordered_map<uint32_t, uint32_t> node_of_key_;
    std::vector<uint32_t> unknown_;
    std::vector<uint32_t> bank_at_;  // for each event and column, offset from the start of the event

    static void check_positions(const Bytes& bytes, const Positions& begins, const Positions& ends)
    {
        if (begins.size() != ends.size() || begins.size() == 0 || begins.size() > max_fragments)
            throw nb::value_error("a MEP must have 1 to 65535 events, each with a begin and an end");
        for (std::size_t event = 0; event < begins.size(); ++event)
            if (begins.data()[event] > ends.data()[event] || ends.data()[event] > bytes.size())
                throw nb::value_error("an event lies outside the bytes");
    }

    // The node of a key; an unknown key belongs to no column.
    uint32_t node_of(uint32_t key)
    {
        const auto [found, is_new] = node_of_key_.try_emplace(key, static_cast<uint32_t>(nodes_.size()));
        if (is_new) nodes_.push_back({key, no_column, 0});
        return found->second;
    }

    // Call visit(column, bank, length) for each bank of an event that belongs to a source.
    template <typename Visit>
    Finding walk(const uint8_t* data, std::size_t begin, std::size_t end, const Visit& visit)
    {
        Node* nodes = nodes_.data();
        uint32_t before = 0;
        std::size_t n_banks = 0;
        for (std::size_t at = begin; at < end;) {
            const uint8_t* bank = data + at;
            if (end - at < bank_header_size || u16_at(bank) != bank_magic)
                return {Problem::damaged_bank, 0, at - begin};
            const std::size_t length = u16_at(bank + 2), following = at + aligned(length, 4);
            if (length < bank_header_size || following > end) return {Problem::damaged_bank, 0, at - begin};
            if (++n_banks > max_banks_of_event) return {Problem::too_many_banks, 0, at - begin};
            __builtin_prefetch(bank + ahead_in_event);
            const uint32_t key = key_of(bank);
            uint32_t node = nodes[before].next;
            if (nodes[node].key != key || node == 0) {
                const std::size_t n_known = nodes_.size();
                node = node_of(key);
                if (node == n_known) unknown_.push_back(key);
                nodes = nodes_.data();
                nodes[before].next = node;
            }
            if (nodes[node].column >= 0) {
                const Problem problem = visit(static_cast<std::size_t>(nodes[node].column), bank, length);
                if (problem != Problem::none) return {problem, 0, key};
            }
            before = node;
            at = following;
        }
        return {};
    }

    // Sizes of the padded fragments by column. Records the column of each bank of an event for `write`.
    Finding add_sizes(const Bytes& bytes, const Positions& begins, const Positions& ends, std::vector<uint64_t>& sizes)
    {
        const std::size_t n_columns = sources_.size(), n = begins.size();
        std::vector<int32_t> versions(n_columns, -1);
        bank_at_.resize(n * n_columns);
        int32_t* const version = versions.data();
        uint64_t* const size = sizes.data();
        for (std::size_t event = 0; event < n; ++event) {
            const uint8_t* const data = bytes.data() + begins.data()[event];
            uint32_t* const bank_at = bank_at_.data() + event * n_columns;
            std::fill_n(bank_at, n_columns, no_bank_at);
            Finding finding = walk(bytes.data(), begins.data()[event], ends.data()[event],
                                   [=, this](std::size_t column, const uint8_t* bank, std::size_t length) {
                                       if (bank[4] == no_bank) return Problem::reserved_type;
                                       if (bank_at[column] != no_bank_at) {
                                           if (error_type_ < 0) return Problem::second_bank;
                                           doubled_.push_back({event, column});
                                           return Problem::none;
                                       }
                                       if (!is_error_[bank[4]]) {
                                           if (version[column] < 0) version[column] = bank[5];
                                           if (version[column] != bank[5]) return Problem::other_version;
                                       }
                                       bank_at[column] = static_cast<uint32_t>(bank - data);
                                       size[column] += padded_fragment(length - bank_header_size);
                                       return Problem::none;
                                   });
            if (finding.problem != Problem::none) {
                finding.event = event;
                return finding;
            }
        }
        return {};
    }

    // Column by column for a few events at a time: the fragments of a source are written consecutively, while the banks
    // of these events are still in the cache. Event by event, each bank would touch other pages.
    void write(const Bytes& bytes, const Positions& begins, const std::vector<uint64_t>& places,
               const std::vector<uint64_t>& sizes, const WritableBytes& to, uint64_t first_event)
    {
        const std::size_t n = begins.size(), n_columns = sources_.size();
        std::vector<uint8_t*> next(n_columns, nullptr);
        for (std::size_t column = 0; column < n_columns; ++column) {
            if (places[column] == not_made) continue;
            uint8_t* mfp = to.data() + places[column] + frame_header_size;
            put_mfp_head(mfp, n, static_cast<uint32_t>(sizes[column] - frame_header_size), first_event,
                         sources_[column], versions_[column]);
            next[column] = mfp + mfp_data_at(n);
        }
        for (std::size_t first = 0; first < n; first += events_at_a_time) {
            const std::size_t last = first + events_at_a_time < n ? first + events_at_a_time : n;
            for (std::size_t column = 0; column < n_columns; ++column)
                if (next[column])
                    next[column] = write_fragments(bytes.data(), begins.data(), first, last, column,
                                                   to.data() + places[column] + frame_header_size, next[column]);
        }
        for (const auto& [event, column] : doubled_)
            if (places[column] != not_made)
                to.data()[places[column] + frame_header_size + mfp_header_size + event] =
                    static_cast<uint8_t>(error_type_);
    }

    uint8_t* write_fragments(const uint8_t* data, const uint64_t* begins, std::size_t first, std::size_t last,
                             std::size_t column, uint8_t* mfp, uint8_t* to) const
    {
        uint8_t* const types = mfp + mfp_header_size;
        uint8_t* const sizes = mfp + mfp_sizes_at(u16_at(mfp + 2));
        const std::size_t n_columns = sources_.size();
        const uint32_t* bank_at = bank_at_.data() + first * n_columns + column;
        for (std::size_t event = first; event < last; ++event, bank_at += n_columns) {
            if (*bank_at == no_bank_at) continue;
            const uint8_t* bank = data + begins[event] + *bank_at;
            __builtin_prefetch(bank + ahead_in_column);
            const std::size_t size = u16_at(bank + 2) - bank_header_size;
            if (!is_error_[bank[4]]) mfp[19] = bank[5];
            types[event] = bank[4];
            put_u16(sizes + 2 * event, static_cast<uint16_t>(size));
            to = put_fragment(to, bank + bank_header_size, size);
        }
        return to;
    }
};

// True if raw banks fill these bytes, at most those of an event.
bool are_banks(const uint8_t* data, std::size_t size)
{
    std::size_t at = 0;
    for (std::size_t n = 0; at < size; ++n) {
        if (n == max_banks_of_event || size - at < bank_header_size || u16_at(data + at) != bank_magic) return false;
        const std::size_t length = u16_at(data + at + 2);
        if (length < bank_header_size || aligned(length, 4) > size - at) return false;
        __builtin_prefetch(data + at + ahead_in_event);
        at += aligned(length, 4);
    }
    return true;
}

// Begins and ends of up to `most` events of uncompressed MDF records (docs/formats/mdf.md), and whether a truncated
// record follows, so that more bytes would help. A compressed or damaged record ends the list; with `verify`, a wrong
// checksum and damaged banks end it too.
nb::tuple find_events(const Bytes& bytes, std::size_t at, std::size_t most, bool verify)
{
    constexpr std::size_t header_size = 48, checked_from = 16, max_record = std::size_t{1} << 27;
    constexpr uint8_t lengths_of_versions[] = {0x17, 0x37}, banks = 1;
    if (at > bytes.size()) throw nb::value_error("the first record lies outside the bytes");
    std::vector<uint64_t> begins, ends;
    std::vector<HashedBytes> checked;
    std::vector<std::pair<std::size_t, uint32_t>> announced;  // record and its checksum
    bool cut_off = false;
    {
        const nb::gil_scoped_release released;
        while (begins.size() < most) {
            const std::size_t left = bytes.size() - at;
            const uint8_t* record = bytes.data() + at;
            cut_off = left < header_size;
            if (cut_off) break;
            const uint32_t size = u32_at(record);
            if (size < header_size || size > max_record || u32_at(record + 4) != size || u32_at(record + 8) != size)
                break;
            cut_off = size > left;
            if (cut_off) break;
            const uint8_t compression = record[16], version = record[17], kind = record[18];
            const bool known = version == lengths_of_versions[0] || version == lengths_of_versions[1];
            if ((compression & 0xF) != 0 || !known || kind != banks) break;
            if (size >= header_size + bank_header_size && record[header_size + 4] == tae_header) break;
            const uint32_t checksum = u32_at(record + 12);
            if (verify && checksum != 0) {
                checked.push_back({record + checked_from, size - checked_from});
                announced.emplace_back(begins.size(), checksum);
            }
            if (verify && !are_banks(record + header_size, size - header_size)) break;
            begins.push_back(at + header_size);
            ends.push_back(at += size);
        }
        // Checksums of several records together are computed several times as fast.
        std::vector<uint32_t> computed(checked.size());
        if (!checked.empty()) jenkins(checked.data(), checked.size(), computed.data());
        for (std::size_t i = 0; i < checked.size(); ++i) {
            if (computed[i] == announced[i].second || announced[i].first >= begins.size()) continue;
            begins.resize(announced[i].first);
            ends.resize(announced[i].first);
            cut_off = false;
            break;
        }
    }
    return nb::make_tuple(begins, ends, cut_off);
}

// Write the transport headers of packed frames, with their CRC32C.
void seal(const WritableBytes& buffer, const std::vector<uint64_t>& places, const std::vector<uint64_t>& sizes,
          uint32_t run, uint64_t mep, uint64_t send_time_ns)
{
    if (places.size() < sizes.size()) throw nb::value_error("each frame must have a place");
    for (std::size_t i = 0; i < sizes.size(); ++i)
        if (sizes[i] < frame_header_size + mfp_header_size || places[i] > buffer.size() ||
            sizes[i] > buffer.size() - places[i])
            throw nb::value_error("a frame lies outside the buffer");
    const nb::gil_scoped_release released;
    const crc32c::Copy crc32c = crc32c::implementations().front().copy;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        uint8_t* frame = buffer.data() + places[i];
        uint8_t* mfp = frame + frame_header_size;
        put_u32(frame, frame_magic);
        put_u16(frame + 4, frame_version);
        put_u16(frame + 6, 0);
        put_u32(frame + 8, run);
        put_u32(frame + 12, static_cast<uint32_t>(sizes[i] - frame_header_size));
        put_u64(frame + 16, mep);
        put_u64(frame + 24, send_time_ns);
        put_u16(frame + 32, u16_at(mfp + 16));
        put_u16(frame + 34, 0);
        const uint32_t crc = crc32c(crc32c(0, frame, nullptr, crc_at), mfp, nullptr, sizes[i] - frame_header_size);
        put_u32(frame + crc_at, crc);
        put_u64(frame + token_at, 0);
    }
}

// Write the token into sealed frames. The CRC does not cover it.
void set_tokens(const nb::list& frames, uint64_t token)
{
    for (const nb::handle each : frames) {
        const View frame(each.ptr(), PyBUF_WRITABLE);
        if (frame.size() < frame_header_size)
            throw nb::value_error("expected a frame, found fewer bytes than its header");
        put_u64(static_cast<uint8_t*>(frame.data()) + token_at, token);
    }
}

}  // namespace

void define_packing(nb::module_& module)
{
    nb::class_<Packer>(module, "Packer", "Transposes events to one MFP per readout source")
        .def(nb::init<const std::vector<uint16_t>&, const std::vector<uint8_t>&, int, const std::vector<uint8_t>&>(),
             nb::arg("sources"), nb::arg("versions"), nb::arg("error_type"), nb::arg("error_types"))
        .def("route", &Packer::route, nb::arg("key"), nb::arg("column"),
             "Banks of this key belong to the source at `column`, to no source if it is negative")
        .def("measure", &Packer::measure, nb::arg("bytes"), nb::arg("begins"), nb::arg("ends"),
             "The sizes of the frames of some events, a fault of the events, unknown keys, and second banks: their "
             "number, "
             "event and source of the first one")
        .def("pack", &Packer::pack, nb::arg("bytes"), nb::arg("begins"), nb::arg("ends"), nb::arg("places"),
             nb::arg("sizes"), nb::arg("to"), nb::arg("first_event"),
             "Write the MFPs of the measured events to their places");
    module.def("find_events", &find_events, nb::arg("bytes"), nb::arg("at"), nb::arg("most"), nb::arg("verify"),
               "Begins and ends of the events of uncompressed MDF records, and whether a truncated record follows");
    module.def("seal_frames", &seal, nb::arg("buffer"), nb::arg("places"), nb::arg("sizes"), nb::arg("run"),
               nb::arg("mep"), nb::arg("send_time_ns"),
               "Write the transport headers of packed frames, with their CRC32C");
    module.def("set_frame_tokens", &set_tokens, nb::arg("frames"), nb::arg("token"),
               "Write the token of the node into sealed frames");
}
