// Masked clustering on the CPU, in vectors of super-pixels and of clusters.
//
// Sensor by sensor, the words are sorted into two lists of the event: isolated super-pixels and others. The others of a
// sensor are drawn on a map with a byte for each super-pixel, column by column with an empty border. So three loads of
// four bytes give the window of 3 x 4 super-pixels around one. The clusters of the candidates of a window grow in
// vectors, by the rules of the common kernel; isolated patterns have one or two clusters. The last step is the same for
// all clusters, and does not depend on their order. The map supports neither two words of one position nor a sensor in
// two banks, and the common kernel flags events that fill a stretch of its table. No detector sends such events; they
// are passed to the common kernel.
#pragma once

#include "lhcb/velo/decoding/grow_clusters_cpu.h"
#include "lhcb/velo/decoding/masked_clustering.cuh"
#include "lhcb/velo/decoding/sensor_hits_cpu.h"
#include "lhcb/velo/decoding/stretch_counts_cpu.h"
#include "lhcb/velo/decoding/super_pixel_banks_cpu.h"

namespace hlt {

/// The super-pixels of one sensor that are not isolated.
class sensor_map {
  public:
    /// First place of the window around a super-pixel: one column to the west, two rows to the south.
    template <typename Words>
    static Words corner_of(const listed_super_pixel<Words>& pixels)
    {
        return pixels.column() * stride + pixels.row();
    }
    static constexpr uint32_t corner_of_none = n_super_pixel_rows;  // an empty place beside a column

    /// Draw a pattern in the middle of a window. Returns the pattern that was there.
    uint32_t draw(uint32_t corner, uint32_t pattern)
    {
        uint8_t& own = patterns_[corner + stride + 2u];
        const uint32_t before = own;
        own = static_cast<uint8_t>(before | pattern);
        return before;
    }
    void erase(uint32_t corner) { patterns_[corner + stride + 2u] = 0; }

    /// Four super-pixels of one column of a window, south first.
    uint32_t column(uint32_t corner, uint32_t i) const
    {
        uint32_t patterns;
        std::memcpy(&patterns, patterns_ + corner + i * stride, sizeof patterns);
        return patterns;
    }

  private:
    // Two empty places separate the columns; an empty column lies in the west and one in the east.
    static constexpr uint32_t stride = n_super_pixel_rows + 2u;

    uint8_t patterns_[(n_super_pixel_columns + 2u) * stride + 4u] = {};
};

/// Decodes the banks of a usual event. Each pass goes over the whole event: a sensor has a handful of words, and the
/// processor would mispredict the end of each loop over one sensor.
class event_clustering {
  public:
    event_clustering(const velo_masked_clustering_parameters& p, uint32_t event)
        : p_(p), counts_(4u * p.velo_clusters.super_pixel_bound[event])
    {
    }

    /// Read a bank of an MFP that ends at `end`. Returns false if the common kernel must process the event.
    bool take(const velo_bank& bank, const uint8_t* end)
    {
        const uint32_t n = bank.count_words(is_broken_);
        if (n == 0u) return true;
        const uint8_t* const words = p_.raw_banks.bytes + bank.words(p_.raw_banks).offset;
        const bool pairs = bank.version >= velo_version_sensor_pairs;
        for (uint32_t second = 0; second < (pairs ? 2u : 1u); ++second) {
            const uint32_t sensor = bank.sensor + second;
            if ((seen_[sensor / 64u] >> sensor % 64u & 1u) != 0u || n_words_ + n > most_words) return false;
            seen_[sensor / 64u] |= 1ull << sensor % 64u;
            n_words_ += n;
            transformations_.add(*p_.velo_geometry, sensor);
            const uint32_t begin = n_others_;
            sort_out(words, n, end, sensor, pairs ? 1u << 23 : 0u, second << 23);
            if (!find_windows(begin)) return false;
        }
        return true;
    }

    bool is_broken() const { return is_broken_; }

    /// Returns false if the common kernel must process the event.
    bool find_clusters()
    {
        for (uint32_t i = 0; i < n_others_; i += n_wide) find_seeds(i);
        if (counts_.may_be_full()) return false;
        for (uint32_t i = 0; i < n_seeds_; i += n_wide) grow(i);
        for (uint32_t i = 0; i < n_isolated_; i += n_wide) split_isolated(i);
        return true;
    }

    /// Write the hits from place `first` on, and undefined values into up to three more places. Returns the place
    /// behind the last hit.
    uint32_t store_hits(uint32_t first) const
    {
        const decoded_hits out{p_.velo_unsorted.x,   p_.velo_unsorted.y,  p_.velo_unsorted.z,
                               p_.velo_unsorted.phi, p_.velo_unsorted.id, p_.velo_unsorted.module_pair};
        for (uint32_t i = 0; i < n_clusters_; i += n_wide) store_clusters(out, i, first + i);
        out.find_phi(first, first + n_clusters_);
        return first + n_clusters_;
    }

  private:
    static constexpr uint32_t most_words = 1u << 14;  // of an event; the common kernel processes denser ones
    // A vector may be written behind the last item of a list.
    static constexpr uint32_t places = most_words + n_wide, cluster_places = 2u * most_words + n_wide;

    /// List the words of a sensor, without a branch on their kind.
    void sort_out(const uint8_t* words, uint32_t n, const uint8_t* end, uint32_t sensor, uint32_t sensor_bit,
                  uint32_t wanted)
    {
        uint32_t invalid = 0;
        for (uint32_t i = 0; i < n; i += n_wide, words += sizeof(uint_wide)) {
            uint_wide word;
            load_wide_before(word, words, n - i, end);
            const listed_super_pixel<uint_wide> pixels{(word & 0x7fffffu) | sensor << 23};
            const uint32_t all = first_bits(n - i), valid = bits_of(pixels.column() < n_super_pixel_columns) & all;
            invalid |= valid ^ all;
            const uint32_t counts = valid & bits_of(pixels.pattern() != 0u) & bits_of((word & sensor_bit) == wanted);
            const uint32_t isolated = counts & bits_of((int_wide)word < 0), others = counts ^ isolated;
            store_packed_wide(isolated_ + n_isolated_, pixels.word, isolated);
            store_packed_wide(others_ + n_others_, pixels.word, others);
            store_packed_wide(corners_ + n_others_, sensor_map::corner_of(pixels), others);
            n_isolated_ += static_cast<uint32_t>(__builtin_popcount(isolated));
            n_others_ += static_cast<uint32_t>(__builtin_popcount(others));
        }
        is_broken_ |= invalid != 0u;
    }

    /// Load the windows around the super-pixels of a sensor that are not isolated, from `begin` on. Returns false if
    /// two have the same position. Each turn of a loop takes eight; lanes behind the last one use an empty place. Most
    /// sensors need one turn.
    bool find_windows(uint32_t begin)
    {
        for (uint32_t k = 0; k < 8u; ++k) {
            others_[n_others_ + k] = 0;
            corners_[n_others_ + k] = sensor_map::corner_of_none;
        }
        uint32_t drawn_before = 0;
        for (uint32_t i = begin; i < n_others_; i += 8u)
            for (uint32_t k = 0; k < 8u; ++k) drawn_before |= map_.draw(corners_[i + k], others_[i + k] & 0xffu);
        for (uint32_t i = begin; i < n_others_; i += 8u)
            for (uint32_t k = 0; k < 8u; ++k)
                for (uint32_t column = 0; column < 3u; ++column)
                    windows_[column][i + k] = map_.column(corners_[i + k], column);
        for (uint32_t i = begin; i < n_others_; i += 8u)
            for (uint32_t k = 0; k < 8u; ++k) map_.erase(corners_[i + k]);
        return drawn_before == 0u;
    }

    /// A pattern has two candidates at most.
    void find_seeds(uint32_t i)
    {
        const uint32_t n = min_of(n_others_ - i, n_wide);
        uint_wide window[3], word;
        for (uint32_t column = 0; column < 3u; ++column) {
            load_wide(window[column], windows_[column] + i);
            window[column] = columns_of(window[column]);
        }
        load_wide(word, others_ + i);
        counts_.add({word}, n);
        const uint_wide candidates = candidates_of(window[1], window[2]);
        const uint_wide of_first = candidates & -candidates, of_second = candidates ^ of_first;
        for (const uint_wide& candidate : {of_first, of_second}) {
            const uint32_t bits = bits_of(candidate != 0u) & first_bits(n);
            store_packed_wide(seeds_.west + n_seeds_, window[0], bits);
            store_packed_wide(seeds_.middle + n_seeds_, window[1], bits);
            store_packed_wide(seeds_.beyond + n_seeds_, window[2] << 16, bits);
            store_packed_wide(seeds_.candidate + n_seeds_, candidate, bits);
            store_packed_wide(seeds_.word + n_seeds_, word, bits);
            n_seeds_ += static_cast<uint32_t>(__builtin_popcount(bits));
        }
    }

    void grow(uint32_t i)
    {
        half_windows lit, clusters;
        uint_wide beyond, candidates, word;
        load_wide(lit.west, seeds_.west + i);
        load_wide(lit.middle, seeds_.middle + i);
        load_wide(beyond, seeds_.beyond + i);
        load_wide(candidates, seeds_.candidate + i);
        load_wide(word, seeds_.word + i);
        const uint32_t reported = grow_clusters(lit, beyond, candidates, clusters);
        append(clusters, word, reported & first_bits(n_seeds_ - i));
    }

    void split_isolated(uint32_t i)
    {
        uint_wide word;
        load_wide(word, isolated_ + i);
        const uint_wide pattern = listed_super_pixel<uint_wide>{word}.pattern(), second = second_cluster(pattern);
        const uint32_t bits = first_bits(n_isolated_ - i);
        append({uint_wide{}, pixels_of(pattern ^ second)}, word, bits);
        append({uint_wide{}, pixels_of(second)}, word, bits & bits_of(second != 0u));
    }

    /// A pattern in the middle of a window.
    static uint_wide pixels_of(const uint_wide& pattern) { return (pattern & 15u) << 8 | (pattern >> 4) << 24; }

    void append(const half_windows& clusters, const uint_wide& word, uint32_t bits)
    {
        store_packed_wide(clusters_.west + n_clusters_, clusters.west, bits);
        store_packed_wide(clusters_.middle + n_clusters_, clusters.middle, bits);
        store_packed_wide(clusters_.word + n_clusters_, word, bits);
        n_clusters_ += static_cast<uint32_t>(__builtin_popcount(bits));
    }

    /// Write a vector of hits.
    void store_clusters(const decoded_hits& out, uint32_t i, uint32_t at) const
    {
        const uint32_t n = min_of(n_clusters_ - i, n_wide);
        half_windows clusters;
        listed_super_pixel<uint_wide> pixels;
        load_wide(clusters.west, clusters_.west + i);
        load_wide(clusters.middle, clusters_.middle + i);
        load_wide(pixels.word, clusters_.word + i);
        if (n < n_wide) {  // one pixel in each unused lane: no division by 0
            clusters.west = wide_numbers < n ? clusters.west : uint_wide{};
            clusters.middle = wide_numbers < n ? clusters.middle : uint_wide{} + 1u;
            pixels.word = wide_numbers < n ? pixels.word : uint_wide{};
        }
        const wide_sums sums = sum_clusters(clusters);
        const wide_mean mean_column(sums.column, sums.n), mean_row(sums.row, sums.n);
        // Counted from the corner of the window: one column and two rows of super-pixels away.
        const uint_wide column = 2u * pixels.column() + mean_column.whole - 2u;
        const uint_wide row = 4u * pixels.row() + mean_row.whole - 8u;
        const uint_wide sensor = pixels.sensor();
        uint32_t columns[n_wide], sensors[n_wide], ids[n_wide];
        float fractions[n_wide], local_y[n_wide];
        store_wide(columns, column);
        store_wide(sensors, sensor);
        store_wide(ids, 2u << 28 | sensor << 18 | column << 8 | row);  // velo_lhcb_id
        store_wide(fractions, mean_column.fraction);
        store_wide(local_y,
                   (__builtin_convertvector((int_wide)row, float_wide) + mean_row.fraction + 0.5f) * velo_pixel_pitch);
        uint8_t pairs[n_wide];
        store_bytes_wide(pairs, sensor / 8u);
        const velo_geometry& geometry = *p_.velo_geometry;
        for (uint32_t k = 0; k < n; k += 4u) {
            float4 points[4];
            for (uint32_t l = k; l < k + 4u; ++l)
                points[l - k] = transformations_.position(
                    sensors[l], geometry.local_x[columns[l]] + fractions[l] * geometry.x_pitch[columns[l]], local_y[l]);
            out.store_points(at + k, points);
            std::memcpy(out.id + at + k, ids + k, 4u * sizeof *ids);
            std::memcpy(out.module_pair + at + k, pairs + k, 4u);
        }
    }

    struct seed_lists {
        uint32_t west[cluster_places], middle[cluster_places], beyond[cluster_places];  // lit pixels of the window
        uint32_t candidate[cluster_places], word[cluster_places];
    };
    struct cluster_lists {
        uint32_t west[cluster_places], middle[cluster_places], word[cluster_places];
    };

    const velo_masked_clustering_parameters& p_;
    stretch_counts counts_;
    sensor_map map_;
    sensor_transformations transformations_;
    bool is_broken_ = false;
    uint64_t seen_[(n_velo_sensors + 63u) / 64u] = {};
    uint32_t n_words_ = 0, n_isolated_ = 0, n_others_ = 0, n_seeds_ = 0, n_clusters_ = 0;
    uint32_t isolated_[places], others_[places], corners_[places], windows_[3][places];
    seed_lists seeds_;
    cluster_lists clusters_;
};

static_assert(sizeof(event_clustering) < 2u << 20, "it lies on the stack of a thread");

}  // namespace hlt

HLT_CPU_FORM(velo_masked_clustering)
{
    if (!p.takes(event)) return;
    if (p.velo_clusters.bound[event] == 0u || p.velo_clusters.super_pixel_bound[event] == 0u) return;
    hlt::event_clustering clustering(p, event);
    if (!hlt::find_hits_of_banks(p, event, clustering)) velo_masked_clustering(p, dim3{event, 1, 1});
}
