// Extension of VELO tracks downstream: the hits that a search from the last plane to the first cannot reach
// (docs/physics/velo-tracking.md, "Extension downstream").
//
// A search that begins with three neighbouring pairs misses the last hits of a particle that left no hit in one of its
// last three pairs. Here the line through the first two hits of a track is followed downstream to the next pairs. The
// closest hit that no track has is taken. If several tracks would take a hit, the track that passes closest gets it,
// and the others end. So all tracks take their next hit in a round, until no track finds one.
//
// In:  velo_hits.{x, y, z, phi, id}, velo_hits.module_pair_offset, velo_hits.phi_bin_offset, velo_geometry,
//      velo_tracks.count. Out: velo_tracks.hits, from large to small z, and velo_tracks.hit_count.
// Scratch: points [hit]: all hits once more, so that one access loads a hit; taken [hit]: 1 for a hit on a track;
//      hit_bid [hit]; found [track]: the hit that it found, above it the upper bits of the scatter.
// One block per event; threads stride over hits and over tracks. Marks and tracks change only between two barriers, in
// which nothing is searched, so the result does not depend on the threads. The upper 16 bits of two scatters are
// compared; if they are equal, the track with the smaller number gets the hit.
// Planes are module pairs here, whatever `plane_kind` of velo_follow_tracks is. velo_hits.used is not changed.
// Bounds: a track gets at least one hit in a round or ends, so there are at most as many rounds as pairs. A track with
// max_velo_track_hits hits, which only single modules as planes can make, gets no more.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/velo/tracking/generated/velo_extend_downstream.h"
#include "lhcb/velo/tracking/triplet_lines.cuh"

namespace hlt {

/// A quarter of the circle, which limits no window: a line passes the beam at more than the root of max_scatter.
constexpr float widest_phi_tolerance = 16383.f;

/// No hit lies farther from the z of the first module of its pair (mm).
constexpr float deepest_pair = 25.f;

/// Smallest and largest distance of the hits of an event from the z axis, as the bits of its square (mm^2).
struct radius_bits {
    uint32_t least, most;
};

/// Module pair of a hit, from its LHCbID: a pair has eight sensors.
__device__ uint32_t module_pair_of(uint32_t id) { return id >> 21 & 0x1fu; }

/// The closest free hit in the first pair downstream that has one near the line through the first two hits of a track.
__device__ closest_hit find_downstream(const velo_extend_downstream_parameters& p, const velo_hits& hits,
                                       const uint32_t* id, const radius_bits& radius, const uint16_t* track)
{
    const float* const module_z = p.velo_geometry->module_z;
    const uint32_t own = module_pair_of(id[track[0]]);
    const uint32_t end = min_of(own + 2u + p.max_skipped_pairs, n_velo_module_pairs);
    closest_hit closest{no_hit, 0};
    if (own + 1u >= end) return closest;
    const hit_point a = hits[track[1]], b = hits[track[0]];
    const float per_z = 1.f / (a.z - b.z), tx = (a.x - b.x) * per_z, ty = (a.y - b.y) * per_z;
    // Lines through the hole around the beam or outside of all hits need no window.
    const float room = sqrtf(p.max_scatter) + sqrtf(tx * tx + ty * ty) * deepest_pair;
    const float inside = max_of(sqrtf(__uint_as_float(radius.least)) - room, 0.f);
    const float outside = sqrtf(__uint_as_float(radius.most)) + room;
    for (uint32_t pair = own + 1u; pair < end && closest.hit == no_hit; ++pair) {
        const float step = module_z[2u * pair] - module_z[2u * own];
        const float x = b.x + tx * step, y = b.y + ty * step, r2 = x * x + y * y;
        if (r2 < inside * inside || r2 > outside * outside) continue;
        const line_target target(hits, pair, p.max_scatter, widest_phi_tolerance);
        closest = find_closest_hit<true>(line_through({a, b, step}, target), hits, target);
    }
    return closest;
}

}  // namespace hlt

HLT_KERNEL(velo_extend_downstream)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ hlt::radius_bits radius;
    if (threadIdx.x == 0) radius = {0xffffffffu, 0};
    hlt::block_barrier();
    const uint32_t first_hit = p.velo_hits.first(event), first_track = p.velo_tracks.first(event);
    const uint32_t n_hits = p.velo_clusters.count[event], n_tracks = p.velo_tracks.count[event];
    const uint32_t* const id = p.velo_hits.id + first_hit;
    uint16_t* const track_hits = p.velo_tracks.hits + first_track * hlt::max_velo_track_hits;
    uint8_t* const hit_count = p.velo_tracks.hit_count + first_track;
    uint32_t* const bid = p.scratch.hit_bid + first_hit;
    uint32_t* const found = p.scratch.found + first_hit;
    const hlt::velo_hits hits{{p.velo_hits.x, first_hit},
                              {p.velo_hits.y, first_hit},
                              {p.velo_hits.z, first_hit},
                              {p.velo_hits.phi, first_hit},
                              {p.scratch.taken, first_hit},
                              {reinterpret_cast<hlt::hit_point*>(p.scratch.points), first_hit},
                              {p.velo_hits.phi_bin_offset, event * hlt::phi_bin_stride},
                              {p.velo_hits.module_pair_offset, event * (hlt::n_velo_module_pairs + 1u)}};

    hlt::radius_bits own{0xffffffffu, 0};
    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) {
        const uint32_t r2 = __float_as_uint(hits.x[i] * hits.x[i] + hits.y[i] * hits.y[i]);
        own = {hlt::min_of(own.least, r2), hlt::max_of(own.most, r2)};
        const uint32_t phi = static_cast<uint16_t>(hits.phi[i]);
        hits.points[i] = {hits.x[i], hits.y[i], hits.z[i], __uint_as_float(phi | i << 16)};
        hits.used[i] = 0;
        bid[i] = 0xffffffffu;
    }
    atomicMin(&radius.least, own.least);
    atomicMax(&radius.most, own.most);
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x) {
        const uint16_t* const track = track_hits + i * hlt::max_velo_track_hits;
        for (uint32_t k = 0; k < hit_count[i]; ++k) hits.used[track[k]] = 1;
        found[i] = hit_count[i] < hlt::max_velo_track_hits ? 0u : hlt::no_hit;
    }
    hlt::block_barrier();
    for (uint32_t n_extended = n_tracks; n_extended > 0u;) {
        for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x) {
            if ((found[i] & 0xffffu) == hlt::no_hit) continue;
            const hlt::closest_hit closest =
                hlt::find_downstream(p, hits, id, radius, track_hits + i * hlt::max_velo_track_hits);
            found[i] = (closest.scatter_bits & 0xffff0000u) | closest.hit;
            if (closest.hit != hlt::no_hit) atomicMin(&bid[closest.hit], (found[i] & 0xffff0000u) | i);
        }
        hlt::block_barrier();
        n_extended = 0;
        for (uint32_t base = 0; base < n_tracks; base += blockDim.x) {
            const uint32_t i = base + threadIdx.x;
            const uint32_t hit = i < n_tracks ? found[i] & 0xffffu : hlt::no_hit;
            const bool takes = hit != hlt::no_hit && bid[hit] == ((found[i] & 0xffff0000u) | i);
            if (takes) {
                uint16_t* const track = track_hits + i * hlt::max_velo_track_hits;
                for (uint32_t k = hit_count[i]; k > 0u; --k) track[k] = track[k - 1u];
                track[0] = static_cast<uint16_t>(hit);
                hits.used[hit] = 1;
                ++hit_count[i];
            }
            if (i < n_tracks && !(takes && hit_count[i] < hlt::max_velo_track_hits)) found[i] = hlt::no_hit;
            uint32_t n_here;
            hlt::block_exclusive_count(takes, scratch, n_here);
            n_extended += n_here;
        }
        hlt::block_barrier();
    }
}
