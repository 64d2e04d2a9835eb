// The form of velo_follow_tracks for the CPU: sixteen lines, in the lanes of one vector register or of two, are
// compared with one hit after the other.
//
// The free hits of the planes of a seeding step are packed, so that used hits cost nothing. The lines through a middle
// hit and its eight partners are made together and packed too, so that no lane is empty.
// The circle has 32 sectors, one for each bit of a word. A line has all sectors in which a hit can be near enough. Hits
// outside all sectors of sixteen lines are not compared with these lines. The result equals that of a comparison with
// all hits, because a line never has too few sectors.
// Scratch: planes, columns of `stride` places each: downstream x, y, z and phi with the number of the hit above it,
// upstream x, y, z, the same and the sector, the numbers of the middle hits, and the sectors of all hits. Packing
// always writes eight places, so it reaches place 4 + hits + 8.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/velo/hit.cuh"
#include "lhcb/velo/tracking/follow_tracks.cuh"

namespace hlt {

constexpr uint32_t line_tile_size = 256;
constexpr uint32_t lines_at_once = 16;
constexpr uint32_t hit_tile_size = 256;
constexpr uint32_t every_sector = 0xffffffffu;
constexpr uint32_t sector_shift = 11;   // 32 sectors of 2^16 units of phi
constexpr float widest_sine = 0.9f;     // with a larger one a line has every sector
constexpr float largest_radius = 1e6f;  // mm; damaged geometry could make a line of infinite numbers
constexpr int32_t sector_margin = 16;   // units of phi: phi of a hit is truncated, and sectors are rounded
constexpr uint32_t half_partners = n_seed_partners / 2u;
static_assert(n_seed_partners == 8u && line_tile_size % lines_at_once == 0u);

// Sixteen lines in registers of the machine; one vector of all without AVX2, where this form is not used.
#if defined(__AVX2__)
using line_floats = float_wide;
using line_integers = int_wide;
#else
using line_floats = float __attribute__((vector_size(64)));
using line_integers = int32_t __attribute__((vector_size(64)));
#endif
constexpr uint32_t vectors_at_once = lines_at_once * sizeof(float) / sizeof(line_floats);

/// Lines, and the closest hit of each: its place among the searched hits, or a negative number.
struct line_block {
    float x[line_tile_size + 8], y[line_tile_size + 8], tx[line_tile_size + 8], ty[line_tile_size + 8];
    uint32_t of[line_tile_size + 8];  // owner of the line
    uint32_t sectors[line_tile_size];
    float scatter[line_tile_size];
    int32_t closest[line_tile_size];
};

/// The hits of a plane.
struct plane_columns {
    const float *x, *y, *z;
    const uint32_t* sector;  // the bit of each
    uint32_t n;
    float middle_z, half_depth;  // mm
};

/// The sectors of phi in which a hit of a plane can be closer to a line than the root of max_scatter.
inline uint32_t sectors_of(const candidate_line& line, const plane_columns& plane, float max_distance)
{
    const float x = line.x + line.tx * plane.middle_z, y = line.y + line.ty * plane.middle_z;
    const float r = sqrtf(x * x + y * y);
    const float across = line.x * line.ty - line.y * line.tx;
    const float room =
        r - sqrtf(line.tx * line.tx + line.ty * line.ty) * plane.half_depth;  // least radius in the plane
    // Sines of two angles, from the line at middle_z to elsewhere in the plane, and from there to a hit. The arc sine
    // of their sum is larger than the sum of both angles; asin(s) <= s + (pi / 2 - 1) s^3.
    const float sine = (max_distance + (across < 0.f ? -across : across) * plane.half_depth / r) / room;
    const bool is_bounded = room > 0.f && sine < widest_sine && r < largest_radius;
    const float bounded = is_bounded ? sine : 0.f;
    const float angle = bounded + (0.5f * pi - 1.f) * bounded * bounded * bounded;
    const int32_t tolerance = static_cast<int32_t>(angle * velo_phi_units_per_radian) + sector_margin;
    const float angle_of_line = atan2_approximate(is_bounded ? y : 0.f, is_bounded ? x : 1.f);
    const int32_t phi = static_cast<int32_t>(angle_of_line * velo_phi_units_per_radian);
    const uint32_t low = static_cast<uint32_t>(phi - tolerance + 0x20000) >> sector_shift;
    const uint32_t high = static_cast<uint32_t>(phi + tolerance + 0x20000) >> sector_shift;
    const uint32_t from_first = (2u << (high - low)) - 1u, first = low % 32u;  // a window of less than pi
    return is_bounded ? from_first << first | from_first >> (32u - first) % 32u : every_sector;
}

/// List the hits of a plane that lie in one of these sectors, among at most hit_tile_size hits from `begin` on. Returns
/// their number.
inline uint32_t list_near_hits(const plane_columns& plane, uint32_t begin, uint32_t sectors, uint32_t* near)
{
    const uint32_t end = min_of(plane.n, begin + hit_tile_size);
    uint32_t n = 0;
    for (uint32_t first = begin; first < end; first += 8u) {
        uint8x32 of_hits;
        load8(of_hits, plane.sector + first);
        const uint32_t left = end - first;
        const uint32_t bits = bits_of((of_hits & sectors) != 0u) & (left < 8u ? (1u << left) - 1u : 0xffu);
        store_packed(near + n, lane_numbers + first, bits);
        n += static_cast<uint32_t>(__popc(bits));
    }
    return n;
}

/// Compare n lines with the hits of a plane, sixteen lines at a time. The first one of equally close hits counts.
inline void compare_lines(line_block& lines, uint32_t n, const plane_columns& plane, float max_scatter)
{
    const float max_distance = sqrtf(max_scatter);
    for (uint32_t i = 0; i < n; ++i)
        lines.sectors[i] = sectors_of({lines.x[i], lines.y[i], lines.tx[i], lines.ty[i]}, plane, max_distance);
    for (uint32_t first = 0; first < n; first += lines_at_once) {
        uint32_t sectors = 0;
        for (uint32_t i = first; i < min_of(n, first + lines_at_once); ++i) sectors |= lines.sectors[i];
        line_floats x[vectors_at_once], y[vectors_at_once], tx[vectors_at_once], ty[vectors_at_once];
        line_floats best[vectors_at_once];
        line_integers closest[vectors_at_once];
        std::memcpy(&x, lines.x + first, sizeof x);
        std::memcpy(&y, lines.y + first, sizeof y);
        std::memcpy(&tx, lines.tx + first, sizeof tx);
        std::memcpy(&ty, lines.ty + first, sizeof ty);
        for (uint32_t v = 0; v < vectors_at_once; ++v) {
            best[v] = line_floats{} + max_scatter;
            closest[v] = line_integers{} - 1;
        }
        for (uint32_t begin = 0; begin < plane.n; begin += hit_tile_size) {
            uint32_t near[hit_tile_size + 8];
            const uint32_t n_near = list_near_hits(plane, begin, sectors, near);
            for (uint32_t i = 0; i < n_near; ++i) {
                const uint32_t h = near[i];
                const auto compare = [&](uint32_t v) __attribute__((always_inline)) {
                    const line_floats dx = plane.x[h] - (x[v] + tx[v] * plane.z[h]);
                    const line_floats dy = plane.y[h] - (y[v] + ty[v] * plane.z[h]);
                    const line_floats scatter = dx * dx + dy * dy;
                    const line_integers closer = scatter < best[v];
                    best[v] = closer ? scatter : best[v];
                    closest[v] = closer ? line_integers{} + static_cast<int32_t>(h) : closest[v];
                };
                compare(0);
                if constexpr (vectors_at_once == 2u) compare(1);
            }
        }
        std::memcpy(lines.scatter + first, &best, sizeof best);
        std::memcpy(lines.closest + first, &closest, sizeof closest);
    }
}

/// Call `pack(first, bits)` for the free hits of each eight places of a pair. Returns the number of free hits.
template <typename Pack>
inline uint32_t pack_free_hits(const track_following& following, uint32_t pair, Pack pack)
{
    const uint32_t end = following.pair_offset[pair + 1u];
    uint32_t n = 0;
    for (uint32_t first = following.pair_offset[pair]; first < end; first += 8u) {
        int8x32 used;
        load8(used, following.used + first);
        const uint32_t left = end - first;
        const uint32_t bits = bits_of(used == 0) & (left < 8u ? (1u << left) - 1u : 0xffu);
        pack(first, n, bits);
        n += static_cast<uint32_t>(__popc(bits));
    }
    return n;
}

/// The eight hits from `first` on: phi, and the number above it.
inline uint8x32 phi_and_hit8(const track_following& following, uint32_t first)
{
    uint8x16 phi;
    load8(phi, following.phi + first);
    return widened(phi) | (lane_numbers + first) << 16;
}

template <typename Word>
inline void pack_column(Word* to, const Word* from, uint32_t bits)
{
    float8 values;
    load8(values, from);
    store_packed(to, values, bits);
}

/// The three planes of a seeding step.
struct seeding_planes {
    float *down_x, *down_y, *down_z;
    uint32_t* down_hit;
    float *up_x, *up_y, *up_z;
    uint32_t *up_hit, *up_sector;
    uint32_t* middle;
    uint32_t* sector;  // of all hits
    uint32_t n_down, n_up, n_middle;

    /// Pack the free hits of the three planes.
    void pack(const track_following& from, uint32_t pair)
    {
        n_middle = pack_free_hits(from, pair, [&](uint32_t first, uint32_t n, uint32_t bits) {
            store_packed(middle + n, lane_numbers + first, bits);
        });
        n_down = pack_free_hits(from, pair + 1u, [&](uint32_t first, uint32_t n, uint32_t bits) {
            const uint32_t at = half_partners + n;
            pack_column(down_x + at, from.x + first, bits);
            pack_column(down_y + at, from.y + first, bits);
            pack_column(down_z + at, from.z + first, bits);
            store_packed(down_hit + at, phi_and_hit8(from, first), bits);
        });
        n_up = pack_free_hits(from, pair - 1u, [&](uint32_t first, uint32_t n, uint32_t bits) {
            pack_column(up_x + n, from.x + first, bits);
            pack_column(up_y + n, from.y + first, bits);
            pack_column(up_z + n, from.z + first, bits);
            pack_column(up_sector + n, sector + first, bits);
            store_packed(up_hit + n, lane_numbers + first, bits);
        });
        wrap();
    }

  private:
    /// Fill the places before and behind the hits downstream: with hits from the other end, because phi wraps, or with
    /// no hits if all are partners.
    void wrap()
    {
        for (uint32_t i = 0; i < half_partners; ++i) {
            const uint32_t behind = half_partners + n_down + i;
            if (n_down > n_seed_partners) {
                copy(i, n_down + i);
                copy(behind, half_partners + i);
            } else {
                down_x[i] = not_a_coordinate();
                for (uint32_t k = behind; k < half_partners + n_seed_partners; ++k) down_x[k] = not_a_coordinate();
            }
        }
    }

    static float not_a_coordinate() { return __uint_as_float(0x7fc00000u); }
    void copy(uint32_t to, uint32_t from)
    {
        down_x[to] = down_x[from];
        down_y[to] = down_y[from];
        down_z[to] = down_z[from];
        down_hit[to] = down_hit[from];
    }
};

/// All hits of a pair.
inline plane_columns plane_of(const track_following& following, const uint32_t* sector, uint32_t pair)
{
    const uint32_t begin = following.pair_offset[pair], n = following.pair_offset[pair + 1u] - begin;
    const float* const z = following.z + begin;
    float lowest = n > 0u ? z[0] : 0.f, highest = lowest;
    for (uint32_t h = 1; h < n; ++h) {
        lowest = z[h] < lowest ? z[h] : lowest;
        highest = z[h] > highest ? z[h] : highest;
    }
    return {following.x + begin,       following.y + begin,      z, sector + begin, n,
            0.5f * (lowest + highest), 0.5f * (highest - lowest)};
}

/// look_for_next_hits, sixteen candidates at a time.
inline void look_for_next_hits_in_vectors(track_following& following, const plane_columns& plane, uint32_t begin,
                                          line_block& lines)
{
    for (uint32_t base = 0; base < following.n_candidates; base += line_tile_size) {
        const uint32_t n = min_of(following.n_candidates - base, line_tile_size);
        float az[line_tile_size], bz[line_tile_size], ax[line_tile_size], ay[line_tile_size];
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t last_two = following.candidates[base + i].last_two;
            const uint32_t a = last_two & 0xffffu, b = last_two >> 16;
            ax[i] = following.x[a];
            ay[i] = following.y[a];
            az[i] = following.z[a];
            lines.x[i] = following.x[b];
            lines.y[i] = following.y[b];
            bz[i] = following.z[b];
        }
        for (uint32_t i = 0; i < n; ++i) {
            const candidate_line line = line_of(ax[i], ay[i], az[i], lines.x[i], lines.y[i], bz[i]);
            lines.x[i] = line.x;
            lines.y[i] = line.y;
            lines.tx[i] = line.tx;
            lines.ty[i] = line.ty;
        }
        compare_lines(lines, n, plane, following.max_follow_scatter);
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t hit = lines.closest[i] < 0 ? nothing_found : begin + static_cast<uint32_t>(lines.closest[i]);
            note_found(following, base + i, hit, lines.scatter[i]);
        }
    }
}

/// Append the lines of a middle hit with the eight hits downstream from `first` on. Returns the number of lines.
inline uint32_t append_lines(const track_following& following, const seeding_planes& planes, uint32_t middle,
                             uint32_t first, line_block& lines, uint32_t n)
{
    float8 x, y, z;
    uint8x32 hit;
    load8(x, planes.down_x + first);
    load8(y, planes.down_y + first);
    load8(z, planes.down_z + first);
    load8(hit, planes.down_hit + first);
    const uint32_t b = planes.middle[middle];
    const float bx = following.x[b], by = following.y[b], bz = following.z[b];
    const uint8x32 shifted = (hit - static_cast<uint16_t>(following.phi[b])) << 16;
    int8x32 turn;
    load8(turn, &shifted);
    turn >>= 16;
    const int8x32 distance = turn < 0 ? -turn : turn;
    const float8 dx = x - bx, dy = y - by, dz = z - bz;
    const float8 r2 = dx * dx + dy * dy, dz2 = dz * dz;
    const int8x32 displaced = distance > following.phi_tolerance;
    const int8x32 flat =
        (displaced & (r2 <= following.max_displaced_slope2 * dz2)) | (~displaced & (r2 <= following.max_slope2 * dz2));
    const uint32_t bits = bits_of((distance <= following.displaced_phi_tolerance) & flat);
    const float8 per_z = 1.f / dz;
    const float8 tx = dx * per_z, ty = dy * per_z;
    store_packed(lines.x + n, bx - tx * bz, bits);
    store_packed(lines.y + n, by - ty * bz, bits);
    store_packed(lines.tx + n, tx, bits);
    store_packed(lines.ty + n, ty, bits);
    store_packed(lines.of + n, (hit >> 16) | middle << 16, bits);
    return n + static_cast<uint32_t>(__popc(bits));
}

/// seed_candidates, sixteen lines at a time.
inline void seed_candidates_in_vectors(track_following& following, const seeding_planes& planes,
                                       const plane_columns& upstream, line_block& lines)
{
    constexpr uint32_t tile = line_tile_size / n_seed_partners;  // of middle hits
    const plane_columns up{planes.up_x, planes.up_y,       planes.up_z,        planes.up_sector,
                           planes.n_up, upstream.middle_z, upstream.half_depth};
    uint32_t nearest = 0;
    for (uint32_t base = 0; base < planes.n_middle; base += tile) {
        const uint32_t n_tile = min_of(planes.n_middle - base, tile);
        uint32_t n = 0;
        for (uint32_t m = 0; m < n_tile; ++m) {
            const int32_t phi = following.phi[planes.middle[base + m]];
            while (nearest < planes.n_down &&
                   static_cast<int16_t>(planes.down_hit[half_partners + nearest] & 0xffffu) < phi)
                ++nearest;
            const uint32_t first = planes.n_down > n_seed_partners ? nearest : min_of(planes.n_down, half_partners);
            n = append_lines(following, planes, base + m, first, lines, n);
        }
        compare_lines(lines, n, up, following.max_seed_scatter);
        for (uint32_t i = 0; i < n;) {
            const uint32_t middle = lines.of[i] >> 16;
            float closest = following.max_seed_scatter;
            uint32_t best = line_tile_size;
            for (; i < n && lines.of[i] >> 16 == middle; ++i) {
                if (lines.closest[i] >= 0 && lines.scatter[i] < closest) {
                    closest = lines.scatter[i];
                    best = i;
                }
            }
            if (best == line_tile_size) continue;
            put_seed(following, following.n_seeds++, following.n_candidates++, lines.of[best] & 0xffffu,
                     planes.middle[middle], planes.up_hit[lines.closest[best]]);
        }
    }
}

}  // namespace hlt

HLT_CPU_FORM(velo_follow_tracks)
{
    if (!hlt::compares_eight_lanes) return velo_follow_tracks(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    hlt::track_following following = hlt::start_following(p, event);
    const uint32_t n_hits = p.velo_clusters.count[event];
    const uint32_t n_places = p.velo_clusters.bound[event] + hlt::velo_hit_padding;
    std::memset(following.used, 0, n_hits * sizeof(uint32_t));
    std::memset(following.bid, 0xff, n_hits * sizeof(uint32_t));
    if (n_hits >= 3u) {
        constexpr uint32_t n_columns = 11;
        const uint32_t stride = hlt::planes_width * n_places / n_columns;
        float* const column = hlt::planes_of_event(p, event);
        const auto words = [&](uint32_t i) { return reinterpret_cast<uint32_t*>(column + i * stride); };
        hlt::seeding_planes planes{column,
                                   column + stride,
                                   column + 2u * stride,
                                   words(3),
                                   column + 4u * stride,
                                   column + 5u * stride,
                                   column + 6u * stride,
                                   words(7),
                                   words(8),
                                   words(9),
                                   words(10),
                                   0,
                                   0,
                                   0};
        for (uint32_t i = 0; i < n_hits; ++i)
            planes.sector[i] = 1u << (static_cast<uint16_t>(following.phi[i]) >> hlt::sector_shift);
        hlt::line_block lines{};
        for (uint32_t pair = hlt::n_velo_module_pairs - 2u; pair >= 1u; --pair) {
            const hlt::plane_columns upstream = hlt::plane_of(following, planes.sector, pair - 1u);
            hlt::look_for_next_hits_in_vectors(following, upstream, following.pair_offset[pair - 1u], lines);
            uint32_t none[1];
            hlt::extend_candidates(following, none);
            planes.pack(following, pair);
            hlt::seed_candidates_in_vectors(following, planes, upstream, lines);
        }
    }
    p.velo_tracks.candidate_count[event] = following.n_tracks;
    p.velo_seeds.count[event] = following.n_seeds;
    if (following.overflow) p.events.flags[event] |= static_cast<uint32_t>(hlt::overflow);
}
