// Masked clustering on the CPU, one sensor after the other.
//
// Isolated super-pixels are looked up by their pattern. The others are drawn on a map of the sensor, a byte for each
// super-pixel, column by column with an empty border: the window of 3 x 4 super-pixels around one is three loads of
// four bytes. Its clusters grow in the window as in the common kernel, which has the rules. The map knows neither words
// of one position nor a sensor in two banks, and the common kernel refuses events that fill a stretch of its table:
// such events, which no detector sends, are left to the common kernel.
#pragma once

#include "lhcb/velo/decoding/masked_clustering.cuh"
#include "lhcb/velo/decoding/sensor_hits_cpu.h"

namespace hlt {

/// Centre of the cluster that a pattern is, from the corner of the super-pixel.
struct pattern_centre {
    float fraction_x, fraction_y;
    uint32_t column, row;
};

struct pattern_table {
    pattern_centre centres[256];
    uint8_t second[256];  // second_cluster

    constexpr pattern_table() : centres{}, second{}
    {
        for (uint32_t pattern = 1; pattern < 256u; ++pattern) {
            uint32_t n = 0, columns = 0, rows = 0;
            for (uint32_t bit = 0; bit < 8u; ++bit) {
                if ((pattern >> bit & 1u) == 0u) continue;
                ++n;
                columns += bit / 4u;
                rows += bit % 4u;
            }
            const float per_n = static_cast<float>(n);
            centres[pattern] = {static_cast<float>(columns % n) / per_n, static_cast<float>(rows % n) / per_n,
                                columns / n, rows / n};
            const bool north_apart = (pattern & 0x22u) == 0u && (pattern & 0x11u) != 0u && (pattern & 0xccu) != 0u;
            const bool top_apart = (pattern & 0x44u) == 0u && (pattern & 0x88u) != 0u && (pattern & 0x33u) != 0u;
            second[pattern] = static_cast<uint8_t>(north_apart ? pattern & 0xccu : top_apart ? pattern & 0x88u : 0u);
        }
    }
};
inline constexpr pattern_table patterns_of_super_pixels;

/// The super-pixels of one sensor that are not isolated.
class sensor_map {
  public:
    /// Draw a pattern at the place of a super-pixel, 0 to draw nothing. Returns what was there.
    uint32_t draw(const super_pixel& pixels, uint32_t pattern)
    {
        uint8_t& own = patterns_[corner_of(pixels) + 2u];
        const uint32_t before = own;
        own = static_cast<uint8_t>(before | pattern);
        return before;
    }
    void erase(const super_pixel& pixels) { patterns_[corner_of(pixels) + 2u] = 0; }

    /// The window around a super-pixel.
    cluster_window window_around(const super_pixel& pixels) const
    {
        uint32_t columns[3];
        for (uint32_t i = 0; i < 3u; ++i)
            std::memcpy(&columns[i], patterns_ + corner_of(pixels) + i * stride - stride, sizeof columns[i]);
        return {uint64_t{nibbles<0>(columns[0])} | uint64_t{nibbles<4>(columns[0])} << 16 |
                    uint64_t{nibbles<0>(columns[1])} << 32,
                uint64_t{nibbles<4>(columns[1])} | uint64_t{nibbles<0>(columns[2])} << 16 |
                    uint64_t{nibbles<4>(columns[2])} << 32};
    }

  private:
    static constexpr uint32_t stride = n_super_pixel_rows + 2u;
    static constexpr uint32_t n_columns = 512;  // that a word can name: what does not exist is drawn as nothing

    /// The place two rows further south, where the window begins.
    static uint32_t corner_of(const super_pixel& pixels) { return (pixels.column() + 1u) * stride + pixels.row(); }

    /// The low (shift 0) or high (4) halves of four bytes.
    template <uint32_t shift>
    static uint32_t nibbles(uint32_t bytes)
    {
#if defined(__BMI2__)
        return __builtin_ia32_pext_si(bytes, 0x0f0f0f0fu << shift);
#else
        uint32_t halves = bytes >> shift & 0x0f0f0f0fu;
        halves = (halves | halves >> 4) & 0x00ff00ffu;
        return (halves | halves >> 8) & 0xffffu;
#endif
    }

    // Behind the last row of a column and before its first there are two empty places, west and east an empty column.
    uint8_t patterns_[(n_columns + 2u) * stride + 4u] = {};
};

/// Candidates of the middle super-pixel of a window, as bits of its pattern.
inline uint32_t candidates_of(const cluster_window& lit)
{
    const uint32_t west = static_cast<uint32_t>(lit.west >> 32), own = static_cast<uint32_t>(lit.east & 0xffffu);
    const uint32_t east = static_cast<uint32_t>(lit.east >> 16 & 0xffffu);
    const uint32_t of_west = west & ~(west >> 1 | own | own >> 1 | own << 1);
    const uint32_t of_own = own & ~(own >> 1 | east | east >> 1 | east << 1);
    return (of_west >> 8 & 15u) | (of_own >> 4 & 0xf0u);
}

/// How many super-pixels hash to each stretch of the table that the common kernel would fill.
class stretch_counts {
  public:
    explicit stretch_counts(uint32_t places) : bits_(31u - static_cast<uint32_t>(__builtin_clz(places)))
    {
        std::memset(counts_, 0, (n_stretches() + 1u) * sizeof *counts_);
    }

    void add(uint32_t sensor, const super_pixel& pixels, uint32_t n)
    {
        const uint32_t key = super_pixel_table::key_of(sensor, pixels.column(), pixels.row());
        uint16_t& count = counts_[key * 2654435769u >> (32u - bits_) >> 5];
        count = static_cast<uint16_t>(count + n);
    }

    /// Whether a stretch could be full. A run of taken places that covers one begins in it or before it, and as many
    /// super-pixels as it has places up to the end of the stretch hash into these: 32 in the stretch itself, or more
    /// than 32 k in it and the k before it, which needs more than 32 in two neighbours or 32 in one.
    bool may_be_full() const
    {
        const uint32_t n = n_stretches();
        uint32_t most = 0;
        for (uint32_t i = 0; i < n; ++i) most = max_of<uint32_t>(most, counts_[i] + counts_[(i + 1u) & (n - 1u)]);
        return n == 1u ? counts_[0] >= table_stretch : most >= table_stretch;
    }

  private:
    uint32_t n_stretches() const { return max_of((1u << bits_) / table_stretch, 1u); }

    uint32_t bits_;
    uint16_t counts_[4u * (max_velo_clusters_of_event + 1u) / table_stretch + 1u];
};

/// The words of a sensor that count, isolated ones apart.
struct sensor_words {
    uint32_t sensor;
    uint32_t isolated, others;  // where they end in the lists of the event
};

/// A cluster to be grown.
struct cluster_seed {
    cluster_window lit;
    uint32_t word;
    uint32_t candidate;  // bit of the pattern
};

/// Decodes the banks of an event, as long as it `is_usual`. Passes go over the whole event: a sensor has a handful of
/// words, and the processor guesses the end of each loop over them wrong.
class sensor_clustering {
  public:
    sensor_clustering(const velo_masked_clustering_parameters& p, uint32_t event)
        : p_(p), counts_(4u * p.velo_clusters.super_pixel_bound[event])
    {
    }

    /// Read a bank. False if its event is left to the common kernel.
    bool take(const velo_bank& bank)
    {
        const uint32_t n = bank.count_words(is_broken_);
        if (n == 0u) return true;
        for (uint32_t second = 0; second < (bank.version < 4u ? 1u : 2u); ++second) {
            const uint32_t sensor = bank.sensor + second;
            if ((seen_[sensor / 64u] >> sensor % 64u & 1u) != 0u || n_words_ + n > most_words) return false;
            seen_[sensor / 64u] |= 1ull << sensor % 64u;
            const uint32_t begin = n_others_;
            if (!read(bank, n, sensor, bank.version < 4u ? 0u : 1u << 23, second << 23)) return false;
            for (uint32_t i = begin; i < n_others_; ++i) find_seeds({others_[i]});
            for (uint32_t i = begin; i < n_others_; ++i) map_.erase({others_[i]});
            n_words_ += n;
            sensors_[n_sensors_++] = {sensor, n_isolated_, n_seeds_};
        }
        return true;
    }

    bool is_broken() const { return is_broken_; }
    bool may_crowd_table() const { return counts_.may_be_full(); }

    /// Write the hits from place `first` on; returns the place behind the last.
    uint32_t finish(uint32_t first)
    {
        const velo_geometry& geometry = *p_.velo_geometry;
        const decoded_hits out{p_.velo_unsorted.x,   p_.velo_unsorted.y,  p_.velo_unsorted.z,
                               p_.velo_unsorted.phi, p_.velo_unsorted.id, p_.velo_unsorted.module_pair};
        uint32_t at = first, isolated = 0, seed = 0;
        for (uint32_t s = 0; s < n_sensors_; ++s) {
            const sensor_words& of = sensors_[s];
            const uint32_t begin = at;
            for (; isolated < of.isolated; ++isolated)
                at = store_isolated(out, geometry, at, of.sensor, isolated_[isolated]);
            for (; seed < of.others; ++seed) at = grow(out, geometry, at, of.sensor, seeds_[seed]);
            out.place(geometry, of.sensor, begin, at);
        }
        out.find_phi(first, at);
        return at;
    }

  private:
    static constexpr uint32_t most_words = 1u << 14;  // of an event; denser ones are left to the common kernel

    /// List the words of a sensor and draw those that are not isolated, without a branch on which they are. False where
    /// two have one position.
    bool read(const velo_bank& bank, uint32_t n, uint32_t sensor, uint32_t sensor_bit, uint32_t wanted)
    {
        const velo_words words = bank.words(p_.raw_banks);
        uint32_t n_invalid = 0, drawn_before = 0;
        for (uint32_t j = 0; j < n; ++j) {
            const super_pixel pixels{words.word(p_.raw_banks, j)};
            const uint32_t is_valid = (pixels.column() - n_super_pixel_columns) >> 31;
            n_invalid += 1u - is_valid;
            const uint32_t counts =
                is_valid & ((pixels.pattern() + 0xffu) >> 8) & (((pixels.word & sensor_bit) ^ wanted) - 1u) >> 31;
            const uint32_t isolated = counts & pixels.word >> 31, other = counts & ~pixels.word >> 31;
            isolated_[n_isolated_] = others_[n_others_] = pixels.word;
            n_isolated_ += isolated;
            n_others_ += other;
            drawn_before |= map_.draw(pixels, pixels.pattern() & (0u - other)) & (0u - other);
            counts_.add(sensor, pixels, other);
        }
        is_broken_ |= n_invalid != 0u;
        return drawn_before == 0u;
    }

    /// A pattern has two candidates at most.
    void find_seeds(const super_pixel& pixels)
    {
        const cluster_window lit = map_.window_around(pixels);
        const uint32_t candidates = candidates_of(lit);
        const uint32_t others = candidates & (candidates - 1u);
        seeds_[n_seeds_] = {lit, pixels.word, static_cast<uint32_t>(__builtin_ctz(candidates | 0x100u))};
        n_seeds_ += candidates != 0u ? 1u : 0u;
        seeds_[n_seeds_] = {lit, pixels.word, static_cast<uint32_t>(__builtin_ctz(others | 0x100u))};
        n_seeds_ += others != 0u ? 1u : 0u;
    }

    static uint32_t store(const decoded_hits& out, const velo_geometry& geometry, uint32_t at, uint32_t sensor,
                          uint32_t column, float fraction_x, uint32_t row, float fraction_y)
    {
        out.store_local(at, geometry, column, fraction_x, row, fraction_y);
        out.id[at] = velo_lhcb_id(sensor, column, row, false, false);
        return at + 1u;
    }

    static uint32_t store_isolated(const decoded_hits& out, const velo_geometry& geometry, uint32_t at, uint32_t sensor,
                                   uint32_t word)
    {
        const super_pixel pixels{word};
        const uint32_t second = patterns_of_super_pixels.second[pixels.pattern()];
        const auto store_pattern = [&](uint32_t pattern) {
            const pattern_centre& centre = patterns_of_super_pixels.centres[pattern];
            at = store(out, geometry, at, sensor, 2u * pixels.column() + centre.column, centre.fraction_x,
                       4u * pixels.row() + centre.row, centre.fraction_y);
        };
        store_pattern(pixels.pattern() & ~second);
        if (second != 0u) store_pattern(second);
        return at;
    }

    static uint32_t grow(const decoded_hits& out, const velo_geometry& geometry, uint32_t at, uint32_t sensor,
                         const cluster_seed& seed)
    {
        const super_pixel pixels{seed.word};
        cluster_window cluster;
        if (!grow_cluster(seed.lit, seed.candidate >> 2, seed.candidate & 3u, cluster)) return at;
        // Counted from the corner of the window: one column and two rows of super-pixels away.
        const cluster_sums sums = sum_window(cluster, 1, 2);
        const uint32_t n = static_cast<uint32_t>(sums.n);
        const uint32_t columns = static_cast<uint32_t>(sums.column), rows = static_cast<uint32_t>(sums.row);
        const float per_n = static_cast<float>(sums.n);
        return store(out, geometry, at, sensor, 2u * pixels.column() + columns / n - 2u,
                     static_cast<float>(columns % n) / per_n, 4u * pixels.row() + rows / n - 8u,
                     static_cast<float>(rows % n) / per_n);
    }

    const velo_masked_clustering_parameters& p_;
    stretch_counts counts_;
    bool is_broken_ = false;
    uint64_t seen_[(n_velo_sensors + 63u) / 64u] = {};
    uint32_t n_words_ = 0, n_isolated_ = 0, n_others_ = 0, n_seeds_ = 0, n_sensors_ = 0;
    sensor_words sensors_[n_velo_sensors];
    // Behind the last of each list one more may be written that does not count.
    uint32_t isolated_[most_words + 1u], others_[most_words + 1u];
    cluster_seed seeds_[2u * most_words + 1u];
    sensor_map map_;
};

}  // namespace hlt

HLT_CPU_FORM(velo_masked_clustering)
{
    if (!p.takes(event)) return;
    if (p.velo_clusters.bound[event] == 0u || p.velo_clusters.super_pixel_bound[event] == 0u) return;
    hlt::sensor_clustering clustering(p, event);
    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::velo_rows_of(p.raw_banks, place.mep);
    bool is_usual = true;
    for (uint32_t i = rows.first; i < rows.first + rows.count && is_usual; ++i) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[i];
        const hlt::velo_bank bank = hlt::velo_bank_of(hlt::fragment_of(p.raw_banks, row, place.index), row);
        if (bank.kind == hlt::velo_bank_kind::super_pixels) is_usual = clustering.take(bank);
    }
    if (!is_usual || clustering.may_crowd_table()) {
        velo_masked_clustering(p, dim3{event, 1, 1});
        return;
    }
    if (clustering.is_broken()) p.events.flags[event] |= hlt::bank_error;
    const uint32_t first = p.velo_unsorted.first(event);
    p.velo_unsorted.count[event] = clustering.finish(first + p.velo_unsorted.count[event]) - first;
}
