// Following lines on a CPU: the lines of a tile go through memory, so that the arithmetic runs over full vectors.
#pragma once

#include "framework/device/vector8.cuh"
#include "lhcb/velo/tracking/triplet_lines.cuh"

namespace hlt {

constexpr uint32_t lines_of_tile = 256;

/// First the hits of the lines, then what follows from them.
struct line_tile {
    float step[lines_of_tile];
    float x[lines_of_tile], y[lines_of_tile], z[lines_of_tile];     // of b; then x and y at z = 0
    float tx[lines_of_tile], ty[lines_of_tile], tz[lines_of_tile];  // x, y and z of a; then slopes
    int32_t first_bin[lines_of_tile], last_bin[lines_of_tile];
};

/// Lowest rank of hits [begin, begin + n), n <= window_width, that are closer to line i than max_scatter: the bits of
/// the scatter, rank_bits of them replaced by the hit's place.
template <bool only_unused>
inline uint32_t lowest_rank(const line_tile& lines, uint32_t i, const velo_hits& hits, uint32_t begin, uint32_t n,
                            float max_scatter)
{
    const float line_x = lines.x[i], line_y = lines.y[i], tx = lines.tx[i], ty = lines.ty[i];
    float8 x, y, z;
    load8(x, &hits.x[begin]);
    load8(y, &hits.y[begin]);
    load8(z, &hits.z[begin]);
    const float8 dx = x - (line_x + tx * z);
    const float8 dy = y - (line_y + ty * z);
    const float8 scatter = dx * dx + dy * dy;
    const int8x32 lane{0, 1, 2, 3, 4, 5, 6, 7};
    int8x32 fits = (lane < static_cast<int32_t>(n)) & (scatter < max_scatter);
    if (only_unused) {
        int8x32 taken;
        load8(taken, &hits.used[begin]);
        fits &= taken == 0;
    }
    int8x32 rank;
    load8(rank, &scatter);
    rank = (rank & static_cast<int32_t>(~rank_bits)) | lane | ~fits;
    uint8x32 ranks;
    load8(ranks, &rank);
    return lowest_lane(ranks);
}

/// The closest hit of those in the bins of the window of line i.
template <bool only_unused>
inline closest_hit find_closest_hit(const line_tile& lines, uint32_t i, const velo_hits& hits,
                                    const line_target& target)
{
    const uint32_t begin = target.bins[lines.first_bin[i]];
    const uint32_t end = target.bins[lines.last_bin[i] + 1];
    const bool wraps = lines.last_bin[i] < lines.first_bin[i];
    if (!wraps && end - begin <= window_width) {
        const uint32_t rank = lowest_rank<only_unused>(lines, i, hits, begin, end - begin, target.max_scatter);
        return {rank != no_rank ? begin + (rank & rank_bits) : no_hit, rank & ~rank_bits};
    }
    // Up to the last hit of the pair, then on from its first.
    const uint32_t parts[2][2] = {{begin, wraps ? target.end : end}, {target.begin, wraps ? end : target.begin}};
    closest_hit best{no_hit, no_rank & ~rank_bits};
    for (const auto& part : parts) {
        for (uint32_t first = part[0]; first < part[1]; first += window_width) {
            const uint32_t n = min_of(part[1] - first, window_width);
            const uint32_t rank = lowest_rank<only_unused>(lines, i, hits, first, n, target.max_scatter);
            if ((rank & ~rank_bits) < best.scatter_bits) best = {first + (rank & rank_bits), rank & ~rank_bits};
        }
    }
    return best;
}

/// The line of each pair of hits, and its window.
inline void make_lines(line_tile& lines, uint32_t n, const line_target& target)
{
    float* __restrict__ x = lines.x;
    float* __restrict__ y = lines.y;
    const float* __restrict__ z = lines.z;
    const float* __restrict__ step = lines.step;
    float* __restrict__ tx = lines.tx;
    float* __restrict__ ty = lines.ty;
    const float* __restrict__ tz = lines.tz;
    int32_t* __restrict__ first_bin = lines.first_bin;
    int32_t* __restrict__ last_bin = lines.last_bin;
    for (uint32_t i = 0; i < n; ++i) {
        const line_in_pair line = line_through({{tx[i], ty[i], tz[i], 0}, {x[i], y[i], z[i], 0}, step[i]}, target);
        x[i] = line.x;
        y[i] = line.y;
        tx[i] = line.tx;
        ty[i] = line.ty;
        first_bin[i] = line.first_bin;
        last_bin[i] = line.last_bin;
    }
}

/// Find the hit closest to each of n lines. `line_at(i)` gives the two hits of line i and `take(i, found)` gets what is
/// found.
template <bool only_unused, typename LineAt, typename Take>
inline void follow_lines(const velo_hits& hits, const line_target& target, const line_share&, uint32_t n,
                         LineAt line_at, Take take)
{
    line_tile lines;
    for (uint32_t base = 0; base < n; base += lines_of_tile) {
        const uint32_t n_tile = min_of(n - base, lines_of_tile);
        for (uint32_t i = 0; i < n_tile; ++i) {
            const two_hits ends = line_at(base + i);
            lines.step[i] = ends.step;
            lines.x[i] = ends.b.x;
            lines.y[i] = ends.b.y;
            lines.z[i] = ends.b.z;
            lines.tx[i] = ends.a.x;
            lines.ty[i] = ends.a.y;
            lines.tz[i] = ends.a.z;
        }
        make_lines(lines, n_tile, target);
        for (uint32_t i = 0; i < n_tile; ++i) take(base + i, find_closest_hit<only_unused>(lines, i, hits, target));
    }
}

}  // namespace hlt
