#include "window_records.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "mfp.h"
#include "raw_bank.h"
#include "trigger_banks.h"

namespace window_records {

namespace {

// A record has at most this many sub-slices, so that their table fits into its bank, and as many banks as readers
// allow, less those of the trigger. Longer windows go on in a further record.
constexpr std::size_t max_sub_slices = 8192, max_banks = max_banks_of_event / 2, max_bytes = std::size_t{32} << 20;
constexpr uint8_t version = 1;

[[noreturn]] void throw_not_sound()
{
    throw std::invalid_argument("an MFP is damaged, or its sub-slices are not those of its slice");
}

}  // namespace

void Layout::check() const
{
    const bool has_time =
        (time_bytes == 2 || time_bytes == 4) && time_bytes <= hit_size && time_offset <= hit_size - time_bytes;
    if (sub_slice_ns == 0 || sub_slice_ns > INT32_MAX || hit_size == 0 || hit_size > max_bank_size - bank_header_size ||
        !has_time || unit_numerator == 0 || unit_denominator == 0 || margin_before > 0xFFFF || margin_behind > 0xFFFF)
        throw std::invalid_argument("the layout of hits and sub-slices is invalid");
    const auto in_ticks = [&](int64_t ns) { return ns * unit_denominator % unit_numerator == 0; };
    for (const auto& [source, offset] : clock_offsets_ns)
        if (source > UINT16_MAX || offset <= -int64_t{sub_slice_ns} || offset >= int64_t{sub_slice_ns} ||
            !in_ticks(offset) || !in_ticks(sub_slice_ns))
            throw std::invalid_argument("a clock offset is not shorter than a sub-slice, or no whole number of units");
}

std::vector<Window> merged(std::vector<Window> windows, const Layout& layout, std::size_t n_events, int64_t earliest,
                           std::vector<uint32_t>& order)
{
    order.resize(windows.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return windows[a].begin < windows[b].begin; });
    const int64_t end_of_slice = static_cast<int64_t>(n_events) * layout.sub_slice_ns;
    std::vector<Window> found;
    std::vector<uint32_t> used;
    for (const uint32_t i : order) {
        Window window = windows[i];
        window.begin = std::max(window.begin, earliest);
        if (window.begin < 0 || window.end > end_of_slice) {
            window.begin = std::max<int64_t>(window.begin, 0);
            window.end = std::min(window.end, end_of_slice);
            window.status |= cut_off;
        }
        if (window.begin >= window.end) continue;
        window.first = static_cast<uint32_t>(used.size());
        used.push_back(i);
        if (!found.empty() && window.begin < found.back().end) {
            Window& before = found.back();
            before.end = std::max(before.end, window.end);
            before.lines |= window.lines;
            before.status |= window.status;
            ++before.n;
        } else {
            found.push_back(window);
        }
    }
    order = std::move(used);
    return found;
}

SliceHits::SliceHits(const uint8_t* buffer, std::size_t buffer_size, const std::vector<PlacedMfp>& mfps,
                     std::size_t n_events, const Layout& layout)
    : layout_(layout), n_events_(n_events)
{
    for (const auto& [source, offset, size] : mfps) {
        if (offset > buffer_size || size > buffer_size - offset) throw_not_sound();
        const uint8_t* mfp = buffer + offset;
        if (*refusal_of_mfp_head(mfp, size) || u16_at(mfp + 2) != n_events) throw_not_sound();
        const auto offset_of = layout.clock_offsets_ns.find(static_cast<uint32_t>(source));
        const int64_t offset_ns = offset_of == layout.clock_offsets_ns.end() ? 0 : offset_of->second;
        sources_.push_back({mfp, size, (1u << mfp[18]) - 1, 0, static_cast<uint32_t>(mfp_data_at(n_events)),
                            static_cast<uint16_t>(source), mfp[19], offset_ns});
        max_banks_of_sub_slice_ += offset_ns == 0 ? 1 : 2;
    }
    std::stable_sort(sources_.begin(), sources_.end(), [](const Source& a, const Source& b) { return a.id < b.id; });
}

void SliceHits::begin(Record& record, const Window& window, uint32_t sub_slice)
{
    record.window = window;
    record.first_sub_slice = sub_slice;
    record.n_banks.clear();
    record.n_all_banks = 0;
    record.banks.clear();
    record.hits = 0;
}

bool SliceHits::is_full(const Record& record) const
{
    return !record.n_banks.empty() &&
           (record.n_banks.size() >= max_sub_slices || record.n_all_banks + max_banks_of_sub_slice_ > max_banks ||
            record.banks.size() >= max_bytes);
}

void SliceHits::append(Record& record, const Window& window, uint32_t sub_slice)
{
    const int64_t start = static_cast<int64_t>(sub_slice) * layout_.sub_slice_ns;
    const int64_t from = std::max<int64_t>(window.begin - start, 0);
    const int64_t to = std::min<int64_t>(window.end - start, layout_.sub_slice_ns);
    record.n_banks.push_back(0);
    for (Source& source : sources_) {
        if (source.offset_ns != 0) {
            append_corrected(record, source, sub_slice, from, to);
            continue;
        }
        const uint8_t* sizes = source.mfp + mfp_sizes_at(n_events_);
        source.at += padded_sum(sizes, source.event, sub_slice, source.mask);
        source.event = sub_slice;
        const uint32_t size = u16_at(sizes + 2 * std::size_t{sub_slice});
        if (uint64_t{source.at} + size > source.size) throw_not_sound();
        append_hits(record, source, source.at, size, source.mfp[mfp_header_size + sub_slice], from, to, 0, false);
    }
}

void SliceHits::append_corrected(Record& record, Source& source, uint32_t sub_slice, int64_t from, int64_t to)
{
    const uint8_t* const sizes = source.mfp + mfp_sizes_at(n_events_);
    const auto n = static_cast<uint32_t>(n_events_);
    // A late clock gives hits of the sub-slice before to this one, an early clock those of the one behind.
    const bool is_late = source.offset_ns > 0;
    const uint32_t first = is_late && sub_slice != 0 ? sub_slice - 1 : sub_slice;
    const uint32_t last = !is_late && sub_slice + 1 < n ? sub_slice + 1 : sub_slice;
    // The cursor stays at the first one: the next sub-slice needs it, too.
    source.at += padded_sum(sizes, source.event, first, source.mask);
    source.event = first;
    uint32_t at = source.at;
    for (uint32_t i = first; i <= last; ++i) {
        const uint32_t size = u16_at(sizes + 2 * std::size_t{i});
        if (uint64_t{at} + size > source.size) throw_not_sound();
        const int64_t later = (static_cast<int64_t>(i) - sub_slice) * layout_.sub_slice_ns + source.offset_ns;
        append_hits(record, source, at, size, source.mfp[mfp_header_size + i], from, to, later, i != sub_slice);
        at += padded_sum(sizes, i, i + 1, source.mask);
    }
}

void SliceHits::append_hits(Record& record, const Source& source, uint32_t at, uint32_t size, uint8_t type,
                            int64_t from, int64_t to, int64_t later_ns, bool is_neighbour)
{
    if (type == no_bank || layout_.no_hits[type] || trigger_banks::is_trigger_bank(type)) {
        record.window.status |= no_fragment;
        return;
    }
    const std::size_t hit_size = layout_.hit_size, header = record.banks.size();
    const uint8_t* const data = source.mfp + at;
    const bool is_in_ns = layout_.unit_numerator == 1 && layout_.unit_denominator == 1;
    const int64_t later_ticks = later_ns * layout_.unit_denominator / layout_.unit_numerator;
    const uint8_t* const end = data + size / hit_size * hit_size;
    if (const uint32_t rest = size % layout_.hit_size; rest) {
        record.window.status |= damaged;
        if (!is_neighbour) bytes_left += rest;
    }
    for (const uint8_t* hit = data; hit < end; hit += hit_size) {
        const uint64_t ticks = ticks_of(hit);
        const uint64_t sent = is_in_ns ? ticks : ticks * layout_.unit_numerator / layout_.unit_denominator;
        const int64_t time = static_cast<int64_t>(sent) + later_ns;
        bool is_outside = sent >= layout_.sub_slice_ns;
        if (!is_outside && time >= from && time < to) {
            if (record.banks.size() == header) record.banks.resize(header + bank_header_size);
            record.banks.insert(record.banks.end(), hit, hit + hit_size);
            uint8_t* const copied = record.banks.data() + record.banks.size() - hit_size;
            if (later_ticks != 0 && !put_ticks(copied, ticks + static_cast<uint64_t>(later_ticks))) {
                record.banks.resize(record.banks.size() - hit_size);
                is_outside = true;
            }
        }
        if (is_outside && !is_neighbour) {
            record.window.status |= damaged;
            ++hits_outside;
        }
    }
    if (record.banks.size() == header + bank_header_size) record.banks.resize(header);
    if (record.banks.size() == header) return;
    const std::size_t length = record.banks.size() - header;
    put_bank_header(record.banks.data() + header, length, type, source.version, source.id);
    record.banks.resize(header + padded_to_4(length));
    record.hits += (length - bank_header_size) / hit_size;
    ++record.n_banks.back();
    ++record.n_all_banks;
}

uint64_t SliceHits::ticks_of(const uint8_t* hit) const
{
    const uint8_t* at = hit + layout_.time_offset;
    uint64_t ticks = 0;
    for (uint32_t i = 0; i < layout_.time_bytes; ++i)
        ticks |= uint64_t{at[i]} << 8 * (layout_.big_endian ? layout_.time_bytes - 1 - i : i);
    return ticks;
}

bool SliceHits::put_ticks(uint8_t* hit, uint64_t ticks) const
{
    if (ticks >> 8 * layout_.time_bytes != 0) return false;
    uint8_t* const at = hit + layout_.time_offset;
    for (uint32_t i = 0; i < layout_.time_bytes; ++i)
        at[i] = static_cast<uint8_t>(ticks >> 8 * (layout_.big_endian ? layout_.time_bytes - 1 - i : i));
    return true;
}

void append_window_bank(const Record& record, const Layout& layout, uint32_t run, uint64_t slice, uint32_t n_events,
                        uint32_t flags, uint16_t source, std::vector<uint8_t>& out)
{
    const uint64_t core = n_events - layout.margin_before - layout.margin_behind;
    const uint64_t length = layout.sub_slice_ns, start = slice * core * length;
    // Times in the margin before the first slice of a run are negative.
    const uint64_t origin = start - layout.margin_before * length;
    std::vector<uint32_t> words = {run, record.number};
    const auto put = [&](uint64_t value) {
        words.push_back(static_cast<uint32_t>(value));
        words.push_back(static_cast<uint32_t>(value >> 32));
    };
    put(slice);
    put(origin + static_cast<uint64_t>(record.window.begin));
    put(origin + static_cast<uint64_t>(record.window.end));
    put(start);
    put(start + core * length);
    put(origin + record.first_sub_slice * length);
    for (const uint32_t word :
         {record.window.lines, record.window.n, record.window.status, flags, layout.sub_slice_ns, layout.hit_size,
          layout.time_offset, layout.time_bytes | (layout.big_endian ? 1u << 8 : 0u), layout.unit_numerator,
          layout.unit_denominator, static_cast<uint32_t>(record.n_banks.size())})
        words.push_back(word);
    words.insert(words.end(), record.n_banks.begin(), record.n_banks.end());
    const std::size_t at = out.size(), payload = 4 * words.size();
    out.resize(at + bank_header_size + payload);
    put_bank_header(out.data() + at, bank_header_size + payload, trigger_banks::time_window, version, source);
    for (std::size_t i = 0; i < words.size(); ++i) put_u32(out.data() + at + bank_header_size + 4 * i, words[i]);
}

}  // namespace window_records
