// Counters of each readout source.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

struct SourceCounters {
    uint64_t fragments = 0;  // with a readable header, including rejected fragments
    uint64_t bytes = 0;
    uint64_t missing = 0;                 // MEPs closed without the source
    uint64_t late = 0;                    // those among them that were closed by their deadline
    std::optional<int64_t> last_seen_ns;  // loop time (monotonic, ns) of the last fragment
    std::vector<uint64_t> error_banks;    // of each error type; empty before the first
};

// Only expected sources have an entry, so that hostile input cannot make the table grow.
class SourceTable {
  public:
    SourceTable() : at_(std::size_t{1} << 16, -1) {}

    // Creates an entry for each source; existing entries keep their counts.
    void expect(const std::vector<uint16_t>& sources);

    // Null for an unexpected source. The address of an entry does not change.
    SourceCounters* find(uint32_t source)
    {
        return source < at_.size() && at_[source] >= 0 ? &entries_[static_cast<std::size_t>(at_[source])] : nullptr;
    }

    void count(uint16_t source, std::size_t nbytes, int64_t now_ns)
    {
        if (SourceCounters* entry = find(source)) {
            ++entry->fragments;
            entry->bytes += nbytes;
            entry->last_seen_ns = now_ns;
        }
    }

    // Types of the banks that a readout board sends in place of data.
    void set_error_types(const std::vector<uint8_t>& types);

    // Counts the error banks among the n types of an accepted MFP.
    void count_error_banks(uint16_t source, const uint8_t* types, std::size_t n);

    const std::vector<uint16_t>& sources() const { return sources_; }

  private:
    std::vector<uint16_t> sources_;  // in the order of the entries
    std::deque<SourceCounters> entries_;
    std::vector<int32_t> at_;
    std::array<uint8_t, 256> error_number_{};  // of each type, from 1 on; 0: no error type
    std::size_t n_error_types_ = 0;
};

void add_source_table(nanobind::module_& module);
