// Seeds of primary vertices on the CPU: the steps of the common kernel, which fill the histogram in eight bins of a
// track at a time.
#pragma once

#include "framework/device/vector8.cuh"
#include "lhcb/primary_vertices/peaks.cuh"

namespace hlt {

/// Eight spare bins behind the last one: they may be read and written, but nothing is added to them.
constexpr uint32_t pv_spare_bins = 8;

/// pv_track_density::below, for eight bins from one on.
inline __attribute__((always_inline)) int8x32 pv_below(const pv_track_density& track, const int8x32& bins)
{
    const float8 u = (__builtin_convertvector(bins + 1, float8) - track.position) * track.bin_in_errors;
    constexpr float inverse_sqrt_7 = 0.377964473f;
    const float8 v = u * inverse_sqrt_7;
    const float8 e = 1.f - v * v;
    const float8 cumulative = 0.5f + v * (0.5f + e * (0.25f + 0.1875f * e));
    const int8x32 below = __builtin_convertvector(cumulative * pv_one_track, int8x32);
    return below > 0 ? below : int8x32{};
}

/// pv_track_density::add of all bins of a track.
inline void pv_add_track_to(uint32_t* histogram, const pv_track_density& track)
{
    const int32_t low = static_cast<int32_t>(track.low), high = static_cast<int32_t>(track.high);
    for (int32_t begin = low; begin <= high; begin += 8) {
        const int8x32 bins = int8x32{0, 1, 2, 3, 4, 5, 6, 7} + begin;
        const int8x32 before = bins > low ? pv_below(track, bins - 1) : int8x32{};
        const int8x32 now = pv_below(track, bins);
        const int8x32 most = now > before ? now : before;
        const int8x32 upper = bins < high ? most : int8x32{} + static_cast<int32_t>(pv_one_track);
        int8x32 contents;
        load8(contents, histogram + begin);
        contents += bins <= high ? upper - before : int8x32{};
        std::memcpy(histogram + begin, &contents, sizeof contents);
    }
}

/// pv_density_of for n tracks, without a branch: tracks that do not count have no bins.
template <typename Peaks>
inline void pv_find_densities(const Peaks& p, uint32_t first, uint32_t n, pv_track_density* __restrict__ densities)
{
    constexpr float sqrt_7 = 2.64575131f;
    const velo_beam_line beam_line(*p.velo_geometry);
    const float* __restrict__ const x = p.pv_tracks.x + first;
    const float* __restrict__ const y = p.pv_tracks.y + first;
    const float* __restrict__ const z = p.pv_tracks.z + first;
    const float* __restrict__ const slope_x = p.pv_tracks.tx + first;
    const float* __restrict__ const slope_y = p.pv_tracks.ty + first;
    const float* __restrict__ const weight = p.pv_tracks.weight + first;
    const float max_chi2 = p.max_track_chi2, max_z_error = p.max_z_error, max_z_error_smog2 = p.max_z_error_smog2;
    for (uint32_t i = 0; i < n; ++i) {
        const float dx = x[i] - beam_line.x_at(z[i]), dy = y[i] - beam_line.y_at(z[i]);
        const float tx = slope_x[i] - beam_line.slope_x, ty = slope_y[i] - beam_line.slope_y;
        const float inverse_variance = (tx * tx + ty * ty) * weight[i];
        const float max_error = z[i] < pv_z_smog2 ? max_z_error_smog2 : max_z_error;
        const bool counts =
            ((dx * dx + dy * dy) * weight[i] < max_chi2) & (inverse_variance * max_error * max_error > 1.f);
        const float inverse_error = sqrtf(inverse_variance);
        const float position = (z[i] - pv_z_min) * (1.f / pv_bin_width);
        const float half_width = sqrt_7 / pv_bin_width / inverse_error;
        const auto bin = [](float at) { return static_cast<uint32_t>(static_cast<int32_t>(at)); };
        constexpr float last = static_cast<float>(pv_bins) - 2.f;
        const uint32_t low = bin(min_of(max_of(position - half_width, 1.f), last));
        const uint32_t high = bin(min_of(max_of(position + half_width, 1.f), last));
        densities[i] = {position, pv_bin_width * inverse_error, counts ? low : 1u, counts ? high : 0u};
    }
}

/// pv_find_starts, eight bins at a time.
inline void pv_find_starts_of_words(const uint32_t* histogram, pv_threshold threshold, uint32_t* starts)
{
    static_assert(pv_smog2_bins % 8u == 0u);
    uint32_t carried = 0;
    for (uint32_t word = 0; word < pv_bin_words; ++word) {
        uint32_t bits = 0;
        for (uint32_t byte = 0; byte < 4u; ++byte) {
            const uint32_t bin = 32u * word + 8u * byte;
            uint8x32 contents;
            load8(contents, histogram + bin);
            bits |= bits_of(contents > threshold.at(bin)) << (8u * byte);
        }
        starts[word] = bits & ~(bits << 1 | carried);
        carried = bits >> 31;
    }
}

/// pv_find_seeds.
template <typename Peaks>
inline uint32_t pv_find_seeds_on_cpu(const Peaks& p, uint32_t first, uint32_t n_tracks, float* seeds)
{
    alignas(64) uint32_t histogram[pv_bins + pv_spare_bins] = {};
    uint32_t starts[pv_bin_words], marks[pv_bin_words] = {};

    // 1. Histogram.
    constexpr uint32_t at_once = 64;
    for (uint32_t base = 0; base < n_tracks; base += at_once) {
        pv_track_density densities[at_once];
        const uint32_t n = min_of(n_tracks - base, at_once);
        pv_find_densities(p, first + base, n, densities);
        for (uint32_t i = 0; i < n; ++i) pv_add_track_to(histogram, densities[i]);
    }

    // 2. Proto-clusters.
    const pv_threshold threshold = pv_threshold_of(p);
    pv_find_starts_of_words(histogram, threshold, starts);

    // 3. Peaks.
    const uint32_t min_dip = pv_min_dip_of(p);
    for (uint32_t word = 0; word < pv_bin_words; ++word) {
        for (uint32_t bits = starts[word]; bits != 0; bits &= bits - 1u) {
            const uint32_t begin = 32u * word + static_cast<uint32_t>(__builtin_ctz(bits));
            pv_mark_seeds(histogram, threshold, begin, pv_min_integral_of(p, begin), min_dip, marks);
        }
    }

    // 4. Seeds in the order of z.
    uint32_t n = 0;
    for (uint32_t word = 0; word < pv_bin_words; ++word) {
        for (uint32_t bits = marks[word]; bits != 0; bits &= bits - 1u, ++n) {
            if (n >= max_pv_seeds) continue;
            seeds[n] = pv_seed_z(histogram, 32u * word + static_cast<uint32_t>(__builtin_ctz(bits)));
        }
    }
    return n;
}

}  // namespace hlt

HLT_CPU_FORM(pv_beamline_peaks)
{
    if (!hlt::compares_eight_lanes) return pv_beamline_peaks(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const uint32_t n = hlt::pv_find_seeds_on_cpu(p, p.pv_tracks.first(event), p.pv_tracks.count[event],
                                                 p.pv_seeds.z + p.pv_seeds.first(event));
    p.pv_seeds.count[event] = hlt::min_of(n, hlt::max_pv_seeds);
    if (n > hlt::max_pv_seeds) p.events.flags[event] |= hlt::overflow;
}
