// Pairs of tracks close enough to each other to make a vertex (docs/physics/secondary-vertices.md).
//
// One block per event, one thread per track, which tests all later ones; a prefix sum over the tracks gives the
// pairs their places, so that they ascend by the first, then by the second track. On the CPU, where a block has one
// thread, the loop over the later tracks runs in vector registers and stores its results in an array. On a GPU this
// array would lie in local memory, so a GPU counts first and repeats the loop for tracks with a partner.
//
// The distance of two lines r_i + s d_i is |w| / |c| with c = d_1 x d_2 and w = (r_2 - r_1).c; it is compared without
// division, so that parallel lines, which have no point of closest approach, are never close.
// Bounds: vertex_tracks.count tracks; max_vertex_pairs pairs; an event with more is flagged.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/secondary_vertices/generated/secondary_vertices_find_pairs.h"
#include "lhcb/secondary_vertices/generated/vertex_types.h"
#include "lhcb/tracks/long/generated/long_types.h"

namespace hlt {

struct pair_track {
    uint32_t use;
    float x0, y0, tx, ty;
    float ip_chi2;
};

/// The tracks of an event.
struct pair_tracks {
    const uint32_t* __restrict__ use;
    const float* __restrict__ x0;
    const float* __restrict__ y0;
    const float* __restrict__ tx;
    const float* __restrict__ ty;
    const float* __restrict__ ip_chi2;

    __device__ __forceinline__ pair_track operator[](uint32_t i) const
    {
        return {use[i], x0[i], y0[i], tx[i], ty[i], ip_chi2[i]};
    }
};

struct pair_cuts {
    float displaced_doca2, v0_doca2, dimuon_doca2;
    float same_pv_below;
};

/// Bits of vertex_kind that the pair may have; no branches, so that a loop over pairs uses vector registers.
__device__ __forceinline__ uint32_t pair_kind(const pair_track& a, const pair_track& b, const pair_cuts& cuts)
{
    const uint32_t both = a.use & b.use, either = a.use | b.use, differ = a.use ^ b.use;
    const float dtx = a.tx - b.tx, dty = a.ty - b.ty;
    const float cz = a.ty * dtx - a.tx * dty;
    const float c2 = dtx * dtx + dty * dty + cz * cz;
    const float w = (b.x0 - a.x0) * dty - (b.y0 - a.y0) * dtx;
    const float w2 = w * w;

    // Masks instead of conditions: the uses of the tracks and the kinds of the vertex have the same bits.
    const uint32_t displaced = w2 < cuts.displaced_doca2 * c2 ? both & for_displaced : 0u;
    const uint32_t v0 = w2 < cuts.v0_doca2 * c2 ? both & for_v0 : 0u;
    const uint32_t dimuon = w2 < cuts.dimuon_doca2 * c2 ? both & for_dimuon : 0u;
    const uint32_t one_pv = (differ >> use_pv_shift) == 0 ? vertex_displaced : 0u;
    const uint32_t far_a = a.ip_chi2 < cuts.same_pv_below ? 0u : vertex_displaced;
    const uint32_t far_b = b.ip_chi2 < cuts.same_pv_below ? 0u : vertex_displaced;
    const uint32_t far_and_opposite = either / (for_v0_far / for_v0) & differ / (is_positive / for_v0);
    return (displaced & (one_pv | far_a | far_b)) | (v0 & far_and_opposite) | dimuon;
}
static_assert(uint32_t{for_displaced} == uint32_t{vertex_displaced} && uint32_t{for_v0} == uint32_t{vertex_ks} &&
              uint32_t{for_dimuon} == uint32_t{vertex_dimuon} && for_v0_far > for_v0 && is_positive > for_v0);

/// The partners of track `a` among the later tracks.
#if HLT_ON_GPU
class pair_row {
  public:
    __device__ uint32_t find(const pair_tracks& tracks, const pair_cuts& cuts, uint32_t a, uint32_t n)
    {
        const pair_track first = tracks[a];
        uint32_t found = 0;
        for (uint32_t b = a + 1; b < n; ++b) found += pair_kind(first, tracks[b], cuts) != 0 ? 1u : 0u;
        return found;
    }
    __device__ uint32_t kind(const pair_tracks& tracks, const pair_cuts& cuts, uint32_t a, uint32_t b) const
    {
        return pair_kind(tracks[a], tracks[b], cuts);
    }
};
#else
class pair_row {
  public:
    uint32_t find(const pair_tracks& tracks, const pair_cuts& cuts, uint32_t a, uint32_t n)
    {
        const pair_track first = tracks[a];
        uint32_t found = 0;
        for (uint32_t b = a + 1; b < n; ++b) {
            const uint32_t kind = pair_kind(first, tracks[b], cuts);
            kinds_[b] = kind;
            found += kind != 0 ? 1u : 0u;
        }
        return found;
    }
    uint32_t kind(const pair_tracks&, const pair_cuts&, uint32_t, uint32_t b) const { return kinds_[b]; }

  private:
    uint32_t kinds_[max_long_tracks];
};
#endif

}  // namespace hlt

HLT_KERNEL(secondary_vertices_find_pairs)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t first_track = p.vertex_tracks.first(blockIdx.x);
    const uint32_t n_tracks = p.vertex_tracks.count[blockIdx.x];
    const uint32_t first_pair = p.vertex_pairs.first(blockIdx.x);
    const uint16_t* const numbers = p.vertex_tracks.track + first_track;
    const hlt::pair_tracks tracks{p.vertex_tracks.use + first_track, p.vertex_tracks.x0 + first_track,
                                  p.vertex_tracks.y0 + first_track,  p.vertex_tracks.tx + first_track,
                                  p.vertex_tracks.ty + first_track,  p.vertex_tracks.ip_chi2 + first_track};
    const hlt::pair_cuts cuts{p.displaced_max_doca * p.displaced_max_doca, p.v0_max_doca * p.v0_max_doca,
                              p.dimuon_max_doca * p.dimuon_max_doca, p.same_pv_below_ip_chi2};

    uint32_t n_pairs = 0;
    for (uint32_t base = 0; base + 1 < n_tracks; base += blockDim.x) {
        const uint32_t a = base + threadIdx.x;
        hlt::pair_row row;
        const uint32_t mine = a + 1 < n_tracks ? row.find(tracks, cuts, a, n_tracks) : 0u;
        uint32_t total;
        uint32_t place = n_pairs + hlt::block_exclusive_sum(mine, scratch, total);
        const uint32_t end = hlt::min_of(place + mine, hlt::max_vertex_pairs);
        for (uint32_t b = a + 1; place < end; ++b) {
            const uint32_t kind = row.kind(tracks, cuts, a, b);
            if (kind == 0) continue;
            p.vertex_pairs.tracks[2 * (first_pair + place)] = numbers[a];
            p.vertex_pairs.tracks[2 * (first_pair + place) + 1] = numbers[b];
            p.vertex_pairs.kind[first_pair + place] = static_cast<uint8_t>(kind);
            ++place;
        }
        n_pairs += total;
    }
    if (threadIdx.x == 0) {
        if (n_pairs > hlt::max_vertex_pairs) p.events.flags[blockIdx.x] |= hlt::overflow;
        p.vertex_pairs.count[blockIdx.x] = hlt::min_of(n_pairs, hlt::max_vertex_pairs);
    }
}
