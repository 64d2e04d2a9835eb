// The order in which threads take the events of a batch, or parts of events: those with the longest expected times
// first. Otherwise a long one could start when the other threads are already idle.
//
// The time of an event rises with its bytes, that of a part with the size that an algorithm has written for it. Those
// of at least twice the mean come first, in classes of a factor of two, the largest class first. All others keep their
// order, because the tables of neighbours share cache lines.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/generated/batch_types.h"

namespace hlt {

/// Tables of fragments and events, valid after the placement of fragments; all null if events keep their order.
struct event_tables {
    const event_row* events;
    const row_range* meps;  // [mep][n_subdetectors]
    const mfp_row* mfps;
    const fragment_row* fragments;
};

class EventOrder {
  public:
    explicit EventOrder(const event_tables& tables) : tables_(tables) {}

    /// Compute the order of the first n events of a batch.
    void make(uint32_t n)
    {
        order_.clear();
        if (tables_.events == nullptr || n < 2u) return;
        add_bytes(n);
        make_from(bytes_.data(), n);
    }

    /// Compute the order of n events or parts of these sizes.
    void make_from(const uint32_t* sizes, uint32_t n)
    {
        order_.clear();
        if (n < 2u) return;
        uint64_t sum = 0;
        for (uint32_t i = 0; i < n; ++i) sum += sizes[i];
        const uint64_t mean = sum / n + 1u;
        std::array<uint32_t, n_classes + 1u> first{};
        class_.resize(n);
        for (uint32_t i = 0; i < n; ++i) {
            class_[i] = class_of(sizes[i] / mean);
            ++first[class_[i] + 1u];
        }
        if (first[n_classes] == n) return;
        for (uint32_t k = 0; k < n_classes; ++k) first[k + 1u] += first[k];
        order_.resize(n);
        for (uint32_t i = 0; i < n; ++i) order_[first[class_[i]]++] = i;
    }

    /// The event or part at position i.
    uint32_t operator[](uint32_t i) const { return order_.empty() ? i : order_[i]; }

  private:
    static constexpr uint32_t n_classes = 6;  // the last class has the events below twice the mean
    static constexpr uint32_t looked_at =
        16;  // approximate number of sampled MFPs per sub-detector; their sizes are similar

    /// Class of a whole multiple of the mean: 32 and more, 16, 8, 4, 2, less.
    static uint8_t class_of(uint64_t multiple)
    {
        uint8_t found = n_classes - 1u;
        while (found > 0 && multiple >= 2u) {
            multiple /= 2u;
            --found;
        }
        return found;
    }

    /// Add the bytes of each event in some of its fragments.
    void add_bytes(uint32_t n)
    {
        bytes_.assign(n, 0);
        for (uint32_t begin = 0; begin < n;) {
            const event_row first = tables_.events[begin];
            uint32_t end = begin + 1u;
            while (end < n && tables_.events[end].mep == first.mep) ++end;
            for (uint32_t detector = 0; detector < n_subdetectors; ++detector) {
                const row_range rows = tables_.meps[std::size_t{first.mep} * n_subdetectors + detector];
                const uint32_t step = 1u + rows.count / looked_at;
                for (uint32_t at = 0; at < rows.count; at += step) {
                    const fragment_row* of_mfp =
                        tables_.fragments + tables_.mfps[rows.first + at].fragment_base + first.index;
                    for (uint32_t i = begin; i < end; ++i) bytes_[i] += of_mfp[i - begin].size;
                }
            }
            begin = end;
        }
    }

    event_tables tables_;
    std::vector<uint32_t> bytes_, order_;
    std::vector<uint8_t> class_;
};

}  // namespace hlt
