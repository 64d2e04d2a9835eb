// The form of velo_follow_tracks for the CPU: sixteen lines, in the lanes of one vector register or of two, are
// compared with one hit after the other.
//
// The free hits of the planes of a seeding step are packed, so that used hits cost nothing. The lines through a middle
// hit and its partners are made together and packed too, so that no lane is empty.
// The circle has 32 sectors, one for each bit of a word. A line has all sectors in which a hit can be near enough. Hits
// outside all sectors of sixteen lines are not compared with these lines. The result equals that of a comparison with
// all hits, because a line never has too few sectors.
// Scratch: planes, columns of `stride` places each: downstream x, y, z and phi with the number of the hit above it,
// upstream x, y, z, the same and the sector, the numbers of the middle hits, and the sectors of all hits. Packing
// always writes eight places, so it reaches place 6 + hits + 8.
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
constexpr uint32_t room_for_partners = max_seed_partners / 2u + 1u;  // on either side of a plane
static_assert(max_seed_partners <= 16u && line_tile_size % lines_at_once == 0u);

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

/// Call `pack(first, n, bits)` for each eight places of the pair of a plane: bits of the hits in the plane, only the
/// free ones if `free` is set, and the number of hits before. Returns the number of hits.
template <bool free, typename Pack>
inline uint32_t pack_hits(const track_following& following, const hit_plane& plane, Pack pack)
{
    const uint32_t end = following.end_of_hits(plane);
    uint32_t n = 0;
    for (uint32_t first = following.first_hit(plane); first < end; first += 8u) {
        const uint32_t left = end - first;
        uint32_t bits = left < 8u ? (1u << left) - 1u : 0xffu;
        if constexpr (free) {
            int8x32 used;
            load8(used, following.used + first);
            bits &= bits_of(used == 0);
        }
        if (plane.sides != both_sides) {
            uint8x32 id;
            load8(id, following.id + first);
            bits &= bits_of((id >> 20 & 1u) == plane.sides >> 1);
        }
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
    void pack(const track_following& from, const hit_plane& down, const hit_plane& of_middle, const hit_plane& up)
    {
        n_middle = pack_hits<true>(from, of_middle, [&](uint32_t first, uint32_t n, uint32_t bits) {
            store_packed(middle + n, lane_numbers + first, bits);
        });
        n_down = pack_hits<true>(from, down, [&](uint32_t first, uint32_t n, uint32_t bits) {
            const uint32_t at = room_for_partners + n;
            pack_column(down_x + at, from.x + first, bits);
            pack_column(down_y + at, from.y + first, bits);
            pack_column(down_z + at, from.z + first, bits);
            store_packed(down_hit + at, phi_and_hit8(from, first), bits);
        });
        n_up = pack_up<true>(from, up);
        wrap(from.n_partners);
    }

    /// Pack the hits upstream, used ones included.
    void pack_all(const track_following& from, const hit_plane& up) { n_up = pack_up<false>(from, up); }

  private:
    template <bool free>
    uint32_t pack_up(const track_following& from, const hit_plane& up)
    {
        return pack_hits<free>(from, up, [&](uint32_t first, uint32_t n, uint32_t bits) {
            pack_column(up_x + n, from.x + first, bits);
            pack_column(up_y + n, from.y + first, bits);
            pack_column(up_z + n, from.z + first, bits);
            pack_column(up_sector + n, sector + first, bits);
            store_packed(up_hit + n, lane_numbers + first, bits);
        });
    }

    /// Fill the places before and behind the hits downstream: with hits from the other end, because phi wraps, or with
    /// no hits if all are partners.
    void wrap(uint32_t n_partners)
    {
        constexpr uint32_t room = room_for_partners;
        if (n_down > n_partners) {
            // The places of fewer hits than there is room for are filled several times around.
            for (uint32_t i = room; i > 0u; --i) copy(i - 1u, i - 1u + n_down);
            for (uint32_t i = 0; i < room; ++i) copy(room + n_down + i, room + i);
        } else {
            for (uint32_t k = n_down; k < n_partners; ++k) down_x[room + k] = not_a_coordinate();
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

/// The hits of a plane, with the z where they lie.
inline plane_columns with_depth(const plane_columns& hits)
{
    plane_columns plane = hits;
    float lowest = hits.n > 0u ? hits.z[0] : 0.f, highest = lowest;
    for (uint32_t h = 1; h < hits.n; ++h) {
        lowest = hits.z[h] < lowest ? hits.z[h] : lowest;
        highest = hits.z[h] > highest ? hits.z[h] : highest;
    }
    plane.middle_z = 0.5f * (lowest + highest);
    plane.half_depth = 0.5f * (highest - lowest);
    return plane;
}

/// All hits of a plane. Those of one side are packed first.
inline plane_columns plane_of(const track_following& following, seeding_planes& planes, const hit_plane& plane)
{
    if (plane.sides != both_sides) {
        planes.pack_all(following, plane);
        return with_depth({planes.up_x, planes.up_y, planes.up_z, planes.up_sector, planes.n_up, 0.f, 0.f});
    }
    const uint32_t begin = following.first_hit(plane);
    return with_depth({following.x + begin, following.y + begin, following.z + begin, planes.sector + begin,
                       following.end_of_hits(plane) - begin, 0.f, 0.f});
}

/// look_for_next_hits, sixteen candidates at a time. The hits of the plane follow `begin`, or are those of a list.
inline void look_for_next_hits_in_vectors(track_following& following, const plane_columns& plane, uint32_t begin,
                                          const uint32_t* list, line_block& lines)
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
            uint32_t hit = nothing_found;
            if (lines.closest[i] >= 0) {
                const uint32_t place = static_cast<uint32_t>(lines.closest[i]);
                hit = list != nullptr ? list[place] : begin + place;
            }
            note_found(following, base + i, hit, lines.scatter[i]);
        }
    }
}

/// Append the lines of a middle hit with up to eight hits downstream from `first` on: those of the bits `wanted`.
/// Returns the number of lines.
inline uint32_t append_lines(const track_following& following, const seeding_planes& planes, uint32_t middle,
                             uint32_t first, uint32_t wanted, line_block& lines, uint32_t n)
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
    const uint32_t bits = bits_of((distance <= following.displaced_phi_tolerance) & flat) & wanted;
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
    const uint32_t n_partners = following.n_partners, half = n_partners / 2u;
    const uint32_t tile = line_tile_size / n_partners;  // of middle hits
    const uint32_t first_eight = (1u << min_of(n_partners, 8u)) - 1u, others = ((1u << n_partners) - 1u) >> 8;
    const plane_columns up{planes.up_x, planes.up_y,       planes.up_z,        planes.up_sector,
                           planes.n_up, upstream.middle_z, upstream.half_depth};
    uint32_t nearest = 0;
    for (uint32_t base = 0; base < planes.n_middle; base += tile) {
        const uint32_t n_tile = min_of(planes.n_middle - base, tile);
        uint32_t n = 0;
        for (uint32_t m = 0; m < n_tile; ++m) {
            const int16_t phi = following.phi[planes.middle[base + m]];
            const auto phi_of = [&](uint32_t place) { return static_cast<int16_t>(planes.down_hit[place] & 0xffffu); };
            while (nearest < planes.n_down && phi_of(room_for_partners + nearest) < phi) ++nearest;
            uint32_t first = room_for_partners;
            if (planes.n_down > n_partners) {
                const uint32_t above = room_for_partners + nearest + half;
                const int32_t start = first_partner(n_partners, phi_distance(phi_of(above - 2u * half - 1u), phi),
                                                    phi_distance(phi_of(above), phi));
                first = room_for_partners + nearest + static_cast<uint32_t>(start);
            }
            n = append_lines(following, planes, base + m, first, first_eight, lines, n);
            if (others != 0u) n = append_lines(following, planes, base + m, first + 8u, others, lines, n);
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
            if (following.n_seeds == following.max_seeds) {
                following.overflow = true;
                continue;
            }
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
        hlt::plane_columns upstream{};
        hlt::take_steps(
            following,
            [&](const hlt::hit_plane& up) {
                upstream = hlt::plane_of(following, planes, up);
                const uint32_t* const list = up.sides == hlt::both_sides ? nullptr : planes.up_hit;
                hlt::look_for_next_hits_in_vectors(following, upstream, following.first_hit(up), list, lines);
                uint32_t none[1];
                hlt::extend_candidates(following, none);
            },
            [&](const hlt::hit_plane& down, const hlt::hit_plane& middle, const hlt::hit_plane& up) {
                planes.pack(following, down, middle, up);
                hlt::seed_candidates_in_vectors(following, planes, upstream, lines);
            });
    }
    p.velo_tracks.candidate_count[event] = following.n_tracks;
    p.velo_seeds.count[event] = following.n_seeds;
    if (following.overflow) p.events.flags[event] |= static_cast<uint32_t>(hlt::overflow);
}
