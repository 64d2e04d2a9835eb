// SparseCCL on the CPU: super-pixels in order of column and row, each compared with the few before it that it can touch
// (A. Hennequin, thesis, 4.6, algorithms 24 to 28).
//
// Bank by bank, isolated super-pixels give their clusters by a table of patterns. The others are sorted, unless the
// readout has sorted them, words of one position are merged, and patterns of two components become two entries. An
// entry joins the trees of the entries that it touches: those of the column to the west, found by a pointer that only
// moves forward, and those of the super-pixel to the south. A parent comes before its children, so one more pass
// numbers the clusters and sums their pixels. The last step computes the hits as the common kernel does. A sensor in
// two banks, and events that could fill a stretch of the table of the common kernel, are passed to the common kernel.
#pragma once

#include "lhcb/velo/decoding/sensor_hits_cpu.h"
#include "lhcb/velo/decoding/sparse_ccl.cuh"
#include "lhcb/velo/decoding/stretch_counts_cpu.h"
#include "lhcb/velo/decoding/super_pixel_banks_cpu.h"

namespace hlt {

/// What a pattern is made of, for each of the 256.
struct pattern_tables {
    uint8_t touches[256];                   // touches_east, by the eastern column of a above the western column of b
    uint8_t n[256], column[256], row[256];  // pixels, and the sums of their places in the super-pixel

    constexpr pattern_tables() : touches{}, n{}, column{}, row{}
    {
        for (uint32_t pattern = 0; pattern < 256u; ++pattern) {
            touches[pattern] = touches_east(pattern & 0xf0u, pattern & 0x0fu);
            for (uint32_t bit = 0; bit < 8u; ++bit) {
                if ((pattern >> bit & 1u) == 0u) continue;
                n[pattern] = static_cast<uint8_t>(n[pattern] + 1u);
                column[pattern] = static_cast<uint8_t>(column[pattern] + bit / 4u);
                row[pattern] = static_cast<uint8_t>(row[pattern] + bit % 4u);
            }
        }
    }
};
constexpr pattern_tables of_patterns;

/// Labels the super-pixels of a usual event.
class event_labelling {
  public:
    event_labelling(const velo_sparse_ccl_parameters& p, uint32_t event)
        : p_(p), counts_(4u * p.velo_clusters.super_pixel_bound[event])
    {
    }

    /// Read a bank. Returns false if the common kernel must process the event.
    bool take(const velo_bank& bank, const uint8_t*)
    {
        const uint32_t n = bank.count_words(is_broken_);
        if (n == 0u) return true;
        const bool pairs = bank.version >= velo_version_sensor_pairs;
        for (uint32_t sensor = bank.sensor; sensor < bank.sensor + (pairs ? 2u : 1u); ++sensor) {
            if ((seen_[sensor / 64u] >> sensor % 64u & 1u) != 0u) return false;
            seen_[sensor / 64u] |= 1ull << sensor % 64u;
        }
        if (n_words_ + n > most_words) return false;
        n_words_ += n;
        const uint32_t begin = n_others_;
        sort_out(bank.words(p_.raw_banks), n, pairs);
        if (!is_sorted(others_ + begin, n_others_ - begin)) sort(others_ + begin, n_others_ - begin);
        const uint32_t n_entries = list_entries(others_ + begin, n_others_ - begin);
        unite_entries(n_entries);
        sum_entries(n_entries);
        return true;
    }

    bool is_broken() const { return is_broken_; }

    /// The clusters of each bank are known when it has been read. Returns false if the common kernel could flag the
    /// event.
    bool find_clusters()
    {
        for (uint32_t i = 0; i < n_others_; i += n_wide) {
            uint_wide word;
            load_wide(word, others_ + i);
            counts_.add({word}, min_of(n_others_ - i, n_wide));
        }
        return !counts_.may_be_full();
    }

    /// Write the hits from place `first` on. Returns the place behind the last hit.
    uint32_t store_hits(uint32_t first) const
    {
        for (uint32_t i = 0; i < n_clusters_; ++i) store_cluster(p_, first + i, sensors_[i], clusters_[i]);
        const decoded_hits out{p_.velo_unsorted.x,   p_.velo_unsorted.y,  p_.velo_unsorted.z,
                               p_.velo_unsorted.phi, p_.velo_unsorted.id, p_.velo_unsorted.module_pair};
        out.find_phi(first, first + n_clusters_);
        return first + n_clusters_;
    }

  private:
    using listed = listed_super_pixel<uint32_t>;
    static constexpr uint32_t most_words = 1u << 14;  // of an event; the common kernel processes denser ones

    /// List the words of a bank that are not isolated, and store the clusters of those that are.
    void sort_out(const velo_words& words, uint32_t n, bool pairs)
    {
        for (uint32_t i = 0; i < n; ++i) {
            const super_pixel pixels{words.word(p_.raw_banks, i)};
            if (!pixels.is_valid()) is_broken_ = true;
            if (!pixels.is_valid() || pixels.pattern() == 0u) continue;
            const uint32_t sensor = words.sensor + (pairs ? pixels.second_sensor() : 0u);
            if (!pixels.is_isolated()) {
                others_[n_others_++] = (pixels.word & 0x7fffffu) | sensor << 23;
                continue;
            }
            const uint32_t second = second_cluster(pixels.pattern());
            append(sensor);
            add_pixels(n_clusters_ - 1u, pixels.pattern() & ~second, pixels.column(), pixels.row());
            if (second == 0u) continue;
            append(sensor);
            add_pixels(n_clusters_ - 1u, second, pixels.column(), pixels.row());
        }
    }

    static bool is_sorted(const uint32_t* words, uint32_t n)
    {
        uint32_t i = 1;
        while (i < n && words[i - 1u] >> 8 <= words[i] >> 8) ++i;
        return i >= n;
    }

    /// Sort by sensor of the pair, column and row: bits 8 to 23. Two counting sorts, the lower byte first.
    void sort(uint32_t* words, uint32_t n)
    {
        for (uint32_t shift = 8; shift <= 16u; shift += 8u) {
            uint32_t places[256] = {};
            for (uint32_t i = 0; i < n; ++i) ++places[words[i] >> shift & 0xffu];
            uint32_t place = 0;
            for (uint32_t& of_byte : places) {
                const uint32_t here = of_byte;
                of_byte = place;
                place += here;
            }
            for (uint32_t i = 0; i < n; ++i) sorted_[places[words[i] >> shift & 0xffu]++] = words[i];
            std::memcpy(words, sorted_, n * sizeof *words);
        }
    }

    /// List the components of sorted super-pixels. Returns their number.
    uint32_t list_entries(const uint32_t* words, uint32_t n)
    {
        uint32_t n_entries = 0;
        for (uint32_t i = 0; i < n;) {
            const listed pixels{words[i]};
            uint32_t pattern = 0;
            for (; i < n && words[i] >> 8 == pixels.word >> 8; ++i) pattern |= words[i] & 0xffu;
            const uint32_t second = second_cluster(pattern);
            for (const uint32_t component : {pattern & ~second, second}) {
                if (component == 0u) continue;
                entries_[n_entries] = {pixels.word >> 8, place_of(pixels), component};
                ++n_entries;
            }
        }
        return n_entries;
    }

    /// The order of super-pixels as a number, with an empty place behind each column and two empty columns before the
    /// first one: a step of `stride` leads to the column to the east.
    static constexpr uint32_t stride = 2u * n_super_pixel_rows;
    static uint32_t place_of(const listed& pixels) { return ((pixels.word >> 14) + 2u) * stride + pixels.row(); }

    /// Join each entry with the entries before it that it touches.
    void unite_entries(uint32_t n)
    {
        uint32_t near = 0;  // the first entry that this entry or a later one may touch
        for (uint32_t i = 0; i < n; ++i) {
            const entry& own = entries_[i];
            trees_[i] = i;
            uint32_t root = i;
            while (entries_[near].place < own.place - stride - 1u) ++near;
            for (uint32_t j = near; entries_[j].place <= own.place - stride + 1u; ++j)
                if (touches(entries_[j], own)) root = unite(root, find_root(j));
            for (uint32_t j = i; j > 0u && entries_[j - 1u].place + 1u >= own.place; --j)
                if (touches(entries_[j - 1u], own)) root = unite(root, find_root(j - 1u));
        }
    }

    struct entry {
        uint32_t key;  // sensor, column, row, as in the word
        uint32_t place;
        uint32_t pattern;
    };

    /// True if an entry touches a later one.
    static bool touches(const entry& a, const entry& b)
    {
        switch (b.place - a.place) {
        case 1u: return touches_north(a.pattern, b.pattern);
        case stride - 1u: return touches_south_east(a.pattern, b.pattern);
        case stride: return of_patterns.touches[(a.pattern & 0xf0u) | (b.pattern & 0x0fu)] != 0u;
        case stride + 1u: return touches_north_east(a.pattern, b.pattern);
        default: return false;
        }
    }

    uint32_t find_root(uint32_t i) const
    {
        while (trees_[i] != i) i = trees_[i];
        return i;
    }

    /// Join two trees: the lower root is the root of both. Returns it.
    uint32_t unite(uint32_t a, uint32_t b)
    {
        const uint32_t low = min_of(a, b);
        trees_[max_of(a, b)] = low;
        return low;
    }

    /// Number the clusters of the entries and sum their pixels.
    void sum_entries(uint32_t n)
    {
        for (uint32_t i = 0; i < n; ++i) {
            const listed pixels{entries_[i].key << 8};
            if (trees_[i] == i) {
                append(pixels.sensor());
                labels_[i] = n_clusters_ - 1u;
            } else {
                labels_[i] = labels_[trees_[i]];
            }
            add_pixels(labels_[i], entries_[i].pattern, pixels.column(), pixels.row());
        }
    }

    void append(uint32_t sensor)
    {
        sensors_[n_clusters_] = sensor;
        clusters_[n_clusters_++] = {0, 0, 0};
    }

    void add_pixels(uint32_t cluster, uint32_t pattern, uint32_t column, uint32_t row)
    {
        const uint32_t n = of_patterns.n[pattern];
        cluster_sums& sums = clusters_[cluster];
        sums.n += static_cast<int32_t>(n);
        sums.column += static_cast<int32_t>(2u * column * n + of_patterns.column[pattern]);
        sums.row += static_cast<int32_t>(4u * row * n + of_patterns.row[pattern]);
    }

    const velo_sparse_ccl_parameters& p_;
    stretch_counts counts_;
    bool is_broken_ = false;
    uint64_t seen_[(n_velo_sensors + 63u) / 64u] = {};
    uint32_t n_words_ = 0, n_others_ = 0, n_clusters_ = 0;
    uint32_t others_[most_words + n_wide], sorted_[most_words];
    entry entries_[2u * most_words];
    uint32_t trees_[2u * most_words], labels_[2u * most_words];
    uint32_t sensors_[2u * most_words];
    cluster_sums clusters_[2u * most_words];
};

static_assert(sizeof(event_labelling) < 2u << 20, "it lies on the stack of a thread");

}  // namespace hlt

HLT_CPU_FORM(velo_sparse_ccl)
{
    if (!p.takes(event)) return;
    if (p.velo_clusters.bound[event] == 0u || p.velo_clusters.super_pixel_bound[event] == 0u) return;
    hlt::event_labelling clustering(p, event);
    if (!hlt::find_hits_of_banks(p, event, clustering)) velo_sparse_ccl(p, dim3{event, 1, 1});
}
