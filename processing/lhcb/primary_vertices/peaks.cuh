// Seeds of primary vertices: peaks in the histogram of the tracks' z at the beam line
// (docs/physics/primary-vertices.md, steps 1-4).
//
// One block per event; the histogram lies in shared memory. Contents are fixed-point numbers (one track = 2^16), so
// that the order in which threads add makes no difference; 2^16 tracks in one bin would be needed to overflow.
//
// 1. Each good track adds the integral of its z resolution over the bins, exactly 2^16 in all. The Gaussian is replaced
//    by a parabola-like polynomial with compact support, half width sqrt(7) sigma.
// 2. A bit per bin tells whether it is above the density threshold; a run of such bins is a proto-cluster.
// 3. One thread per proto-cluster walks it from low to high z with the highest bin so far and the lowest bin behind it.
//    Where the content has come up again by more than the dip on both sides, the cluster is split at the lowest bin.
//    A part with enough tracks is a seed, marked by the bit of its highest bin; so seeds come out sorted by z.
// 4. The seed's z is interpolated between the bins beside the highest one.
// Bounds: pv_bins bins; max_pv_seeds seeds, those at larger z are dropped and set the overflow flag.
#pragma once

#include "lhcb/primary_vertices/generated/pv_beamline_peaks.h"
#include "lhcb/primary_vertices/tracks.cuh"

namespace hlt {

constexpr float pv_bin_width = 0.25f;                                                      // mm
constexpr uint32_t pv_bins = static_cast<uint32_t>((pv_z_max - pv_z_min) / pv_bin_width);  // 3392
constexpr uint32_t pv_smog2_bins = static_cast<uint32_t>((pv_z_smog2 - pv_z_min) / pv_bin_width);
constexpr uint32_t pv_bin_words = pv_bins / 32;
constexpr float pv_one_track = 65536.f;

/// Integral of the track's z density below u (in sigma), for |u| <= sqrt(7).
__device__ float pv_cumulative(float u)
{
    constexpr float inverse_sqrt_7 = 0.377964473f;
    const float v = u * inverse_sqrt_7;
    const float e = 1.f - v * v;
    return 0.5f + v * (0.5f + e * (0.25f + 0.1875f * e));
}

/// The bin at a position (in bins), away from the borders so that each bin has neighbours.
__device__ uint32_t pv_inner_bin(float position)
{
    constexpr float last = static_cast<float>(pv_bins) - 2.f;
    return static_cast<uint32_t>(min_of(max_of(position, 1.f), last));
}

__device__ uint32_t pv_integral(const uint32_t* histogram, uint32_t begin, uint32_t end)
{
    uint32_t sum = 0;
    for (uint32_t bin = begin; bin < end; ++bin) sum += histogram[bin];
    return sum;
}

__device__ void pv_mark_seed(uint32_t* marks, uint32_t bin) { atomicOr(&marks[bin / 32], 1u << (bin % 32)); }

__device__ float pv_seed_z(const uint32_t* histogram, uint32_t bin)
{
    const float here = static_cast<float>(histogram[bin]);
    const float below = here - static_cast<float>(histogram[bin - 1]);
    const float above = here - static_cast<float>(histogram[bin + 1]);
    const float offset = below + above > 0.f ? 0.5f * (below - above) / (below + above) : 0.f;
    return pv_z_min + pv_bin_width * (static_cast<float>(bin) + 0.5f + offset);
}

}  // namespace hlt

HLT_KERNEL(pv_beamline_peaks)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t histogram[hlt::pv_bins];
    __shared__ uint32_t above[hlt::pv_bin_words + 1];  // the last word stays 0 and ends the last proto-cluster
    __shared__ uint32_t marks[hlt::pv_bin_words];

    for (uint32_t bin = threadIdx.x; bin < hlt::pv_bins; bin += blockDim.x) histogram[bin] = 0;
    for (uint32_t word = threadIdx.x; word < hlt::pv_bin_words; word += blockDim.x) marks[word] = 0;
    if (threadIdx.x == 0) above[hlt::pv_bin_words] = 0;
    __syncthreads();

    // 1. Histogram.
    const uint32_t first = p.pv_tracks.first(blockIdx.x);
    const uint32_t n_tracks = p.pv_tracks.count[blockIdx.x];
    const float beamline_x = p.velo_geometry->beamline_x;
    const float beamline_y = p.velo_geometry->beamline_y;
    constexpr float sqrt_7 = 2.64575131f;
    for (uint32_t track = first + threadIdx.x; track < first + n_tracks; track += blockDim.x) {
        const float z = p.pv_tracks.z[track];
        const float dx = p.pv_tracks.x[track] - beamline_x;
        const float dy = p.pv_tracks.y[track] - beamline_y;
        const float tx = p.pv_tracks.tx[track];
        const float ty = p.pv_tracks.ty[track];
        const float weight = p.pv_tracks.weight[track];
        const float inverse_variance = (tx * tx + ty * ty) * weight;  // of z
        const float max_error = z < hlt::pv_z_smog2 ? p.max_z_error_smog2 : p.max_z_error;
        const bool at_beamline = (dx * dx + dy * dy) * weight < p.max_track_chi2;
        const bool precise = inverse_variance * max_error * max_error > 1.f;
        if (!at_beamline || !precise) continue;

        const float inverse_error = sqrtf(inverse_variance);
        const float position = (z - hlt::pv_z_min) * (1.f / hlt::pv_bin_width);
        const float half_width = sqrt_7 / hlt::pv_bin_width / inverse_error;
        const uint32_t low = hlt::pv_inner_bin(position - half_width);
        const uint32_t high = hlt::pv_inner_bin(position + half_width);
        const float bin_in_errors = hlt::pv_bin_width * inverse_error;
        uint32_t filled = 0;
        for (uint32_t bin = low; bin < high; ++bin) {
            const float u = (static_cast<float>(bin + 1) - position) * bin_in_errors;
            const int32_t integral = static_cast<int32_t>(hlt::pv_cumulative(u) * hlt::pv_one_track);
            const uint32_t below = hlt::max_of(filled, static_cast<uint32_t>(hlt::max_of(integral, 0)));
            atomicAdd(&histogram[bin], below - filled);
            filled = below;
        }
        atomicAdd(&histogram[high], static_cast<uint32_t>(hlt::pv_one_track) - filled);
    }
    __syncthreads();

    // 2. Bins above the threshold: less than what the widest track allowed contributes, a tenth of it.
    const float threshold = 0.1f * hlt::pv_bin_width * hlt::pv_one_track;
    const uint32_t min_content = static_cast<uint32_t>(threshold / p.max_z_error);
    const uint32_t min_content_smog2 = static_cast<uint32_t>(threshold / p.max_z_error_smog2);
    for (uint32_t word = threadIdx.x; word < hlt::pv_bin_words; word += blockDim.x) {
        uint32_t bits = 0;
        for (uint32_t i = 0; i < 32; ++i) {
            const uint32_t bin = 32 * word + i;
            const uint32_t content = bin < hlt::pv_smog2_bins ? min_content_smog2 : min_content;
            bits |= (histogram[bin] > content ? 1u : 0u) << i;
        }
        above[word] = bits;
    }
    __syncthreads();

    // 3. Proto-clusters and peaks. A thread takes the clusters that begin in its words.
    const uint32_t min_dip = static_cast<uint32_t>(p.min_dip * hlt::pv_bin_width * hlt::pv_one_track);
    for (uint32_t word = threadIdx.x; word < hlt::pv_bin_words; word += blockDim.x) {
        const uint32_t carried = word > 0 ? above[word - 1] >> 31 : 0;
        for (uint32_t starts = above[word] & ~(above[word] << 1 | carried); starts != 0; starts &= starts - 1) {
            const uint32_t begin = 32 * word + static_cast<uint32_t>(__ffs(static_cast<int>(starts))) - 1;
            const uint32_t min_integral = static_cast<uint32_t>(
                (begin < hlt::pv_smog2_bins ? p.min_integral_smog2 : p.min_integral) * hlt::pv_one_track);

            uint32_t end = begin;
            uint32_t integral = 0;
            while (above[end / 32] >> (end % 32) & 1u) integral += histogram[end++];
            if (integral <= min_integral) continue;

            uint32_t part_begin = begin, highest = begin, lowest = begin;
            uint32_t first_peak = hlt::pv_bins;
            bool marked = false;
            for (uint32_t bin = begin; bin < end; ++bin) {
                const uint32_t content = histogram[bin];
                const uint32_t bottom = histogram[lowest];
                if (lowest > highest && content > bottom + min_dip && histogram[highest] > bottom + min_dip) {
                    if (first_peak == hlt::pv_bins) first_peak = highest;
                    if (hlt::pv_integral(histogram, part_begin, lowest) > min_integral) {
                        hlt::pv_mark_seed(marks, highest);
                        marked = true;
                    }
                    part_begin = lowest;
                    highest = lowest = bin;
                } else if (content > histogram[highest]) {
                    highest = lowest = bin;
                } else if (content < bottom) {
                    lowest = bin;
                }
            }
            if (first_peak == hlt::pv_bins) first_peak = highest;
            if (hlt::pv_integral(histogram, part_begin, end) > min_integral) {
                hlt::pv_mark_seed(marks, highest);
                marked = true;
            }
            if (!marked) hlt::pv_mark_seed(marks, first_peak);
        }
    }
    __syncthreads();

    // 4. Seeds in order of z.
    if (threadIdx.x == 0) {
        float* seeds = p.pv_seeds.z + p.pv_seeds.first(blockIdx.x);
        uint32_t n = 0;
        bool too_many = false;
        for (uint32_t word = 0; word < hlt::pv_bin_words; ++word) {
            for (uint32_t bits = marks[word]; bits != 0; bits &= bits - 1) {
                const uint32_t bin = 32 * word + static_cast<uint32_t>(__ffs(static_cast<int>(bits))) - 1;
                if (n < hlt::max_pv_seeds)
                    seeds[n++] = hlt::pv_seed_z(histogram, bin);
                else
                    too_many = true;
            }
        }
        p.pv_seeds.count[blockIdx.x] = n;
        if (too_many) atomicOr(&p.events.flags[blockIdx.x], hlt::overflow);
    }
}
