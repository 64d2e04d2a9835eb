// Number of pixels of the clusters of VELO tracks near the beam, and of large clusters of each track
// (docs/physics/large-clusters.md).
//
// Clusters have no size: no other algorithm needs one. This kernel goes back to the banks for the few hits of tracks
// that are counted. Super-pixels of the sensor around the hit give all clusters of masked clustering whose centre is in
// the pixel of the hit, by the same rules. A retina word has the size as the number of a pattern of pixels. If several
// clusters have the id of a hit, the largest one counts; only a damaged bank has two.
// In:  the fragments of the VELO rows; velo_hits.id; velo_tracks.{hits, hit_count, backward}, velo_tracks.count,
//      velo_beamline.{tx, ty}; retina_sizes.
// Out: velo_hits.pixels, 0 for hits that are on no counted track or whose size the bank does not hold;
//      velo_tracks.large_clusters, 0 for tracks that are not counted; scratch.
// One block per event; threads stride over the tracks and mark their hits, then over the marks and list the hits by
// sensor, then over the banks, then over the hits. Of a sensor with many hits they first put the words into cells.
// A hit is listed once, so each size has one writer; the order of hits and words decides nothing.
// Bounds: an event has velo_clusters.bound places for hits, and one of scratch.listed for each. That bound counts each
// retina word and each super-pixel with pixels, so scratch.{words, links} hold the words of a sensor. Sizes above 255
// count as 255; masked clusters have at most 64 pixels. Time is linear in the words: max_scans hits read all words of
// their sensor, the others 64 super-pixels. A damaged bank can have many words of one place: a hit beside a cell with
// more than max_chain words has no size if its sensor has more than max_scans hits.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/velo/decoding/bank.cuh"
#include "lhcb/velo/decoding/retina_words.cuh"
#include "lhcb/velo/decoding/super_pixel.cuh"
#include "lhcb/velo/tracking/generated/velo_large_clusters.h"

namespace hlt {

/// Super-pixels around a pixel, by column, a byte for each row. They contain the windows of all candidates whose
/// cluster may have its centre in the pixel: a cluster fills two columns of super-pixels, two rows south and one north.
struct super_pixel_region {
    static constexpr uint32_t n_columns = 4, n_rows = 7;

    uint32_t west, south;  // of the first super-pixel; below 0 they wrap, as the differences to them do
    uint64_t columns[n_columns];

    __device__ super_pixel_region(uint32_t pixel_column, uint32_t pixel_row)
        : west(pixel_column / 2u - 1u), south(pixel_row / 4u - 3u), columns{}
    {
    }

    __device__ void add(const super_pixel& pixels)
    {
        const uint32_t c = pixels.column() - west, r = pixels.row() - south;
        if (c >= n_columns || r >= n_rows) return;
        const uint64_t pattern = static_cast<uint64_t>(pixels.pattern()) << 8u * r;
        for (uint32_t i = 0; i < n_columns; ++i) columns[i] |= i == c ? pattern : 0u;  // constant indices: registers
    }

    __device__ uint32_t pattern(uint32_t c, uint32_t r) const
    {
        return static_cast<uint32_t>(columns[c] >> 8u * r) & 0xffu;
    }

    /// The window of the candidates of super-pixel (c + 1, r + 2).
    __device__ cluster_window window(uint32_t c, uint32_t r) const
    {
        uint64_t pixels[6] = {};  // by column
        for (uint32_t i = 0; i < 3u; ++i) {
            const uint64_t patterns = columns[c + i] >> 8u * r;
            for (uint32_t j = 0; j < 4u; ++j) {
                pixels[2u * i] |= (patterns >> 8u * j & 15u) << 4u * j;
                pixels[2u * i + 1u] |= (patterns >> (8u * j + 4u) & 15u) << 4u * j;
            }
        }
        return {pixels[0] | pixels[1] << 16 | pixels[2] << 32, pixels[3] | pixels[4] << 16 | pixels[5] << 32};
    }
};

/// A hit as its LHCbID describes it, and the largest cluster that has this id.
struct hit_size {
    uint32_t id;
    uint32_t pixels;

    __device__ uint32_t sensor() const { return id >> 18 & 0xffu; }
    __device__ uint32_t column() const { return id >> 8 & 0x3ffu; }
    __device__ uint32_t row() const { return id & 0xffu; }

    /// A cluster of super-pixels. Sums are positive.
    __device__ void offer(const cluster_sums& sums)
    {
        const bool has_id = static_cast<uint32_t>(sums.column / sums.n) == column() &&
                            static_cast<uint32_t>(sums.row / sums.n) == row();
        if (has_id) pixels = max_of(pixels, static_cast<uint32_t>(sums.n));
    }

    __device__ void offer_isolated(const super_pixel& of)
    {
        if (of.column() != column() / 2u || of.row() != row() / 4u) return;
        const int32_t c = static_cast<int32_t>(of.column()), r = static_cast<int32_t>(of.row());
        const uint32_t second = second_cluster(of.pattern());
        offer(sum_pattern(of.pattern() & ~second, c, r));
        if (second != 0u) offer(sum_pattern(second, c, r));
    }

    /// The clusters of the candidates of super-pixel (c + 1, r + 2) of a region.
    __device__ void offer_candidates(const super_pixel_region& region, uint32_t c, uint32_t r)
    {
        const uint32_t own = region.pattern(c + 1u, r + 2u);
        if (own == 0u) return;
        const super_pixel_surroundings around{
            own,
            region.pattern(c + 1u, r + 3u),
            region.pattern(c + 2u, r + 3u),
            region.pattern(c + 2u, r + 2u),
            region.pattern(c + 2u, r + 1u),
            region.pattern(c + 1u, r + 1u),
        };
        uint32_t candidates = find_candidates(around);
        if (candidates == 0u) return;
        const cluster_window lit = region.window(c, r);
        for (; candidates != 0u; candidates &= candidates - 1u) {
            const uint32_t bit = static_cast<uint32_t>(__ffs(static_cast<int>(candidates))) - 1u;
            cluster_window cluster;
            if (!grow_cluster(lit, bit >> 2, bit & 3u, cluster)) continue;
            offer(sum_window(cluster, static_cast<int32_t>(region.west + c + 1u),
                             static_cast<int32_t>(region.south + r + 2u)));
        }
    }
};

/// A sensor with more hits is read once into cells (words_by_cell). Each hit of the others reads all words: that is
/// cheaper for few hits, and all threads work.
constexpr uint32_t max_scans = 8;

/// First row of the MFPs with a bank of a sensor, and the row behind the last one.
struct rows_of_sensors {
    uint32_t begin[n_velo_sensors], end[n_velo_sensors];

    __device__ void clear()
    {
        for (uint32_t i = threadIdx.x; i < n_velo_sensors; i += blockDim.x) {
            begin[i] = 0xffffffffu;
            end[i] = 0;
        }
    }

    __device__ void add(const velo_bank& bank, uint32_t row)
    {
        if (bank.kind != velo_bank_kind::retina && bank.kind != velo_bank_kind::super_pixels) return;
        for (uint32_t i = bank.sensor; i < bank.sensor + (bank.has_count ? 1u : 2u); ++i) {
            atomicMin(&begin[i], row);
            atomicMax(&end[i], row + 1u);
        }
    }
};

/// The hits with a size, by sensor: first their numbers, then the place where each sensor begins, then where it ends.
struct hits_of_sensors {
    uint32_t places[n_velo_sensors];

    __device__ void clear()
    {
        for (uint32_t i = threadIdx.x; i < n_velo_sensors; i += blockDim.x) places[i] = 0;
    }

    __device__ void count(uint32_t sensor) { atomicAdd(&places[sensor], 1u); }

    /// Turns numbers into places; returns their sum. One thread only.
    __device__ uint32_t sum()
    {
        uint32_t n = 0;
        for (uint32_t i = 0; i < n_velo_sensors; ++i) {
            const uint32_t own = places[i];
            places[i] = n;
            n += own;
        }
        return n;
    }

    __device__ uint32_t take_place(uint32_t sensor) { return atomicAdd(&places[sensor], 1u); }

    /// When all places are taken.
    __device__ uint32_t begin(uint32_t sensor) const { return sensor == 0u ? 0u : places[sensor - 1u]; }
    __device__ uint32_t end(uint32_t sensor) const { return places[sensor]; }
    __device__ bool are_many(uint32_t sensor) const { return end(sensor) - begin(sensor) > max_scans; }
};

/// Version of a word in the place of the version of its bank: a super-pixel.
constexpr uint32_t no_retina_version = 0;

/// Calls take(word, version) for the words of a sensor with pixels: each `step`th word of each bank, from `first` on.
template <typename Take>
__device__ void for_words_of_sensor(const raw_banks& banks, const rows_of_sensors& rows, uint32_t event_index,
                                    uint32_t sensor, uint32_t first, uint32_t step, const Take& take)
{
    for (uint32_t i = rows.begin[sensor]; i < rows.end[sensor]; ++i) {
        const mfp_row row = banks.mfp_rows[i];
        const velo_bank bank = velo_bank_of(fragment_of(banks, row, event_index), row);
        const bool has_retina = bank.kind == velo_bank_kind::retina;
        if (!has_retina && bank.kind != velo_bank_kind::super_pixels) continue;
        const uint32_t second = sensor - bank.sensor;
        if (second > (bank.has_count ? 0u : 1u)) continue;
        bool is_broken = false;
        const uint32_t n = bank.count_words(is_broken);
        const velo_words words = bank.words(banks);
        for (uint32_t k = first; k < n; k += step) {
            const uint32_t word = words.word(banks, k);
            if (has_retina) {
                const retina_word cluster{word, bank.version};
                if (cluster.second_sensor() == second && cluster.is_hit()) take(word, bank.version);
                continue;
            }
            const super_pixel pixels{word};
            if (!pixels.is_valid() || pixels.pattern() == 0u) continue;
            if (bank.has_count || pixels.second_sensor() == second) take(word, no_retina_version);
        }
    }
}

/// Collects the words of its sensor that may belong to the cluster of a hit.
struct hit_words {
    hit_size hit;
    super_pixel_region region;
    const uint8_t* retina_sizes;

    __device__ hit_words(uint32_t id, const uint8_t* sizes)
        : hit{id, 0}, region(hit.column(), hit.row()), retina_sizes(sizes)
    {
    }

    __device__ void take(uint32_t word, uint32_t version)
    {
        if (version != no_retina_version) {
            const retina_word cluster{word, version};
            if (cluster.id(hit.sensor()) == hit.id)
                hit.pixels = max_of(hit.pixels, cluster.pixels(hit.sensor(), retina_sizes));
            return;
        }
        const super_pixel pixels{word};
        if (pixels.is_isolated())
            hit.offer_isolated(pixels);
        else
            region.add(pixels);
    }

    /// Number of pixels of the cluster, 0 if the bank does not hold it.
    __device__ uint32_t count_pixels()
    {
        for (uint32_t c = 0; c < 2u; ++c)
            for (uint32_t r = 0; r < 4u; ++r) hit.offer_candidates(region, c, r);
        return min_of(hit.pixels, 255u);
    }
};

/// The words of one sensor in chains by their place. A cell has one column of super-pixels and eight rows of them, so a
/// hit meets at most 64 super-pixels in the eight cells around it, however many the sensor has.
struct words_by_cell {
    static constexpr uint32_t n_cell_rows = n_super_pixel_rows / 8u, n_cells = n_super_pixel_columns * n_cell_rows;
    static constexpr uint32_t no_word = 0xffffu;
    /// Words of a cell that are read: one for each pixel. Only a damaged bank has more.
    static constexpr uint32_t max_chain = 64;

    uint32_t n_words;
    uint32_t first[n_cells];  // place of the first word of a cell, no_word if it is empty

    __device__ static uint32_t cell_of(uint32_t word, uint32_t version)
    {
        if (version == no_retina_version)
            return super_pixel{word}.column() * n_cell_rows + super_pixel{word}.row() / 8u;
        const retina_word cluster{word, version};
        return cluster.column() / 2u * n_cell_rows + (word >> cluster.fraction_bits() & 0xffu) / 32u;
    }

    __device__ void clear()
    {
        if (threadIdx.x == 0) n_words = 0;
        for (uint32_t i = threadIdx.x; i < n_cells; i += blockDim.x) first[i] = no_word;
    }

    __device__ void add(uint32_t word, uint32_t version, uint32_t* words, uint32_t* links)
    {
        const uint32_t place = atomicAdd(&n_words, 1u);
        words[place] = word;
        links[place] = atomicExch(&first[cell_of(word, version)], place) | version << 16;
    }

    /// Gives a hit the words of the cells around its pixel. False if one of these cells has more than max_chain words:
    /// this does not depend on their order.
    __device__ bool offer(hit_words& to, const uint32_t* words, const uint32_t* links) const
    {
        // A cluster with a pixel three rows of super-pixels south of the hit would have at least one pixel in each row
        // of pixels from there on, and too few in the hit's own rows for its centre to be there.
        const uint32_t west = max_of(to.hit.column() / 2u, 1u) - 1u, south = max_of(to.hit.row() / 4u, 2u) - 2u;
        const uint32_t east = min_of(to.hit.column() / 2u + 2u, n_super_pixel_columns - 1u);
        const uint32_t north = min_of(to.hit.row() / 4u + 3u, n_super_pixel_rows - 1u);
        for (uint32_t c = west; c <= east; ++c)
            for (uint32_t r = south / 8u; r <= north / 8u; ++r) {
                uint32_t n = 0;
                for (uint32_t i = first[c * n_cell_rows + r]; i != no_word; i = links[i] & 0xffffu) {
                    if (++n > max_chain) return false;
                    to.take(words[i], links[i] >> 16);
                }
            }
        return true;
    }
};

/// VELO tracks of an event; `counts` tells those whose hits get a size.
struct tracks_near_beam {
    const velo_large_clusters_parameters& p;
    uint32_t first;

    __device__ bool counts(uint32_t track) const
    {
        const uint32_t i = first + track;
        const float tx = p.velo_beamline.tx[i], ty = p.velo_beamline.ty[i];
        return p.velo_tracks.backward[i] == 0u && p.velo_tracks.hit_count[i] >= p.min_hits &&
               tx * tx + ty * ty <= p.max_slope * p.max_slope;
    }
    __device__ uint32_t n_hits(uint32_t track) const { return p.velo_tracks.hit_count[first + track]; }
    __device__ const uint16_t* hits(uint32_t track) const
    {
        return p.velo_tracks.hits + (first + track) * max_velo_track_hits;
    }
};

}  // namespace hlt

HLT_KERNEL(velo_large_clusters)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t n_listed;
    __shared__ hlt::rows_of_sensors banks_of;
    __shared__ hlt::hits_of_sensors hits_of;
    __shared__ hlt::words_by_cell cells;

    const uint32_t first = p.velo_hits.first(event);
    const uint32_t n_hits = p.velo_clusters.count[event], n_tracks = p.velo_tracks.count[event];
    const hlt::tracks_near_beam tracks{p, p.velo_tracks.first(event)};
    const uint32_t* const ids = p.velo_hits.id + first;
    uint8_t* const pixels = p.velo_hits.pixels + first;
    uint8_t* const n_large = p.velo_tracks.large_clusters + tracks.first;
    uint32_t* const is_listed = p.scratch.is_listed + first;
    uint16_t* const listed = p.scratch.listed + first;

    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) pixels[i] = 0;
    for (uint32_t i = threadIdx.x; i < (n_hits + 31u) / 32u; i += blockDim.x) is_listed[i] = 0;
    banks_of.clear();
    hits_of.clear();
    __syncthreads();
    for (uint32_t track = threadIdx.x; track < n_tracks; track += blockDim.x) {
        if (!tracks.counts(track)) continue;
        for (uint32_t k = 0; k < tracks.n_hits(track); ++k) {
            const uint32_t hit = tracks.hits(track)[k], bit = 1u << hit % 32u;
            const uint32_t sensor = hlt::hit_size{ids[hit], 0}.sensor();
            if (sensor < hlt::n_velo_sensors && (atomicOr(&is_listed[hit / 32u], bit) & bit) == 0u)
                hits_of.count(sensor);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) n_listed = hits_of.sum();
    __syncthreads();
    if (n_listed != 0u) {
        const hlt::event_row place = p.raw_banks.event_rows[event];
        const hlt::row_range rows = hlt::velo_rows_of(p.raw_banks, place.mep);
        for (uint32_t i = rows.first + threadIdx.x; i < rows.first + rows.count; i += blockDim.x) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[i];
            banks_of.add(hlt::velo_bank_of(hlt::fragment_of(p.raw_banks, row, place.index), row), i);
        }
        for (uint32_t i = threadIdx.x; i < (n_hits + 31u) / 32u; i += blockDim.x)
            for (uint32_t bits = is_listed[i]; bits != 0u; bits &= bits - 1u) {
                const uint32_t hit = 32u * i + static_cast<uint32_t>(__ffs(static_cast<int>(bits))) - 1u;
                listed[hits_of.take_place(hlt::hit_size{ids[hit], 0}.sensor())] = static_cast<uint16_t>(hit);
            }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < n_listed; i += blockDim.x) {
            hlt::hit_words words(ids[listed[i]], p.retina_sizes);
            if (hits_of.are_many(words.hit.sensor())) continue;
            hlt::for_words_of_sensor(p.raw_banks, banks_of, place.index, words.hit.sensor(), 0, 1,
                                     [&](uint32_t word, uint32_t version) { words.take(word, version); });
            pixels[listed[i]] = static_cast<uint8_t>(words.count_pixels());
        }
        for (uint32_t sensor = 0; sensor < hlt::n_velo_sensors; ++sensor) {
            if (!hits_of.are_many(sensor)) continue;
            uint32_t* const of_cells = p.scratch.words + first;
            uint32_t* const links = p.scratch.links + first;
            cells.clear();
            __syncthreads();
            hlt::for_words_of_sensor(
                p.raw_banks, banks_of, place.index, sensor, threadIdx.x, blockDim.x,
                [&](uint32_t word, uint32_t version) { cells.add(word, version, of_cells, links); });
            __syncthreads();
            for (uint32_t i = hits_of.begin(sensor) + threadIdx.x; i < hits_of.end(sensor); i += blockDim.x) {
                hlt::hit_words words(ids[listed[i]], p.retina_sizes);
                const bool is_sized = cells.offer(words, of_cells, links);
                pixels[listed[i]] = static_cast<uint8_t>(is_sized ? words.count_pixels() : 0u);
            }
            __syncthreads();
        }
        __syncthreads();
    }
    for (uint32_t track = threadIdx.x; track < n_tracks; track += blockDim.x) {
        uint32_t n = 0;
        if (tracks.counts(track))
            for (uint32_t k = 0; k < tracks.n_hits(track); ++k)
                n += pixels[tracks.hits(track)[k]] >= p.min_pixels ? 1u : 0u;
        n_large[track] = static_cast<uint8_t>(n);
    }
}
