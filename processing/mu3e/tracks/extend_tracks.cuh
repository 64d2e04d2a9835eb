// Tracks: fitted triplets with a hit in layer 3 and a recurling hit, where there are such hits.
//
// A particle that leaves the outer layer turns in the field and comes back through layers 3 and 2, in the middle or in
// a recurl station. Each added hit makes a triplet with the two hits before it; the radius has the smallest chi2 of all
// triplets together. In layer 3, and among the recurling hits near the helix, the hit with the smallest chi2 is taken.
// In: hits and the triplets of tracks. Out: tracks in the same order. One block per event, a thread takes a track. The
// CPU form has a pair of a track and a hit in each lane of a vector.
#pragma once

#include "mu3e/tracks/fit_triplets.cuh"
#include "mu3e/tracks/generated/mu3e_extend_tracks.h"

namespace hlt {

/// The triplets of a track and the radius of all together.
struct track_fit {
    triplet_terms<float> terms[3];
    uint32_t n;
    float radius, chi2;
};

/// The fit with one more triplet; chi2 is NaN for hits on a line.
__device__ __forceinline__ track_fit with_triplet(const track_fit& of, const triplet_terms<float>& added)
{
    track_fit found = of;
    found.terms[found.n++] = added;
    float square = 0.f, linear = 0.f;
    for (uint32_t t = 0; t < found.n; ++t) {
        const radius_sums<float> sums = sums_of(found.terms[t]);
        square += sums.square;
        linear += sums.linear;
    }
    found.radius = -linear / square;
    found.chi2 = 0.f;
    for (uint32_t t = 0; t < found.n; ++t) found.chi2 += chi2_at(found.terms[t], found.radius);
    return found;
}

/// Call found(hit) for each hit of a group less than `window` ns from a time.
template <typename Found>
__device__ __forceinline__ void for_hits_at(const event_hits& hits, uint32_t group, uint32_t time, uint32_t window,
                                            const Found& found)
{
    const uint32_t from = first_hit_from(hits, group, static_cast<int32_t>(time) - static_cast<int32_t>(window) + 1);
    for (uint32_t h = from; h < hits.begin[group + 1u] && time_of_hit(hits.word[h]) < time + window; ++h) found(h);
}

/// A helix of radius `radius` in space through two hits, from the second one on. `Lanes`: float, or a vector with a
/// helix in each lane.
template <typename Lanes>
struct leaving_helix {
    Lanes centre_x, centre_y, radius, slope, from_x, from_y, z, turn;
};

/// Segment of a helix between two hits: unit vector of its chord, sine of half of its angle, arc length and transverse
/// radius.
template <typename Lanes>
struct helix_segment {
    Lanes ux, uy, half_sine, half_cosine, arc, radius;
};

template <typename Lanes>
__device__ __forceinline__ helix_segment<Lanes> segment_of(const lane_position<Lanes>& a, const lane_position<Lanes>& b,
                                                           const Lanes& radius)
{
    const Lanes one = in_all_lanes<Lanes>(1.f);
    const Lanes dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z, square = dx * dx + dy * dy, chord = square_root(square);
    // The arc is longer than the chord by little, so a series in the sine of half of the angle is enough.
    Lanes arc = chord, transverse = radius, sine = Lanes{};
    for (uint32_t step = 0; step < 2u; ++step) {
        transverse = radius * arc / square_root(arc * arc + dz * dz);
        const Lanes ratio = chord / (transverse * 2.f);
        sine = one < ratio ? one : ratio;
        const Lanes squared = sine * sine;
        arc = chord * (squared * (squared * (3.f / 40.f) + 1.f / 6.f) + 1.f);
    }
    return {dx / chord, dy / chord, sine, square_root(one - sine * sine), arc, transverse};
}

template <typename Lanes>
__device__ __forceinline__ leaving_helix<Lanes> helix_behind(const lane_position<Lanes>& a,
                                                             const lane_position<Lanes>& b, const Lanes& radius,
                                                             const Lanes& turn)
{
    const helix_segment<Lanes> of = segment_of(a, b, radius);
    const Lanes sine = turn * of.half_sine;
    const Lanes tx = of.ux * of.half_cosine - of.uy * sine, ty = of.uy * of.half_cosine + of.ux * sine;
    const Lanes reach = turn * of.radius;
    return {b.x - reach * ty, b.y + reach * tx, of.radius, (b.z - a.z) / of.arc, b.x, b.y, b.z, turn};
}

/// Angle in radians from the start of a helix to a hit, from 0 to a whole turn. `Lanes`: a helix and a hit in each
/// lane.
template <typename Lanes>
__device__ __forceinline__ Lanes angle_along(const leaving_helix<Lanes>& helix, const lane_position<Lanes>& hit)
{
    const Lanes wx = helix.from_x - helix.centre_x, wy = helix.from_y - helix.centre_y;
    const Lanes vx = hit.x - helix.centre_x, vy = hit.y - helix.centre_y;
    const Lanes angle = atan2_approximate((vy * wx - vx * wy) * helix.turn, vx * wx + vy * wy);
    return angle < 0.f ? angle + 2.f * pi : angle;
}

/// The particle is where it left the layers after a whole turn, with less energy: hits in the first and the last part
/// of the turn, in radians, do not belong to it.
constexpr float min_recurl_angle = 0.5f, max_recurl_angle = 2.f * pi - min_recurl_angle;

/// Whether a hit is near a helix.
__device__ __forceinline__ bool is_near(const leaving_helix<float>& helix, const lane_position<float>& hit,
                                        float max_xy, float max_z)
{
    const float vx = hit.x - helix.centre_x, vy = hit.y - helix.centre_y;
    const float square = vx * vx + vy * vy, least = max_of(helix.radius - max_xy, 0.f), most = helix.radius + max_xy;
    if (!(square <= most * most && square >= least * least)) return false;
    const float angle = angle_along(helix, hit);
    if (angle < min_recurl_angle || angle > max_recurl_angle) return false;
    const float away = hit.z - (helix.z + angle * helix.radius * helix.slope);
    return away <= max_z && -away <= max_z;
}

/// Momentum in MeV/c at the first hit.
template <typename Lanes>
struct momentum_at_start {
    Lanes px, py, pz, size;
};

/// radius: in space, of the fit. turn: 1 for an anticlockwise turn, or -1. layers: crossed before the arc that decides
/// on the radius; the particle had more energy before them.
template <typename Parameters, typename Lanes>
__device__ __forceinline__ momentum_at_start<Lanes> momentum_of(const Parameters& p, const lane_position<Lanes>& a,
                                                                const lane_position<Lanes>& b, const Lanes& radius,
                                                                const Lanes& turn, const Lanes& layers)
{
    const helix_segment<Lanes> of = segment_of(a, b, radius);
    const Lanes sine = -turn * of.half_sine;
    const Lanes momentum = radius * p.mev_per_mm, transverse = of.radius * p.mev_per_mm;
    const Lanes corrected = momentum + layers * p.energy_loss, per_momentum = corrected / momentum;
    return {transverse * per_momentum * (of.ux * of.half_cosine - of.uy * sine),
            transverse * per_momentum * (of.uy * of.half_cosine + of.ux * sine),
            transverse * per_momentum * ((b.z - a.z) / of.arc), corrected};
}

/// A track with n_triplets triplets. layer3, recurl: added hits, or no_pixel.
template <typename Parameters>
__device__ __forceinline__ mu3e_track track_of(const Parameters& p, const event_hits& hits, uint64_t triplet,
                                               const momentum_at_start<float>& momentum, float chi2, float turn,
                                               uint32_t n_triplets, uint32_t layer3, uint32_t recurl)
{
    const uint32_t i = hit_of_triplet(triplet, 0), j = hit_of_triplet(triplet, 1), k = hit_of_triplet(triplet, 2);
    const uint32_t reach = reach_of(p);
    const uint32_t t0 = time_of_hit(hits.word[i]), t1 = time_of_hit(hits.word[j]), t2 = time_of_hit(hits.word[k]);
    mu3e_track track;
    track.x = hits.x[i];
    track.y = hits.y[i];
    track.z = hits.z[i];
    track.px = momentum.px;
    track.py = momentum.py;
    track.pz = momentum.pz;
    track.momentum = momentum.size;
    track.chi2 = chi2;
    track.time = static_cast<float>(t0 + t1 + t2) / 3.f - static_cast<float>(reach);
    // In a field along +z, a positive particle turns clockwise.
    track.charge = turn < 0.f ? 1 : -1;
    track.hits = 2u + n_triplets;
    track.first = min_of(t0, min_of(t1, t2)) - reach;
    track.last = max_of(t0, max_of(t1, t2)) - reach;
    track.pixel0 = pixel_of_hit(hits.word[i]);
    track.pixel1 = pixel_of_hit(hits.word[j]);
    track.pixel2 = pixel_of_hit(hits.word[k]);
    track.pixel3 = layer3 == no_pixel ? uint32_t{no_pixel} : pixel_of_hit(hits.word[layer3]);
    track.recurl = recurl == no_pixel ? uint32_t{no_pixel} : pixel_of_hit(hits.word[recurl]);
    return track;
}

/// Layers before the arc that decides on the radius: the recurling one, or those of the inner triplet.
__device__ __forceinline__ float layers_before_arc(uint32_t n_triplets, uint32_t recurl)
{
    return recurl == no_pixel ? 2.f : static_cast<float>(n_triplets + 1u);
}

template <typename Parameters>
__device__ mu3e_track extend_track(const Parameters& p, const event_hits& hits, uint64_t triplet)
{
    const fit_errors errors = errors_of(p);
    const uint32_t k = hit_of_triplet(triplet, 2);
    const lane_position<float> first = position_at(hits, hit_of_triplet(triplet, 0)),
                               middle = position_at(hits, hit_of_triplet(triplet, 1)), last = position_at(hits, k);
    uint32_t time = time_of_hit(hits.word[k]);
    for (uint32_t layer = 0; layer < 2u; ++layer)
        time = min_of(time, time_of_hit(hits.word[hit_of_triplet(triplet, layer)]));
    const triplet_terms<float> inner = terms_of_triplet(first, middle, last, errors);
    const track_fit alone = with_triplet(track_fit{{}, 0, 0.f, 0.f}, inner);
    const float turn = inner.turn < 0.f ? -1.f : 1.f;

    track_fit best = alone;
    best.chi2 = p.max_chi2_long;
    uint32_t layer3 = no_pixel, recurl = no_pixel;
    for_hits_at(hits, 3u, time, p.hit_window, [&](uint32_t h) {
        const lane_position<float> at = position_at(hits, h);
        const float dx = at.x - last.x, dy = at.y - last.y, dz = at.z - last.z;
        if (!(dx * dx + dy * dy <= p.max_xy23 * p.max_xy23 && dz <= p.max_z23 && -dz <= p.max_z23)) return;
        const triplet_terms<float> outer = terms_of_triplet(middle, last, at, errors);
        if (!(outer.turn * turn > 0.f)) return;
        const track_fit with = with_triplet(alone, outer);
        if (with.chi2 < best.chi2) {
            best = with;
            layer3 = h;
        }
    });
    const track_fit central = layer3 == no_pixel ? alone : best;
    const lane_position<float> a = layer3 == no_pixel ? middle : last,
                               b = layer3 == no_pixel ? last : position_at(hits, layer3);
    const leaving_helix<float> helix = helix_behind(a, b, central.radius, turn);
    best = central;
    best.chi2 = central.chi2 + p.max_chi2_recurl;
    // Layer 3 first: a hit in layer 2 has scattered once more on its way.
    for (uint32_t layer = 3; layer >= 2u && recurl == no_pixel; --layer)
        for (uint32_t group = layer; group <= layer + mu3e_recurl_groups; group += mu3e_recurl_groups)
            for_hits_at(hits, group, time, p.recurl_window, [&](uint32_t h) {
                const lane_position<float> at = position_at(hits, h);
                if (h == k || h == layer3 || !is_near(helix, at, p.max_recurl_xy, p.max_recurl_z)) return;
                const triplet_terms<float> back = terms_of_triplet(a, b, at, errors);
                if (!(back.turn * turn > 0.f)) return;
                const track_fit with = with_triplet(central, back);
                if (with.chi2 < best.chi2) {
                    best = with;
                    recurl = h;
                }
            });
    const track_fit fit = recurl == no_pixel ? central : best;
    return track_of(p, hits, triplet, momentum_of(p, first, middle, fit.radius, turn, layers_before_arc(fit.n, recurl)),
                    fit.chi2, turn, fit.n, layer3, recurl);
}

}  // namespace hlt

HLT_KERNEL(mu3e_extend_tracks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const hlt::event_hits hits = hlt::hits_of_event(p, event);
    const uint32_t n = p.mu3e_tracks.count[event], first = p.mu3e_tracks.first(event);
    for (uint32_t t = threadIdx.x; t < n; t += blockDim.x)
        p.mu3e_tracks.track[first + t] = hlt::extend_track(p, hits, p.mu3e_tracks.fitted[first + t]);
}
