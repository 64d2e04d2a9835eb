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
// One block per event; threads stride over the tracks and list their hits, then over the banks, then over the listed
// hits. A hit is listed once, so each size has one writer.
// Bounds: an event has velo_clusters.bound places for hits, and one of scratch.listed for each. Sizes above 255 count
// as 255; masked clusters have at most 64 pixels.
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

/// Number of pixels of the cluster of a hit, 0 if its bank does not hold it.
__device__ uint32_t count_pixels(const raw_banks& banks, const rows_of_sensors& rows, uint32_t event_index, uint32_t id,
                                 const uint8_t* retina_sizes)
{
    hit_size hit{id, 0};
    const uint32_t sensor = hit.sensor();
    if (sensor >= n_velo_sensors) return 0;
    super_pixel_region region(hit.column(), hit.row());
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
        for (uint32_t k = 0; k < n; ++k) {
            const uint32_t word = words.word(banks, k);
            if (has_retina) {
                const retina_word cluster{word, bank.version};
                if (cluster.second_sensor() == second && cluster.is_hit() && cluster.id(sensor) == id)
                    hit.pixels = max_of(hit.pixels, cluster.pixels(sensor, retina_sizes));
                continue;
            }
            const super_pixel pixels{word};
            if (!pixels.is_valid() || pixels.pattern() == 0u) continue;
            if (!bank.has_count && pixels.second_sensor() != second) continue;
            if (pixels.is_isolated())
                hit.offer_isolated(pixels);
            else
                region.add(pixels);
        }
    }
    for (uint32_t c = 0; c < 2u; ++c)
        for (uint32_t r = 0; r < 4u; ++r) hit.offer_candidates(region, c, r);
    return min_of(hit.pixels, 255u);
}

/// The tracks of an event, and which of them are counted.
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

    const uint32_t first = p.velo_hits.first(event);
    const uint32_t n_hits = p.velo_clusters.count[event], n_tracks = p.velo_tracks.count[event];
    const hlt::tracks_near_beam tracks{p, p.velo_tracks.first(event)};
    uint8_t* const pixels = p.velo_hits.pixels + first;
    uint8_t* const n_large = p.velo_tracks.large_clusters + tracks.first;
    uint32_t* const is_listed = p.scratch.is_listed + first;
    uint16_t* const listed = p.scratch.listed + first;

    if (threadIdx.x == 0) n_listed = 0;
    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) pixels[i] = 0;
    for (uint32_t i = threadIdx.x; i < (n_hits + 31u) / 32u; i += blockDim.x) is_listed[i] = 0;
    banks_of.clear();
    __syncthreads();
    for (uint32_t track = threadIdx.x; track < n_tracks; track += blockDim.x) {
        if (!tracks.counts(track)) continue;
        for (uint32_t k = 0; k < tracks.n_hits(track); ++k) {
            const uint32_t hit = tracks.hits(track)[k], bit = 1u << hit % 32u;
            if ((atomicOr(&is_listed[hit / 32u], bit) & bit) == 0u)
                listed[atomicAdd(&n_listed, 1u)] = static_cast<uint16_t>(hit);
        }
    }
    __syncthreads();
    if (n_listed != 0u) {
        const hlt::event_row place = p.raw_banks.event_rows[event];
        const hlt::row_range rows = hlt::velo_rows_of(p.raw_banks, place.mep);
        for (uint32_t i = rows.first + threadIdx.x; i < rows.first + rows.count; i += blockDim.x) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[i];
            banks_of.add(hlt::velo_bank_of(hlt::fragment_of(p.raw_banks, row, place.index), row), i);
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < n_listed; i += blockDim.x) {
            const uint32_t hit = listed[i];
            pixels[hit] = static_cast<uint8_t>(
                hlt::count_pixels(p.raw_banks, banks_of, place.index, p.velo_hits.id[first + hit], p.retina_sizes));
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
