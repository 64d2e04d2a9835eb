// Windows of time of a time slice: merged where they overlap, cut into records, and the hits in them
// (docs/formats/time-windows.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "mep_banks.h"

namespace window_records {

// How a chain cuts time, and the record of a hit (processing/framework/streaming.py).
struct Layout {
    uint32_t sub_slice_ns = 0, margin_before = 0, margin_behind = 0;
    uint32_t hit_size = 0, time_offset = 0, time_bytes = 0;
    bool big_endian = false;
    uint32_t unit_numerator = 1, unit_denominator = 1;
    std::array<bool, 256> no_hits{};  // bank types that a source sends in place of hits
    // Time that is added to the hits of a source, by its id. A hit whose corrected time lies in the sub-slice before or
    // behind belongs to that one, and the records have corrected times.
    std::map<uint32_t, int64_t> clock_offsets_ns{};
    // Whether hits of eight bytes are copied in vectors, where the processor has those. Tests compare both.
    bool in_vectors = true;

    // Throws std::invalid_argument for a layout that cannot be used.
    void check() const;
};

// Bits of the status of a record.
enum Status : uint32_t {
    cut_off = 1,         // the window reaches beyond the margin of its slice: hits may be missing
    continued = 2,       // the record continues the window of the record before
    continues = 4,       // the window goes on in the next record
    source_missing = 8,  // a source has no fragments in the slice
    no_fragment = 16,    // a source has no hits for a sub-slice, but an error bank or none
    damaged = 32,        // a fragment is not whole records, or a hit lies outside of its sub-slice: these are left out
};

// A window, in ns since the start of the first sub-slice of its slice, margins included; the end is excluded.
struct Window {
    int64_t begin = 0, end = 0;
    uint32_t lines = 0;  // bits of the list of windows
    uint32_t n = 1;      // number of windows that it is merged of
    uint32_t first = 0;  // the first of them, in the order of their starts
    uint32_t status = 0;
};

// The windows of a slice of `n_events` sub-slices: empty ones are left out, those that reach beyond the slice are cut
// off, and those that overlap are merged. None begins before `earliest`, the start of the run. `order` has the numbers
// of the windows in the order of their starts.
std::vector<Window> merged(std::vector<Window> windows, const Layout& layout, std::size_t n_events, int64_t earliest,
                           std::vector<uint32_t>& order);

// Banks of a record. The memory stays for the next one, so bytes are written once and not set to 0 before.
class BankBytes {
  public:
    std::size_t size() const { return size_; }
    const uint8_t* data() const { return bytes_.data(); }
    void clear() { size_ = 0; }

    // Room for `n` further bytes, of any content, until the next call.
    uint8_t* room(std::size_t n)
    {
        if (size_ + n > bytes_.size()) bytes_.resize(2 * (size_ + n));
        return bytes_.data() + size_;
    }

    // The first `n` bytes of the room are a part of the record.
    void add(std::size_t n) { size_ += n; }

  private:
    std::vector<uint8_t> bytes_;
    std::size_t size_ = 0;
};

// A record without its header and trigger banks.
struct Record {
    Window window;
    uint32_t number = 0;  // in its slice
    uint32_t first_sub_slice = 0;
    std::vector<uint32_t> n_banks;  // of each sub-slice
    std::size_t n_all_banks = 0;
    BankBytes banks;
    uint64_t hits = 0;
};

// Reads the fragments of a slice, once from its start to its end.
class SliceHits {
  public:
    // Throws std::invalid_argument if an MFP is damaged, or differs from what the receiver accepted.
    SliceHits(const uint8_t* buffer, std::size_t buffer_size, const std::vector<PlacedMfp>& mfps, std::size_t n_events,
              const Layout& layout);

    // The records of the merged windows, in order; calls use(record) for each.
    template <typename Use>
    void read(const std::vector<Window>& windows, const Use& use)
    {
        Record record;
        for (const Window& window : windows) {
            const auto length = static_cast<int64_t>(layout_.sub_slice_ns);
            const auto last = static_cast<uint32_t>((window.end - 1) / length);
            begin(record, window, static_cast<uint32_t>(window.begin / length));
            for (uint32_t sub_slice = record.first_sub_slice; sub_slice <= last; ++sub_slice) {
                if (is_full(record)) {
                    const uint32_t number = record.number;
                    const int64_t border = sub_slice * length;
                    Window rest = window;
                    rest.begin = border;
                    rest.status |= continued;
                    record.window.end = border;
                    record.window.status |= continues;
                    use(record);
                    record.number = number + 1;
                    begin(record, rest, sub_slice);
                }
                (this->*append_)(record, window, sub_slice);
            }
            use(record);
            ++record.number;
        }
    }

    // Bytes of all fragments of the slice: most of what its records have, unless they overlap.
    std::size_t nbytes() const;

    uint64_t hits_outside = 0, bytes_left = 0;  // hits outside of their sub-slice; bytes that are no whole record

  private:
    struct Source {
        const uint8_t* mfp;
        uint64_t size;
        uint32_t mask;
        uint32_t event, at;  // a fragment, and its offset in the MFP
        uint16_t id;
        uint8_t version;
        int64_t offset_ns;  // of its clock
    };

    // Hits of a fragment that are taken, in units of their times as sent: those from `first` on and before `last`.
    // Those from `outside` on lie outside of their sub-slice, and so do those from `last` on and before `unfit`: their
    // field has too few bits for `later`, which is added to the times.
    struct Range {
        uint64_t first, last, unfit, outside;
        int64_t later;
    };

    static void begin(Record& record, const Window& window, uint32_t sub_slice);
    bool is_full(const Record& record) const;
    // Appends the hits of one sub-slice of all sources. Time reads and writes the field of the time; hits have `fixed`
    // bytes, or those of the layout if it is 0.
    template <typename Time, std::size_t fixed>
    void append(Record& record, const Window& window, uint32_t sub_slice);
    // Appends the hits of one sub-slice of a source with a clock offset, which may be in two fragments.
    template <typename Time, std::size_t fixed>
    void append_corrected(Record& record, Source& source, uint32_t sub_slice, int64_t from, int64_t to);
    template <typename Time, std::size_t fixed>
    void append_hits(Record& record, const Source& source, uint32_t at, uint32_t size, uint8_t type, const Range& range,
                     bool is_neighbour);
    // Copies the hits in a range, and adds the number of those outside of their sub-slice. Returns the end of the
    // copies; up to the size of all hits and `behind_copies` may be written.
    template <typename Time, std::size_t fixed>
    uint8_t* copy_hits(const uint8_t* hit, const uint8_t* end, Range range, uint8_t* to, uint64_t& n_outside) const;
    // The same for hits of eight bytes, eight in a vector; `later` is not added to their times.
    uint8_t* copy_vectors(const uint8_t* hit, const uint8_t* end, const Range& range, uint8_t* to,
                          uint64_t& n_outside) const;
    // The hits from `from` to `to` (ns since the start of a sub-slice) if `later_ns` is added to their times.
    Range range_of(int64_t from, int64_t to, int64_t later_ns) const;
    // The smallest time as sent that is not before `ns`, at most the end of a sub-slice.
    uint64_t ticks_from(int64_t ns) const;

    const Layout& layout_;
    std::size_t n_events_;
    std::vector<Source> sources_;
    std::size_t max_banks_of_sub_slice_ = 0;
    bool in_vectors_ = false;
    // Places of the bytes of the times of a vector of hits, as little-endian words; one with the highest bit gives 0.
    std::array<uint8_t, 64> time_places_{};
    void (SliceHits::*append_)(Record& record, const Window& window, uint32_t sub_slice) = nullptr;
};

// Append the bank that describes a record, header included.
void append_window_bank(const Record& record, const Layout& layout, uint32_t run, uint64_t slice, uint32_t n_events,
                        uint32_t flags, uint16_t source, std::vector<uint8_t>& out);

}  // namespace window_records
