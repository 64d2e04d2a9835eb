// The order of objects is LHCb's: selections, then objects by descending class id (vertices before tracks). So the
// constituents of an object follow it. An object that several lines select is written once.
#include "trigger_banks.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "little_endian.h"
#include "raw_bank.h"

namespace trigger_banks {

namespace {

constexpr uint32_t absent = UINT32_MAX;
constexpr uint32_t run_stage = 1;        // execution stage of a line that ran
constexpr uint32_t max_candidates = 15;  // maximum count in the decision of a line
constexpr std::size_t max_payload_words = (max_bank_size - bank_header_size) / 4;

// HltSelReports
constexpr std::size_t sel_header_words = 10;
constexpr uint32_t selection_class = 1;
constexpr uint32_t max_info = 255;
enum SubBank : uint32_t { hits = 0, objtyp = 1, substr = 2, extra_info = 3, std_info = 4 };

// HltLumiSummary: bunches of an orbit, and bunch crossings per millisecond, as LHCb counts them.
constexpr uint64_t bunches_per_orbit = 3564, crossings_per_ms = 40078;

uint32_t float_bits(float value)
{
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Writes consecutive numbers of 16 or 8 bits.
template <unsigned bits>
class Packed {
  public:
    explicit Packed(uint32_t* words) : words_(words) {}
    void put(uint32_t value)
    {
        constexpr unsigned per_word = 32 / bits;
        words_[next_ / per_word] |= value << (next_ % per_word * bits);
        ++next_;
    }

  private:
    uint32_t* words_;
    std::size_t next_ = 0;
};

uint32_t count_and_size(std::size_t count, std::size_t words)
{
    return static_cast<uint32_t>(count) | static_cast<uint32_t>(words) << 16;
}

}  // namespace

Odin Odin::of_bank(uint8_t type, uint8_t version, const uint8_t* payload, std::size_t size)
{
    constexpr std::size_t odin_size = 40;
    Odin odin;
    if (type != odin_type || size != odin_size || (version != 6 && version != 7)) return odin;
    odin.readable = true;
    if (version == 7) {
        const uint32_t bunch = u32_at(payload + 24);
        odin.orbit = u32_at(payload + 28);
        odin.bunch_id = bunch & 0xFFF;
        odin.crossing_type = bunch >> 12 & 3;
        odin.gps_time_us = u64_at(payload + 8);
    } else {
        const uint32_t bunch = u32_at(payload + 32);
        odin.orbit = u32_at(payload + 8);
        odin.bunch_id = bunch & 0xFFF;
        odin.crossing_type = bunch >> 22 & 3;
        odin.gps_time_us = static_cast<uint64_t>(u32_at(payload + 20)) << 32 | u32_at(payload + 24);
    }
    return odin;
}

std::size_t Writer::Size::words() const
{
    return sel_header_words + objtyp() + substr() + extra_info() + std_info() + hits();
}

Writer::Writer(const Format& format) : format_(format)
{
    dec_reports_ = {format.key, format.tck, format.task_id};
    for (uint32_t line = 0; line < format.n_lines; ++line) dec_reports_.push_back((line + 1) << 16);
}

std::array<uint32_t, 3> Writer::append(const Event& event, std::vector<uint32_t>& out)
{
    find_selections(event);
    select(event.selected);
    std::array<uint32_t, 3> routing{};
    for (const Selection& selection : selections_)
        for (std::size_t i = 0; i < routing.size(); ++i) routing[i] |= format_.routing[selection.line][i];
    if (event.flags & format_.unreadable) routing[0] |= 1u << format_.error_bit;

    append_dec_reports(event, out);
    const std::size_t at = append_header(routing.size(), routing_bits, 0, out);
    std::copy(routing.begin(), routing.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
    append_sel_reports(out);
    if (format_.lumi_words && routing[0] >> format_.lumi_bit & 1 && event.odin.readable)
        append_lumi_summary(event, out);
    return routing;
}

// Append a header and a payload of zeros; returns the start of the payload.
std::size_t Writer::append_header(std::size_t words, BankType type, uint8_t version, std::vector<uint32_t>& out) const
{
    const std::size_t at = out.size();
    out.resize(at + 2 + words);
    put_bank_header(reinterpret_cast<uint8_t*>(out.data() + at), bank_header_size + 4 * words, type, version,
                    format_.source_id);
    return at + 2;
}

// The lines that select the event.
void Writer::find_selections(const Event& event)
{
    selections_.clear();
    for (uint32_t first = 0; first < format_.n_lines; first += 32)
        for (uint32_t bits = event.lines[first / 32]; bits; bits &= bits - 1) {
            const uint32_t line = first + static_cast<uint32_t>(__builtin_ctz(bits));
            if (line < format_.n_lines) selections_.push_back({line, 0, 0, 0});
        }
}

// Their candidates, as many as fit, and the objects of these.
void Writer::select(const Selected& selected)
{
    size_ = {};
    n_written_ = selections_.size();
    pointers_.clear();
    included_.clear();
    classes_.clear();
    size_.classes = selections_.empty() ? 0 : 1;
    size_.objects = size_.info = size_.shorts = selections_.size();
    while (size_.words() > max_payload_words) {
        --n_written_;
        ++left_out;
        size_.objects = size_.info = size_.shorts = n_written_;
    }
    objects_.clear();
    if (selected.size == 0 || selections_.empty()) return;

    const uint32_t n_candidates = find_objects(selected);
    place_.assign(objects_.size(), absent);
    uint32_t before = 0;
    auto selection = selections_.begin();
    for (uint32_t candidate = 0; candidate < n_candidates; ++candidate) {
        const uint32_t word = selected.words[selected.size - 1 - candidate];
        const uint32_t line = word & 0xFFFF;
        if (line < before || line >= format_.n_lines)
            throw std::invalid_argument("the selected candidates of an event do not ascend by line");
        before = line;
        while (selection != selections_.end() && selection->line < line) ++selection;
        if (selection == selections_.end() || selection->line != line) continue;
        ++selection->n_candidates;
        if (static_cast<std::size_t>(selection - selections_.begin()) < n_written_)
            add_candidate(word >> 16, *selection);
        else
            ++left_out;
    }
    number_objects();
}

// Find the objects of an event; returns the number of candidates.
uint32_t Writer::find_objects(const Selected& selected)
{
    constexpr std::size_t header_words = 2;
    if (selected.size < header_words) throw std::invalid_argument("the words of selected objects have no header");
    const uint32_t n_candidates = selected.words[0] & 0xFFFF, n_objects = selected.words[0] >> 16;
    if (n_candidates > selected.size - header_words)
        throw std::invalid_argument("an event has more selected candidates than words");
    left_out += selected.words[1];
    const uint32_t* at = selected.words + header_words;
    std::size_t left = selected.size - header_words - n_candidates;
    for (uint32_t i = 0; i < n_objects; ++i) {
        const std::size_t n = left < 2 ? 0 : 2 + (at[0] >> 16) + (at[1] & 0xFFFF) + (at[1] >> 16);
        if (n == 0 || n > left) throw std::invalid_argument("the objects of an event extend beyond their words");
        const uint32_t n_info = at[0] >> 16, n_ids = at[1] & 0xFFFF;
        objects_.push_back(
            {at[0] & 0xFFFF, {at + 2, n_info}, {at + 2 + n_info, n_ids}, {at + 2 + n_info + n_ids, at[1] >> 16}});
        at += n;
        left -= n;
    }
    return n_candidates;
}

void Writer::add_candidate(uint32_t object, Selection& selection)
{
    const std::size_t n_included = included_.size(), n_classes = classes_.size();
    Size larger = size_;
    ++larger.shorts;
    if (include(object, larger)) {
        size_ = larger;
        if (selection.n_pointers == 0) selection.first_pointer = pointers_.size();
        ++selection.n_pointers;
        pointers_.push_back(object);
        return;
    }
    for (std::size_t i = n_included; i < included_.size(); ++i) place_[included_[i]] = absent;
    included_.resize(n_included);
    classes_.resize(n_classes);
    ++left_out;
}

// Add an object with its constituents; returns whether the bank still fits.
bool Writer::include(uint32_t object, Size& size)
{
    stack_.assign(1, object);
    while (!stack_.empty()) {
        const uint32_t next = stack_.back();
        stack_.pop_back();
        const auto& [class_id, info, ids, parts] = this->object(next);
        if (place_[next] != absent) continue;
        if (class_id <= selection_class || info.n > max_info || (ids.n && parts.n))
            throw std::invalid_argument("an object of a selection report has an invalid class, values or parts");
        if (std::find(classes_.begin(), classes_.end(), class_id) == classes_.end()) {
            classes_.push_back(class_id);
            ++size.classes;
        }
        ++size.objects;
        size.info += info.n;
        size.shorts += 1 + (ids.n ? 1 : parts.n);
        size.sequences += ids.n ? 1 : 0;
        size.ids += ids.n;
        place_[next] = static_cast<uint32_t>(included_.size());
        included_.push_back(next);
        if (size.words() > max_payload_words) return false;
        stack_.insert(stack_.end(), std::make_reverse_iterator(parts.data + parts.n),
                      std::make_reverse_iterator(parts.data));
    }
    return size.words() <= max_payload_words;
}

const Writer::Object& Writer::object(uint32_t number) const
{
    if (number >= objects_.size()) throw std::invalid_argument("a selected object does not belong to its event");
    return objects_[number];
}

// Sort the objects by descending class id; `place_` becomes their number in the bank.
void Writer::number_objects()
{
    std::sort(classes_.begin(), classes_.end(), std::greater<>());
    const std::vector<uint32_t> met = included_;
    included_.clear();
    ends_.clear();
    for (const uint32_t class_id : classes_) {
        for (const uint32_t object : met)
            if (objects_[object].class_id == class_id) {
                place_[object] = static_cast<uint32_t>(n_written_ + included_.size());
                included_.push_back(object);
            }
        ends_.push_back(static_cast<uint32_t>(n_written_ + included_.size()));
    }
}

void Writer::append_dec_reports(const Event& event, std::vector<uint32_t>& out)
{
    const std::size_t at = append_header(dec_reports_.size(), dec_reports, 3, out);
    uint32_t* words = out.data() + at;
    std::copy(dec_reports_.begin(), dec_reports_.end(), words);
    uint32_t* lines = words + 3;
    if (!(event.flags & format_.not_run))
        for (uint32_t line = 0; line < format_.n_lines; ++line) lines[line] |= run_stage << 8;
    // A line that decides on whole events has the event as its only candidate.
    for (const Selection& selection : selections_)
        lines[selection.line] |= 1 | std::clamp(selection.n_candidates, 1u, max_candidates) << 4;
}

void Writer::append_sel_reports(std::vector<uint32_t>& out)
{
    const std::size_t at = append_header(size_.words(), sel_reports, 12, out);
    uint32_t* words = out.data() + at;
    const std::array<std::pair<SubBank, std::size_t>, 5> sub_banks{{{objtyp, size_.objtyp()},
                                                                    {substr, size_.substr()},
                                                                    {extra_info, size_.extra_info()},
                                                                    {std_info, size_.std_info()},
                                                                    {hits, size_.hits()}}};
    words[0] = static_cast<uint32_t>(size_.words());
    words[1] = sub_banks.size();
    std::array<uint32_t*, 5> places;  // by SubBank
    std::size_t end = sel_header_words;
    for (std::size_t i = 0; i < sub_banks.size(); ++i) {
        const auto [id, size] = sub_banks[i];
        places[id] = words + end;
        end += size;
        words[1] |= id << 3 * (i + 1);
        words[2 + i] = static_cast<uint32_t>(end);
    }

    uint32_t* types = places[objtyp];
    *types++ = count_and_size(size_.classes, size_.objtyp());
    if (n_written_) *types++ = static_cast<uint32_t>(n_written_) | selection_class << 16;
    for (std::size_t i = 0; i < classes_.size(); ++i) *types++ = ends_[i] | classes_[i] << 16;

    places[substr][0] = count_and_size(size_.objects, size_.substr());
    places[extra_info][0] = count_and_size(size_.objects, size_.extra_info());
    places[std_info][0] = count_and_size(size_.objects, size_.std_info());
    Packed<16> structure(places[substr] + 1), sequence_ends(places[hits]);
    Packed<8> info_sizes(places[std_info] + 1);
    uint32_t* info_values = places[std_info] + size_.extra_info();
    for (std::size_t i = 0; i < n_written_; ++i) {
        const Selection& selection = selections_[i];
        structure.put(static_cast<uint32_t>(selection.n_pointers << 1));
        for (std::size_t k = 0; k < selection.n_pointers; ++k)
            structure.put(place_[pointers_[selection.first_pointer + k]]);
        info_sizes.put(1);
        *info_values++ = float_bits(static_cast<float>(selection.line + 1));
    }
    sequence_ends.put(static_cast<uint32_t>(size_.sequences));
    std::size_t ids_end = 1 + size_.sequences / 2;
    uint32_t n_sequences = 0;
    for (const uint32_t number : included_) {
        const Range ids = objects_[number].ids, parts = objects_[number].parts, info = objects_[number].info;
        if (ids.n) {
            structure.put(1 << 1 | 1);
            structure.put(n_sequences++);
            std::copy(ids.data, ids.data + ids.n, places[hits] + ids_end);
            ids_end += ids.n;
            sequence_ends.put(static_cast<uint32_t>(ids_end));
        } else {
            structure.put(parts.n << 1);
            for (uint32_t k = 0; k < parts.n; ++k) structure.put(place_[parts.data[k]]);
        }
        info_sizes.put(info.n);
        info_values = std::copy(info.data, info.data + info.n, info_values);
    }
}

void Writer::append_lumi_summary(const Event& event, std::vector<uint32_t>& out)
{
    const std::size_t at = append_header(format_.lumi_words, lumi_summary, 2, out);
    const uint64_t crossings = event.odin.orbit * bunches_per_orbit + event.odin.bunch_id;
    const uint64_t t0 = event.odin.gps_time_us - crossings * 1000 / crossings_per_ms;
    const std::array<uint32_t, first_count> known{
        format_.lumi_key,
        static_cast<uint32_t>(t0),
        static_cast<uint32_t>(t0 >> 32),
        static_cast<uint32_t>(crossings),
        static_cast<uint32_t>(crossings >> 32),
        event.odin.crossing_type,
        event.flags & format_.cut ? 0u : 1u,
    };
    for (const LumiCounter& counter : format_.lumi_counters) {
        const uint32_t value =
            counter.source < first_count ? known[counter.source] : event.counts[counter.source - first_count];
        const uint32_t largest = static_cast<uint32_t>((uint64_t{1} << counter.bits) - 1);
        out[at + counter.offset / 32] |= std::min(value, largest) << counter.offset % 32;
    }
}

}  // namespace trigger_banks
