// Seeds of primary vertices: peaks in the histogram of the tracks' z at the beam line
// (docs/physics/primary-vertices.md, steps 1-4).
//
// One block per event; the histogram lies in shared memory. Contents are fixed-point numbers (one track = 2^16), so
// that the sum does not depend on the order of the threads. An overflow would need 2^16 tracks in one bin.
//
// 1. Each good track adds the integral of its z resolution over the bins, exactly 2^16 in all. The Gaussian is replaced
//    by a parabola-like polynomial with compact support, half width sqrt(7) sigma.
// 2. A run of bins above the density threshold is a proto-cluster; a bit per bin marks its start.
// 3. One thread per proto-cluster walks it from low to high z with the highest bin so far and the lowest bin behind it.
//    Proto-clusters are few, so the lanes of one warp take those of the whole event.
//    Where both sides of the lowest bin exceed it by more than the dip, the cluster is split at the lowest bin.
//    A part with enough tracks is a seed, marked by the bit of its highest bin; so seeds are sorted by z.
// 4. The seed's z is interpolated between the bins beside the highest one.
// Bounds: pv_bins bins; max_pv_seeds seeds: further seeds, at larger z, are dropped and set the overflow flag.
#pragma once

#include "framework/device/warp_queue.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/primary_vertices/generated/pv_beamline_peaks.h"
#include "lhcb/primary_vertices/tracks.cuh"
#include "lhcb/velo/beam_line.cuh"

namespace hlt {

constexpr float pv_bin_width = 0.25f;                                                      // mm
constexpr uint32_t pv_bins = static_cast<uint32_t>((pv_z_max - pv_z_min) / pv_bin_width);  // 3392
constexpr uint32_t pv_smog2_bins = static_cast<uint32_t>((pv_z_smog2 - pv_z_min) / pv_bin_width);
constexpr uint32_t pv_bin_words = pv_bins / 32;
constexpr float pv_one_track = 65536.f;

constexpr uint32_t pv_bins_at_once = 4;  // of a thread
static_assert(pv_bins % pv_bins_at_once == 0 && pv_smog2_bins % pv_bins_at_once == 0);

/// Integral of the track's z density below u (in sigma), for |u| <= sqrt(7).
__device__ float pv_cumulative(float u)
{
    constexpr float inverse_sqrt_7 = 0.377964473f;
    const float v = u * inverse_sqrt_7;
    const float e = 1.f - v * v;
    return 0.5f + v * (0.5f + e * (0.25f + 0.1875f * e));
}

/// The bin at a position (in bins), limited to bins with two neighbours.
__device__ uint32_t pv_inner_bin(float position)
{
    constexpr float last = static_cast<float>(pv_bins) - 2.f;
    return static_cast<uint32_t>(min_of(max_of(position, 1.f), last));
}

/// The contribution of a track to the histogram, from bin `low` to bin `high`; none if low is beyond high.
struct pv_track_density {
    float position;       // in bins
    float bin_in_errors;  // width of a bin
    uint32_t low, high;

    /// The track below the upper edge of a bin.
    __device__ uint32_t below(uint32_t bin) const
    {
        const float u = (static_cast<float>(bin + 1) - position) * bin_in_errors;
        return static_cast<uint32_t>(max_of(static_cast<int32_t>(pv_cumulative(u) * pv_one_track), 0));
    }

    /// Add to bins [begin, end), not beyond `high`, which gets the rest of the track. The content of a bin depends only
    /// on its two edges, so that parts may be added separately.
    __device__ void add(uint32_t* histogram, uint32_t begin, uint32_t end) const
    {
        uint32_t filled = begin > low ? below(begin - 1) : 0;
        for (uint32_t bin = begin; bin < min_of(end, high); ++bin) {
            const uint32_t now = below(bin);
            atomicAdd(&histogram[bin], max_of(now, filled) - filled);
            filled = now;
        }
        if (high < end) atomicAdd(&histogram[high], static_cast<uint32_t>(pv_one_track) - filled);
    }
};

template <typename Peaks>
__device__ pv_track_density pv_density_of(const Peaks& p, const velo_beam_line& beam_line, uint32_t track)
{
    constexpr float sqrt_7 = 2.64575131f;
    const float z = p.pv_tracks.z[track];
    const float dx = p.pv_tracks.x[track] - beam_line.x_at(z);
    const float dy = p.pv_tracks.y[track] - beam_line.y_at(z);
    const float tx = p.pv_tracks.tx[track] - beam_line.slope_x;
    const float ty = p.pv_tracks.ty[track] - beam_line.slope_y;
    const float weight = p.pv_tracks.weight[track];
    const float inverse_variance = (tx * tx + ty * ty) * weight;  // of z
    const float max_error = z < pv_z_smog2 ? p.max_z_error_smog2 : p.max_z_error;
    const bool at_beamline = (dx * dx + dy * dy) * weight < p.max_track_chi2;
    const bool precise = inverse_variance * max_error * max_error > 1.f;
    if (!at_beamline || !precise) return {0.f, 0.f, 1, 0};

    const float inverse_error = sqrtf(inverse_variance);
    const float position = (z - pv_z_min) * (1.f / pv_bin_width);
    const float half_width = sqrt_7 / pv_bin_width / inverse_error;
    return {position, pv_bin_width * inverse_error, pv_inner_bin(position - half_width),
            pv_inner_bin(position + half_width)};
}

/// Tracks cover from a few to hundreds of bins, so the lanes of a warp share them in portions of bins.
template <typename Peaks>
__device__ void pv_fill(const Peaks& p, uint32_t first, uint32_t n_tracks, uint32_t* histogram)
{
    const velo_beam_line beam_line(*p.velo_geometry);
    constexpr uint32_t bins = 6;
    constexpr uint32_t part_bits = 10;
    static_assert(pv_bins / bins < 1u << part_bits);
    __shared__ uint32_t queues[max_block_size / warp_size][warp_queue_items];
    warp_queue<uint32_t> queue{queues[threadIdx.x / warp_size], 0};
    const auto add = [&](uint32_t item) {
        const pv_track_density density = pv_density_of(p, beam_line, first + (item >> part_bits));
        const uint32_t begin = density.low + bins * (item & ((1u << part_bits) - 1u));
        density.add(histogram, begin, begin + bins);
    };
    for (uint32_t base = 0; base < n_tracks; base += blockDim.x) {
        const uint32_t track = base + threadIdx.x;
        uint32_t n_parts = 0;
        if (track < n_tracks) {
            const pv_track_density density = pv_density_of(p, beam_line, first + track);
            if (density.low <= density.high) n_parts = (density.high - density.low) / bins + 1u;
        }
        for (uint32_t part = 0; __ballot_sync(warp_lanes(), part < n_parts) != 0; ++part)
            queue.offer(part < n_parts, track << part_bits | part, add);
    }
    queue.finish(add);
}

/// Threshold on the bins of a proto-cluster: a tenth of the contribution of the widest track allowed.
struct pv_threshold {
    uint32_t content, content_smog2;

    __device__ uint32_t at(uint32_t bin) const { return bin < pv_smog2_bins ? content_smog2 : content; }
};

template <typename Peaks>
__device__ pv_threshold pv_threshold_of(const Peaks& p)
{
    const float tenth = 0.1f * pv_bin_width * pv_one_track;
    return {static_cast<uint32_t>(tenth / p.max_z_error), static_cast<uint32_t>(tenth / p.max_z_error_smog2)};
}

template <typename Peaks>
__device__ uint32_t pv_min_dip_of(const Peaks& p)
{
    return static_cast<uint32_t>(p.min_dip * pv_bin_width * pv_one_track);
}

/// Threshold on the content of a proto-cluster that starts at a bin, for a seed.
template <typename Peaks>
__device__ uint32_t pv_min_integral_of(const Peaks& p, uint32_t begin)
{
    const float min_integral = begin < pv_smog2_bins ? p.min_integral_smog2 : p.min_integral;
    return static_cast<uint32_t>(min_integral * pv_one_track);
}

/// A bit for each bin where a proto-cluster starts. Bin 0 is empty.
__device__ void pv_find_starts(const uint32_t* histogram, pv_threshold threshold, uint32_t* starts)
{
    for (uint32_t group = threadIdx.x; group < pv_bins / pv_bins_at_once; group += blockDim.x) {
        const uint32_t first = group * pv_bins_at_once;
        const uint32_t least = threshold.at(first);  // of all bins of the group
        uint32_t content[pv_bins_at_once], highest = 0;
        for (uint32_t k = 0; k < pv_bins_at_once; ++k) content[k] = histogram[first + k];
        for (uint32_t k = 0; k < pv_bins_at_once; ++k) highest = max_of(highest, content[k]);
        if (highest <= least) continue;
        bool follows = first > 0 && histogram[first - 1] > threshold.at(first - 1);
        uint32_t bits = 0;
        for (uint32_t k = 0; k < pv_bins_at_once; ++k) {
            const bool inside = content[k] > least;
            bits |= inside && !follows ? 1u << k : 0u;
            follows = inside;
        }
        if (bits != 0) atomicOr(&starts[first / 32], bits << (first % 32));
    }
}

__device__ void pv_mark_seed(uint32_t* marks, uint32_t bin) { atomicOr(&marks[bin / 32], 1u << (bin % 32)); }

/// Mark the seeds of the proto-cluster that starts at a bin. The last bin is empty, so each cluster ends.
__device__ void pv_mark_seeds(const uint32_t* histogram, pv_threshold threshold, uint32_t begin, uint32_t min_integral,
                              uint32_t min_dip, uint32_t* marks)
{
    uint32_t integral = 0, before_part = 0, before_lowest = 0;  // of the bins from `begin` on
    uint32_t highest = begin, top = histogram[begin], bottom = top;
    uint32_t first_peak = pv_bins;
    bool marked = false;
    uint32_t content = top;
    for (uint32_t bin = begin; content > threshold.at(bin); content = histogram[++bin]) {
        const bool split = min_of(content, top) > bottom + min_dip;  // none if the highest bin is also the lowest
        if (split) {
            if (first_peak == pv_bins) first_peak = highest;
            if (before_lowest - before_part > min_integral) {
                pv_mark_seed(marks, highest);
                marked = true;
            }
            before_part = before_lowest;
        }
        const bool new_top = split || content > top;
        const bool new_bottom = new_top || content < bottom;
        highest = new_top ? bin : highest;
        top = new_top ? content : top;
        bottom = new_bottom ? content : bottom;
        before_lowest = new_bottom ? integral : before_lowest;
        integral += content;
    }
    if (first_peak == pv_bins) first_peak = highest;
    if (integral - before_part > min_integral)
        pv_mark_seed(marks, highest);
    else if (!marked && integral > min_integral)
        pv_mark_seed(marks, first_peak);
}

__device__ float pv_seed_z(const uint32_t* histogram, uint32_t bin)
{
    const float here = static_cast<float>(histogram[bin]);
    const float below = here - static_cast<float>(histogram[bin - 1]);
    const float above = here - static_cast<float>(histogram[bin + 1]);
    const float offset = below + above > 0.f ? 0.5f * (below - above) / (below + above) : 0.f;
    return pv_z_min + pv_bin_width * (static_cast<float>(bin) + 0.5f + offset);
}

/// Seeds of the tracks from `first` on, in the order of z, at most max_pv_seeds. Returns the number of all. The threads
/// of the block call it together.
template <typename Peaks>
__device__ uint32_t pv_find_seeds(const Peaks& p, uint32_t first, uint32_t n_tracks, float* seeds)
{
    alignas(16) __shared__ uint32_t histogram[pv_bins];
    __shared__ uint32_t starts[pv_bin_words];
    __shared__ uint32_t marks[pv_bin_words];
    __shared__ uint32_t queue_items[warp_queue_items];
    __shared__ uint32_t scratch[max_block_size / warp_size];

    for (uint32_t group = threadIdx.x; group < pv_bins / pv_bins_at_once; group += blockDim.x)
        for (uint32_t k = 0; k < pv_bins_at_once; ++k) histogram[group * pv_bins_at_once + k] = 0;
    for (uint32_t word = threadIdx.x; word < pv_bin_words; word += blockDim.x) starts[word] = marks[word] = 0;
    __syncthreads();

    // 1. Histogram.
    pv_fill(p, first, n_tracks, histogram);
    __syncthreads();

    // 2. Proto-clusters.
    const pv_threshold threshold = pv_threshold_of(p);
    pv_find_starts(histogram, threshold, starts);
    __syncthreads();

    // 3. Peaks.
    if (threadIdx.x < warp_size) {
        const uint32_t min_dip = pv_min_dip_of(p);
        const auto mark_seeds = [&](uint32_t begin) {
            pv_mark_seeds(histogram, threshold, begin, pv_min_integral_of(p, begin), min_dip, marks);
        };
        warp_queue<uint32_t> queue{queue_items, 0};
        const uint32_t lanes = min_of(static_cast<uint32_t>(blockDim.x), warp_size);
        for (uint32_t base = 0; base < pv_bin_words; base += lanes) {
            const uint32_t word = base + threadIdx.x;
            uint32_t bits = word < pv_bin_words ? starts[word] : 0;
            for (; __ballot_sync(warp_lanes(), bits != 0) != 0; bits &= bits - 1u)
                queue.offer(bits != 0, 32u * word + static_cast<uint32_t>(__ffs(static_cast<int>(bits))) - 1u,
                            mark_seeds);
        }
        queue.finish(mark_seeds);
    }
    __syncthreads();

    // 4. Seeds in the order of z.
    uint32_t n = 0;
    for (uint32_t base = 0; base < pv_bin_words; base += blockDim.x) {
        const uint32_t word = base + threadIdx.x;
        uint32_t bits = word < pv_bin_words ? marks[word] : 0;
        uint32_t total;
        uint32_t place = n + block_exclusive_sum(static_cast<uint32_t>(__popc(bits)), scratch, total);
        for (; bits != 0 && place < max_pv_seeds; bits &= bits - 1u, ++place)
            seeds[place] = pv_seed_z(histogram, 32u * word + static_cast<uint32_t>(__ffs(static_cast<int>(bits))) - 1u);
        n += total;
    }
    return n;
}

}  // namespace hlt

HLT_KERNEL(pv_beamline_peaks)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t n = hlt::pv_find_seeds(p, p.pv_tracks.first(blockIdx.x), p.pv_tracks.count[blockIdx.x],
                                          p.pv_seeds.z + p.pv_seeds.first(blockIdx.x));
    if (threadIdx.x == 0) {
        p.pv_seeds.count[blockIdx.x] = hlt::min_of(n, hlt::max_pv_seeds);
        if (n > hlt::max_pv_seeds) atomicOr(&p.events.flags[blockIdx.x], hlt::overflow);
    }
}
