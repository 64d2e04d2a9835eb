#include "window_records.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "mfp.h"
#include "raw_bank.h"
#include "small_copy.h"
#include "trigger_banks.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace window_records {

namespace {

// A record has at most this many sub-slices, so that their table fits into its bank, and as many banks as readers
// allow, less those of the trigger. Longer windows go on in a further record.
constexpr std::size_t max_sub_slices = 8192, max_banks = max_banks_of_event / 2, max_bytes = std::size_t{32} << 20;
constexpr uint8_t version = 1;
constexpr std::size_t fixed_words = 25;  // of the bank that describes a record: all but the table of its sub-slices

// Bytes that are written behind the copies of hits.
constexpr std::size_t behind_copies = 64;

// Bytes of a vector that are moved among themselves.
constexpr std::size_t lane_bytes = 16;

// Bytes of a hit that is copied in vectors, or one by one without a branch.
constexpr std::size_t usual_hit = 8;

bool has_vectors()
{
#if defined(__x86_64__)
    static const bool found = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("popcnt");
    return found;
#else
    return false;
#endif
}

// The field of the time of a hit.
template <std::size_t bytes, bool big_endian>
struct Time {
    static uint64_t read(const uint8_t* at)
    {
        if constexpr (bytes == 4)
            return big_endian ? __builtin_bswap32(u32_at(at)) : u32_at(at);
        else
            return big_endian ? __builtin_bswap16(u16_at(at)) : u16_at(at);
    }
    static void put(uint8_t* at, uint64_t ticks)
    {
        for (std::size_t i = 0; i < bytes; ++i)
            at[i] = static_cast<uint8_t>(ticks >> 8 * (big_endian ? bytes - 1 - i : i));
    }
};

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
    // The windows of a chain with one padding are in order.
    if (!std::is_sorted(windows.begin(), windows.end(),
                        [](const Window& a, const Window& b) { return a.begin < b.begin; }))
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
    const auto choose = [&](auto time) {
        using Time = decltype(time);
        append_ = layout.hit_size == usual_hit ? &SliceHits::append<Time, usual_hit> : &SliceHits::append<Time, 0>;
    };
    if (layout.time_bytes == 4)
        layout.big_endian ? choose(Time<4, true>{}) : choose(Time<4, false>{});
    else
        layout.big_endian ? choose(Time<2, true>{}) : choose(Time<2, false>{});
    in_vectors_ = layout.in_vectors && layout.hit_size == usual_hit && has_vectors();
    if (!in_vectors_) return;
    constexpr uint8_t none = 0x80;
    for (std::size_t at = 0; at < time_places_.size(); ++at) {
        const std::size_t byte = at % usual_hit, of_hit = at % lane_bytes - byte;
        const std::size_t place = layout.time_offset + (layout.big_endian ? layout.time_bytes - 1 - byte : byte);
        time_places_[at] = byte < layout.time_bytes ? static_cast<uint8_t>(of_hit + place) : none;
    }
}

std::size_t SliceHits::nbytes() const
{
    std::size_t sum = 0;
    for (const Source& source : sources_) sum += source.size;
    return sum;
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

template <typename Time, std::size_t fixed>
void SliceHits::append(Record& record, const Window& window, uint32_t sub_slice)
{
    const int64_t start = static_cast<int64_t>(sub_slice) * layout_.sub_slice_ns;
    const int64_t from = std::max<int64_t>(window.begin - start, 0);
    const int64_t to = std::min<int64_t>(window.end - start, layout_.sub_slice_ns);
    const Range range = range_of(from, to, 0);
    record.n_banks.push_back(0);
    for (Source& source : sources_) {
        if (source.offset_ns != 0) {
            append_corrected<Time, fixed>(record, source, sub_slice, from, to);
            continue;
        }
        const uint8_t* sizes = source.mfp + mfp_sizes_at(n_events_);
        source.at += padded_sum(sizes, source.event, sub_slice, source.mask);
        source.event = sub_slice;
        const uint32_t size = u16_at(sizes + 2 * std::size_t{sub_slice});
        if (uint64_t{source.at} + size > source.size) throw_not_sound();
        append_hits<Time, fixed>(record, source, source.at, size, source.mfp[mfp_header_size + sub_slice], range,
                                 false);
    }
}

template <typename Time, std::size_t fixed>
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
        append_hits<Time, fixed>(record, source, at, size, source.mfp[mfp_header_size + i], range_of(from, to, later),
                                 i != sub_slice);
        at += padded_sum(sizes, i, i + 1, source.mask);
    }
}

template <typename Time, std::size_t fixed>
void SliceHits::append_hits(Record& record, const Source& source, uint32_t at, uint32_t size, uint8_t type,
                            const Range& range, bool is_neighbour)
{
    if (type == no_bank || layout_.no_hits[type] || trigger_banks::is_trigger_bank(type)) {
        record.window.status |= no_fragment;
        return;
    }
    const uint32_t hit_size = fixed ? static_cast<uint32_t>(fixed) : layout_.hit_size;
    const uint32_t rest = size % hit_size;
    if (rest) {
        record.window.status |= damaged;
        if (!is_neighbour) bytes_left += rest;
    }
    uint8_t* const bank = record.banks.room(bank_header_size + padded_to_4(size) + behind_copies);
    const uint8_t* const hits = source.mfp + at;
    uint8_t* const payload = bank + bank_header_size;
    uint64_t n_outside = 0;
    const uint8_t* const copied = copy_hits<Time, fixed>(hits, hits + (size - rest), range, payload, n_outside);
    if (n_outside && !is_neighbour) {
        record.window.status |= damaged;
        hits_outside += n_outside;
    }
    const auto copied_bytes = static_cast<std::size_t>(copied - payload), padded = padded_to_4(copied_bytes);
    put_bank_header(bank, bank_header_size + copied_bytes, type, source.version, source.id);
    for (std::size_t i = copied_bytes; i < padded; ++i) payload[i] = 0;
    // Without a branch: about as many sources have hits in a window as have none.
    const uint32_t has_hits = copied_bytes != 0;
    record.banks.add(has_hits ? bank_header_size + padded : 0);
    record.hits += copied_bytes / hit_size;
    record.n_banks.back() += has_hits;
    record.n_all_banks += has_hits;
}

template <typename Time, std::size_t fixed>
uint8_t* SliceHits::copy_hits(const uint8_t* hit, const uint8_t* end, const Range range, uint8_t* to,
                              uint64_t& n_outside) const
{
    const std::size_t hit_size = fixed ? fixed : layout_.hit_size, time_offset = layout_.time_offset;
    const uint64_t length = range.last - range.first, n_unfit = range.unfit - range.last;
    uint64_t n = 0;
    uint8_t* const copies = to;
    if (fixed == usual_hit && in_vectors_) {
        to = copy_vectors(hit, end, range, to, n);
    } else if constexpr (fixed != 0) {
        // Hits of a window come one by one where a source sorts by its channels. Each is copied, and stays if it is in
        // the window: a branch for each would often be mispredicted, which takes longer.
        for (; hit < end; hit += fixed) {
            const uint64_t ticks = Time::read(hit + time_offset);
            std::memcpy(to, hit, fixed);
            to += ticks - range.first < length ? fixed : 0;
            n += (ticks >= range.outside) | (ticks - range.last < n_unfit);
        }
    } else {
        // A source that sends its hits in the order of time has those of a window together.
        while (hit < end) {
            const uint8_t* const first = hit;
            while (hit < end && Time::read(hit + time_offset) - range.first < length) hit += hit_size;
            const auto size = static_cast<std::size_t>(hit - first);
            copy_small(to, first, size);
            to += size;
            for (; hit < end; hit += hit_size) {
                const uint64_t ticks = Time::read(hit + time_offset);
                if (ticks - range.first < length) break;
                n += ticks >= range.outside || ticks - range.last < n_unfit;
            }
        }
    }
    n_outside += n;
    if (range.later != 0)
        for (uint8_t* at = copies + time_offset; at < to; at += hit_size)
            Time::put(at, Time::read(at) + static_cast<uint64_t>(range.later));
    return to;
}

#if defined(__x86_64__)
__attribute__((target("avx512bw,popcnt")))
#endif
uint8_t* SliceHits::copy_vectors([[maybe_unused]] const uint8_t* hit, [[maybe_unused]] const uint8_t* end,
                                 [[maybe_unused]] const Range& range, uint8_t* to,
                                 [[maybe_unused]] uint64_t& n_outside) const
{
#if defined(__x86_64__)
    const __m512i of_times = _mm512_loadu_si512(time_places_.data());
    const __m512i first = _mm512_set1_epi64(static_cast<int64_t>(range.first)),
                  last = _mm512_set1_epi64(static_cast<int64_t>(range.last)),
                  length = _mm512_set1_epi64(static_cast<int64_t>(range.last - range.first)),
                  n_unfit = _mm512_set1_epi64(static_cast<int64_t>(range.unfit - range.last)),
                  outside = _mm512_set1_epi64(static_cast<int64_t>(range.outside));
    constexpr std::ptrdiff_t at_once = sizeof(__m512i) / usual_hit;
    // The last vector may have a single hit, behind copies of all others.
    static_assert(behind_copies >= sizeof(__m512i) - usual_hit);
    for (; hit < end; hit += sizeof(__m512i)) {
        const auto n = std::min<std::ptrdiff_t>((end - hit) / static_cast<std::ptrdiff_t>(usual_hit), at_once);
        const auto present = static_cast<__mmask8>((1u << n) - 1u);
        const __m512i hits = _mm512_maskz_loadu_epi64(present, hit), ticks = _mm512_shuffle_epi8(hits, of_times);
        const __mmask8 inside = _mm512_mask_cmplt_epu64_mask(present, _mm512_sub_epi64(ticks, first), length);
        const unsigned lost = _mm512_mask_cmpge_epu64_mask(present, ticks, outside) |
                              _mm512_mask_cmplt_epu64_mask(present, _mm512_sub_epi64(ticks, last), n_unfit);
        // A compressing store to memory takes much longer on some processors.
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi64(inside, hits));
        to += usual_hit * static_cast<std::size_t>(__builtin_popcount(inside));
        n_outside += static_cast<uint64_t>(__builtin_popcount(lost));
    }
#endif
    return to;
}

SliceHits::Range SliceHits::range_of(int64_t from, int64_t to, int64_t later_ns) const
{
    const int64_t later = later_ns * layout_.unit_denominator / layout_.unit_numerator;
    const uint64_t first = ticks_from(from - later_ns), last = ticks_from(to - later_ns);
    Range range{first, last, last, ticks_from(layout_.sub_slice_ns), later};
    if (later != 0) {
        const auto fitting =
            static_cast<uint64_t>(std::max<int64_t>((int64_t{1} << 8 * layout_.time_bytes) - later, 0));
        range.last = std::max(first, std::min(last, fitting));
    }
    return range;
}

uint64_t SliceHits::ticks_from(int64_t ns) const
{
    const auto in_sub_slice = static_cast<uint64_t>(std::clamp<int64_t>(ns, 0, layout_.sub_slice_ns));
    // Less than 2^63, and another 2^32.
    return (in_sub_slice * layout_.unit_denominator + layout_.unit_numerator - 1) / layout_.unit_numerator;
}

void append_window_bank(const Record& record, const Layout& layout, uint32_t run, uint64_t slice, uint32_t n_events,
                        uint32_t flags, uint16_t source, std::vector<uint8_t>& out)
{
    const uint64_t core = n_events - layout.margin_before - layout.margin_behind;
    const uint64_t length = layout.sub_slice_ns, start = slice * core * length;
    // Times in the margin before the first slice of a run are negative.
    const uint64_t origin = start - layout.margin_before * length;
    const std::size_t at = out.size(), payload = 4 * (fixed_words + record.n_banks.size());
    out.resize(at + bank_header_size + payload);
    put_bank_header(out.data() + at, bank_header_size + payload, trigger_banks::time_window, version, source);
    uint8_t* to = out.data() + at + bank_header_size;
    const auto put = [&](uint32_t word) {
        put_u32(to, word);
        to += 4;
    };
    put(run);
    put(record.number);
    for (const uint64_t time :
         {slice, origin + static_cast<uint64_t>(record.window.begin), origin + static_cast<uint64_t>(record.window.end),
          start, start + core * length, origin + record.first_sub_slice * length}) {
        put_u64(to, time);
        to += 8;
    }
    for (const uint32_t word :
         {record.window.lines, record.window.n, record.window.status, flags, layout.sub_slice_ns, layout.hit_size,
          layout.time_offset, layout.time_bytes | (layout.big_endian ? 1u << 8 : 0u), layout.unit_numerator,
          layout.unit_denominator, static_cast<uint32_t>(record.n_banks.size())})
        put(word);
    for (const uint32_t n : record.n_banks) put(n);
}

}  // namespace window_records
