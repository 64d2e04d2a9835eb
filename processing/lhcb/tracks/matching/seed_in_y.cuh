// Stereo hits for the curves of the seeding, and a fit of all hits: SciFi seeds.
//
// With the curve x(z) every hit of a stereo layer measures y. For a track from the collisions y / (z - z') is constant,
// where z' follows from the kick that the curve predicts. In a histogram of this ratio, with one bit for each layer,
// tracks are peaks: two neighbouring bins with hits of at least four layers. A line is fitted to the hits closest to a
// peak; the worst hit is removed while chi2 is too large. The two best lines of a curve are fitted together with it,
// with each hit at the z of the track's y.
// In:  seeding_hits, x_seeds. Out: scifi_seeds.
// One block per event; threads stride over curves; a prefix sum gives places, so the order is that of the curves.
// Bounds: two seeds of a curve, max_scifi_seeds for each event, more flag it. At most max_in_window hits of a layer and
// max_peaks peaks of a histogram are used.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/tracks/long/layers.cuh"
#include "lhcb/tracks/matching/generated/matching_seed_in_y.h"
#include "lhcb/tracks/matching/seed_fit.cuh"
#include "lhcb/tracks/matching/seeding_hits.cuh"

namespace hlt {

constexpr uint32_t min_stereo_hits = 4;

/// A straight line in y with its hits.
struct stereo_line {
    float score;
    float y, ty;  // at the reference plane
    uint32_t hits[n_scifi_stereo_layers];
    uint32_t n_hits;
};

struct two_lines {
    stereo_line lines[2];
    uint32_t n;
};

__device__ bool same_hits(const stereo_line& one, const stereo_line& other)
{
    bool same = true;
    for (uint32_t i = 0; i < n_scifi_stereo_layers; ++i) same = same && one.hits[i] == other.hits[i];
    return same;
}

__device__ void keep_better(two_lines& best, const stereo_line& line)
{
    for (uint32_t i = 0; i < best.n; ++i)
        if (same_hits(best.lines[i], line)) return;
    if (best.n == 0u || line.score < best.lines[0].score) {
        best.lines[1] = best.lines[0];
        best.lines[0] = line;
    } else if (best.n == 1u || line.score < best.lines[1].score) {
        best.lines[1] = line;
    } else {
        return;
    }
    if (best.n < 2u) ++best.n;
}

/// The stereo hits around one curve.
class stereo_search {
  public:
    /// Layers where the curve leaves the detector have no hits.
    __device__ stereo_search(const seeding_tables& tables, const seeding_hit_view& hits, const seed_curve& curve,
                             uint32_t half)
        : hits_(hits), half_(half), x_(hits.x), sign_(half == 0u ? -1.f : 1.f)
    {
        const kick_estimate kick = kick_of(curve);
        bend_ = kick.y_slope;
        pointing_weight_ = 1.f / (pointing_error + pointing_error_of_kick * absolute(kick.size));
        pointing_weight_ *= pointing_weight_;
#pragma unroll 1
        for (uint32_t i = 0; i < n_scifi_stereo_layers; ++i) {
            const uint32_t number = stereo_layer(i);
            const float distance = tables.layer_z[number] - z_scifi_reference;
            layer& at = layers_[i];
            at.distance = distance;
            at.place = curve.x(distance);
            at.dx_dy = tables.dx_dy[number];
            at.inverse = 1.f / at.dx_dy;
            at.depth = z_scifi_reference + (1.f + bend_) * distance;
            const float to_inner = at.dx_dy * sign_ * inner_y, to_outer = at.dx_dy * sign_ * outer_y;
            const float low = at.place - max_of(to_inner, to_outer), high = at.place - min_of(to_inner, to_outer);
            const scifi_zone zone = hits.zone(number, half);
            at.first = zone.from(low);
            at.end = min_of(zone.from(high), at.first + max_in_window);
        }
    }

    __device__ void run(float max_line_chi2, float missing_hit_penalty, two_lines& best) const
    {
        alignas(16) uint8_t layers_in_bin[n_bins + 8] = {};
        fill(layers_in_bin);
        // The number of layers in two neighbouring bins, for eight bins in a word.
        alignas(16) uint8_t count[n_bins + 8];
        for (uint32_t group = 0; group < n_bins; group += 8u) {
            const uint64_t here = load_word<uint64_t>(layers_in_bin + group);
            const uint64_t next = load_word<uint64_t>(layers_in_bin + group + 8u);
            const uint64_t bits = here | here >> 8u | next << 56u;
            const uint64_t pairs = (bits & 0x1515151515151515u) + (bits >> 1u & 0x1515151515151515u);
            const uint64_t of_bins = (pairs & 0x0303030303030303u) + (pairs >> 2u & 0x0303030303030303u) +
                                     (pairs >> 4u & 0x0303030303030303u);
            store_word(count + group, of_bins);
        }
        count[n_bins - 1u] = count[n_bins] = 0;
        uint32_t n_peaks = 0;
        for (uint32_t group = 0; group < n_bins; group += 8u) {
            // Four to six layers have bit 2 set: most groups of eight bins have none.
            if ((load_word<uint64_t>(count + group) & 0x0404040404040404u) == 0u) continue;
            for (uint32_t bin = group; bin < group + 8u; ++bin) {
                const uint32_t here = count[bin], before = bin == 0u ? 0u : count[bin - 1u];
                if (here < min_stereo_hits || here <= before || here < count[bin + 1u] || n_peaks >= max_peaks)
                    continue;
                ++n_peaks;
                const float slope = sign_ * (first_bin + bin_width * static_cast<float>(bin + 1u));
                stereo_line line;
                if (refine(slope, max_line_chi2, missing_hit_penalty, line)) keep_better(best, line);
            }
        }
    }

  private:
    static constexpr float first_bin = -0.004f, bin_width = 0.001f;
    static constexpr uint32_t n_bins = 320;
    static constexpr uint32_t max_peaks = 32;
    static constexpr uint32_t max_in_window = 256;
    static constexpr float inner_y = -25.f, outer_y = 2450.f;  // mm: the halves overlap a little
    static constexpr float y_error = 2.2f;                     // mm, of a stereo hit
    static constexpr float pointing_error = 0.0015f, pointing_error_of_kick = 0.004f;

    struct layer {
        uint32_t first, end;
        float distance;  // mm in z from the reference plane
        float place;     // x of the curve
        float dx_dy, inverse;
        float depth;  // mm: y over depth is the same in all layers
    };

    __device__ void fill(uint8_t* layers_in_bin) const
    {
#pragma unroll 1
        for (uint32_t i = 0; i < n_scifi_stereo_layers; ++i) {
            const layer& at = layers_[i];
            const float scale = sign_ * at.inverse / (at.depth * bin_width);
            const float shift = at.place * scale - first_bin / bin_width;
            const uint8_t bit = static_cast<uint8_t>(1u << i);
            // The window in y begins behind the first bin; hits beyond the last one go into the bin behind it.
            constexpr float last = static_cast<float>(n_bins);
#if HLT_ON_GPU
            for (uint32_t hit = at.first; hit < at.end; ++hit)
                layers_in_bin[static_cast<int32_t>(min_of(max_of(shift - x_[hit] * scale, 0.f), last))] |= bit;
#else
            // Eight at a time: scifi_hit_padding allows loads behind the last hit.
            const float8 none{}, most = none + last;
            for (uint32_t hit = at.first; hit < at.end; hit += 8u) {
                float8 bin;
                load8(bin, &x_[hit]);
                bin = shift - bin * scale;
                bin = bin > none ? bin : none;
                bin = bin < most ? bin : most;
                const int8x32 bins = __builtin_convertvector(bin, int8x32);
                const uint32_t n = min_of(8u, at.end - hit);
                for (uint32_t lane = 0; lane < n; ++lane) layers_in_bin[bins[lane]] |= bit;
            }
#endif
        }
    }

    /// The hit of a layer that is closest to a y, if it is near enough.
    __device__ uint32_t hit_at(uint32_t i, float y, float max_distance) const
    {
        const layer& at = layers_[i];
        const uint32_t hit =
            hits_.zone(stereo_layer(i), half_).nearest(at.place - at.dx_dy * y, max_distance * absolute(at.dx_dy));
        return hit >= at.first && hit < at.end ? hit : no_scifi_hit;
    }

    __device__ float y_of(const layer& at, uint32_t hit) const { return (at.place - x_[hit]) * at.inverse; }

    /// The line through the hits; its score is chi2.
    __device__ void fit(stereo_line& line) const
    {
        // Distances are in m, the slope is per m.
        constexpr float weight = 1.f / (y_error * y_error);
        const float pointing = -(1.f + bend_) * (1e3f / z_scifi_reference);
        const float pointing_weight = pointing_weight_ * 1e-6f;
        float m00 = pointing_weight * pointing * pointing, m01 = pointing_weight * pointing, m11 = pointing_weight;
        float v0 = 0.f, v1 = 0.f;
        line.n_hits = 0;
#pragma unroll 1
        for (uint32_t i = 0; i < n_scifi_stereo_layers; ++i) {
            if (line.hits[i] == no_scifi_hit) continue;
            ++line.n_hits;
            const float distance = 1e-3f * layers_[i].distance, y = y_of(layers_[i], line.hits[i]);
            m00 += weight;
            m01 += weight * distance;
            m11 += weight * distance * distance;
            v0 += weight * y;
            v1 += weight * distance * y;
        }
        const float inverse = 1.f / (m00 * m11 - m01 * m01);
        line.y = (m11 * v0 - m01 * v1) * inverse;
        const float slope = (m00 * v1 - m01 * v0) * inverse;
        line.ty = 1e-3f * slope;
        const float pull = pointing * line.y + slope;
        line.score = pointing_weight * pull * pull;
#pragma unroll 1
        for (uint32_t i = 0; i < n_scifi_stereo_layers; ++i) {
            if (line.hits[i] == no_scifi_hit) continue;
            const float residual = residual_of(line, i);
            line.score += weight * residual * residual;
        }
    }

    __device__ float residual_of(const stereo_line& line, uint32_t i) const
    {
        return y_of(layers_[i], line.hits[i]) - line.y - line.ty * layers_[i].distance;
    }

    /// The line of a peak. Returns false if it has too few hits or too large a chi2.
    __device__ bool refine(float slope, float max_chi2, float missing_hit_penalty, stereo_line& line) const
    {
        line.n_hits = 0;
#pragma unroll 1
        for (uint32_t i = 0; i < n_scifi_stereo_layers; ++i) {
            const layer& at = layers_[i];
            line.hits[i] = hit_at(i, slope * at.depth, bin_width * (at.distance + z_scifi_reference));
            if (line.hits[i] != no_scifi_hit) ++line.n_hits;
        }
        if (line.n_hits < min_stereo_hits) return false;
        fit(line);
        while (line.score > max_chi2 && line.n_hits > min_stereo_hits) {
            uint32_t worst = 0;
            float largest = -1.f;
            for (uint32_t i = 0; i < n_scifi_stereo_layers; ++i) {
                if (line.hits[i] == no_scifi_hit) continue;
                const float distance = absolute(residual_of(line, i));
                if (distance > largest) {
                    largest = distance;
                    worst = i;
                }
            }
            line.hits[worst] = no_scifi_hit;
            fit(line);
        }
        if (!(line.score < max_chi2)) return false;
        line.score += missing_hit_penalty * static_cast<float>(n_scifi_stereo_layers - line.n_hits);
        return true;
    }

    seeding_hit_view hits_;
    uint32_t half_;
    event_column<const float> x_;
    float sign_;
    float bend_;
    float pointing_weight_;
    layer layers_[n_scifi_stereo_layers];
};

}  // namespace hlt

HLT_KERNEL(matching_seed_in_y)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t first = p.seeding_hits.first(event);
    const uint32_t first_curve = p.x_seeds.first(event);
    const uint32_t first_seed = p.scifi_seeds.first(event);
    const uint16_t* number = p.seeding_hits.hit + first;
    const hlt::seeding_hit_view hits{{p.seeding_hits.x, first},
                                     {p.seeding_hits.bins, event * hlt::n_scifi_zones * hlt::scifi_bin_stride},
                                     {p.seeding_hits.cells, event * hlt::scifi_cell_stride}};
    const hlt::seeding_tables& tables = *p.seeding_tables;
    __shared__ uint32_t sums[hlt::max_block_size / hlt::warp_size];

    uint32_t n = 0;
    const uint32_t n_curves = p.x_seeds.count[event];
    for (uint32_t base = 0; base < n_curves; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        hlt::fitted_seed fitted[2];
        uint32_t n_fitted = 0;
        if (i < n_curves) {
            const uint16_t* curve_hits = p.x_seeds.hits + (first_curve + i) * hlt::n_x_layers;
            const uint32_t n_curve_hits = p.x_seeds.hit_count[first_curve + i];
            // At least one of two layers has a hit; the zones of the upper half of a layer follow those of its lower
            // half.
            const uint32_t layer = curve_hits[0] != hlt::no_scifi_hit ? 0u : 3u;
            const uint32_t hit = curve_hits[0] != hlt::no_scifi_hit ? curve_hits[0] : curve_hits[1];
            const uint32_t half = hit < hits.zone(layer, 1u).begin() ? 0u : 1u;
            const hlt::seed_curve curve{p.x_seeds.a[first_curve + i], p.x_seeds.b[first_curve + i],
                                        p.x_seeds.c[first_curve + i]};
            const hlt::stereo_search search(tables, hits, curve, half);
            hlt::two_lines lines;
            lines.n = 0;
            search.run(p.max_line_chi2, p.missing_hit_penalty, lines);
#pragma unroll 1
            for (uint32_t k = 0; k < lines.n; ++k) {
                const hlt::stereo_line& line = lines.lines[k];
                if (line.n_hits + n_curve_hits < p.min_hits) continue;
                hlt::fitted_seed& seed = fitted[n_fitted];
                for (uint32_t j = 0; j < hlt::n_x_layers; ++j) seed.hits[j / 2u * 4u + j % 2u * 3u] = curve_hits[j];
                for (uint32_t j = 0; j < hlt::n_scifi_stereo_layers; ++j)
                    seed.hits[hlt::stereo_layer(j)] = line.hits[j];
                seed.n_hits = line.n_hits + n_curve_hits;
                seed.curve = curve;
                seed.y = line.y;
                seed.ty = line.ty;
                hlt::fit_seed(tables, hits.x, seed);
                if (seed.chi2 < p.max_chi2) ++n_fitted;
            }
        }
        uint32_t total = 0;
        const uint32_t place = n + hlt::block_exclusive_sum(n_fitted, sums, total);
        n += total;
        for (uint32_t k = 0; k < n_fitted && place + k < hlt::max_scifi_seeds; ++k) {
            const hlt::fitted_seed& seed = fitted[k];
            const uint32_t to = first_seed + place + k;
            const float end = hlt::z_end_scifi - hlt::z_scifi_reference;
            p.scifi_seeds.x[to] = seed.curve.x(end);
            p.scifi_seeds.y[to] = seed.y + seed.ty * end;
            p.scifi_seeds.tx[to] = seed.curve.slope(end);
            p.scifi_seeds.ty[to] = seed.ty;
            p.scifi_seeds.curvature[to] = seed.curve.c;
            p.scifi_seeds.quality[to] = seed.chi2;
            p.scifi_seeds.hit_count[to] = static_cast<uint8_t>(seed.n_hits);
            for (uint32_t j = 0; j < hlt::max_scifi_track_hits; ++j)
                p.scifi_seeds.hits[to * hlt::max_scifi_track_hits + j] =
                    seed.hits[j] == hlt::no_scifi_hit ? static_cast<uint16_t>(hlt::no_scifi_hit) : number[seed.hits[j]];
        }
    }
    if (threadIdx.x == 0) {
        p.scifi_seeds.count[event] = hlt::min_of(n, hlt::max_scifi_seeds);
        if (n > hlt::max_scifi_seeds) p.events.flags[event] |= hlt::overflow;
    }
}
