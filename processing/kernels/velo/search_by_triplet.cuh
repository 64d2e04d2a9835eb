// Search by triplet: VELO tracks from hits sorted by phi (reconstruction-facts.md 1.4, hlt1-allen.md 3.6).
//
// From the last module pair towards the first, two steps take turns. *Forwarding* extends every open track into the next
// pair along the line through its last two hits; what it finds marks hits as used. *Seeding* makes triplets of hits that
// are still unused in three neighbouring pairs: for every middle hit the nearest hits in phi of the pair downstream, and
// with each the hit upstream that scatters least. Only forwarding writes the marks and only seeding reads them, with a
// barrier between the two, and candidates are numbered by prefix sums: the result does not depend on the threads.
//
// A triplet that is extended becomes a track and takes a place in velo_track_hits. One that is not is left as a seed for
// velo_filter_three_hit_tracks. Where the halves of the VELO overlap a track has a hit in both modules of a pair; both
// are taken, the closer one leads.
//
// In:  velo_hit_{x, y, z, phi}, velo_module_pair_offset, velo_phi_bin_offset, velo_geometry.
// Out: velo_track_hits [track][26] from large to small z, velo_track_hit_count, velo_candidate_count [event]: tracks of
//      four hits and more, not yet cleaned; velo_seed_hits [seed][4]: three hits and whether it was extended,
//      velo_seed_count [event]; velo_hit_used [hit]; scratch velo_open_hits, velo_open_state, velo_unused_hits.
// One block per event; threads stride over open tracks and over middle hits, in tiles that fit in shared memory.
// Bounds: a hit is the middle of at most one triplet, so there are not more seeds and open tracks than hits. A track
// needs a place in velo_track_hits: the event has half as many as it has clusters, one more flags it.
#pragma once

#include "../batch/batch.cuh"
#include "hit.cuh"
#include "phi_bins.cuh"
#include "track.cuh"

struct velo_search_by_triplet_parameters {
    const hlt::batch_header* batch_header;
    const hlt::velo_geometry* velo_geometry;
    const uint32_t* velo_cluster_bound;
    const uint32_t* velo_cluster_offset;
    const float* velo_hit_x;
    const float* velo_hit_y;
    const float* velo_hit_z;
    const int16_t* velo_hit_phi;
    const uint32_t* velo_cluster_count;
    const uint32_t* velo_module_pair_offset;
    const uint16_t* velo_phi_bin_offset;
    uint32_t* event_flags;
    uint16_t* velo_track_hits;
    uint8_t* velo_track_hit_count;
    uint32_t* velo_candidate_count;
    uint16_t* velo_seed_hits;
    uint32_t* velo_seed_count;
    uint8_t* velo_hit_used;
    uint32_t* velo_open_hits;
    uint32_t* velo_open_state;
    uint16_t* velo_unused_hits;
    float max_scatter;            // mm^2, squared distance between hit and line
    float max_scatter_forward;
    float scatter_slope;
    uint32_t phi_tolerance;       // in units of 2 pi / 2^16
    uint32_t max_skipped_pairs;
    uint32_t first_candidates;
    uint32_t candidates;
    uint32_t max_seed_dphi;
};

namespace hlt {

constexpr uint32_t triplet_tile = 256;          // open tracks, or pairs of hits, handled between two barriers
constexpr uint32_t triplet_middle_tile = 32;    // middle hits of a tile: 8 partners each fill it
constexpr uint32_t max_partners = triplet_tile / triplet_middle_tile;

/// State of an open track: index of its track or seed, whether it is a track yet, pairs skipped since the last hit.
constexpr uint32_t open_index_mask = 0xffff;
constexpr uint32_t open_is_track = 1u << 16;
constexpr uint32_t open_skipped_unit = 1u << 17;

/// Lines of a tile, to be followed into a module pair.
struct line_tile {
    float x[triplet_tile], y[triplet_tile], z[triplet_tile];  // a point on the line
    float tx[triplet_tile], ty[triplet_tile];
    int16_t phi[triplet_tile];  // where the line crosses the pair
};

/// Hits of one event.
struct hits_view {
    const float* __restrict__ x;
    const float* __restrict__ y;
    const float* __restrict__ z;
    const int16_t* __restrict__ phi;
    const uint16_t* __restrict__ bin_offset;
    const uint32_t* __restrict__ pair_offset;
};

/// The hits of a module pair in the phi bins that a window touches, as a run that may wrap around.
struct phi_window {
    uint32_t begin, count, wrap_at, wrap_by;

    __device__ uint32_t operator[](uint32_t i) const
    {
        const uint32_t at = begin + i;
        return at >= wrap_at ? at - wrap_by : at;
    }
};

__device__ phi_window window_around(const hits_view& hits, uint32_t pair, int16_t phi, uint32_t tolerance)
{
    const uint32_t low = phi_bin_of(pair, static_cast<int16_t>(phi - static_cast<int32_t>(tolerance)));
    const uint32_t high = phi_bin_of(pair, static_cast<int16_t>(phi + static_cast<int32_t>(tolerance)));
    const uint32_t first = hits.pair_offset[pair], last = hits.pair_offset[pair + 1u];
    phi_window window{hits.bin_offset[low], 0, last, last - first};
    const uint32_t end = hits.bin_offset[high + 1u];
    window.count = high >= low ? end - window.begin : (last - window.begin) + (end - first);
    return window;
}

__device__ uint32_t phi_distance(int16_t a, int16_t b)
{
    const int32_t difference = static_cast<int16_t>(a - b);
    return static_cast<uint32_t>(difference < 0 ? -difference : difference);
}

/// Squared distance (mm^2) of a hit from line i of the tile.
__device__ float scatter_of(const line_tile& lines, uint32_t i, const hits_view& hits, uint32_t hit)
{
    const float dz = hits.z[hit] - lines.z[i];
    const float dx = hits.x[hit] - (lines.x[i] + lines.tx[i] * dz);
    const float dy = hits.y[hit] - (lines.y[i] + lines.ty[i] * dz);
    return dx * dx + dy * dy;
}

/// Line i of the tile through two hits, and its phi at z.
__device__ void set_line(line_tile& lines, uint32_t i, const hits_view& hits, uint32_t a, uint32_t b, float z)
{
    const float xb = hits.x[b], yb = hits.y[b], zb = hits.z[b];
    const float per_dz = 1.f / (hits.z[a] - zb);
    const float tx = (hits.x[a] - xb) * per_dz, ty = (hits.y[a] - yb) * per_dz;
    lines.x[i] = xb;
    lines.y[i] = yb;
    lines.z[i] = zb;
    lines.tx[i] = tx;
    lines.ty[i] = ty;
    lines.phi[i] = velo_phi(xb + tx * (z - zb), yb + ty * (z - zb));
}

}  // namespace hlt

HLT_KERNEL(velo_search_by_triplet)
{
    const velo_search_by_triplet_parameters p = *parameters;
    const uint32_t event = blockIdx.x;
    if (event >= p.batch_header->n_events) return;
    __shared__ uint32_t scratch[hlt::max_block_size + 1];
    __shared__ hlt::line_tile lines;
    __shared__ uint16_t partner[hlt::triplet_tile];                 // hit downstream of each line of a seeding tile
    __shared__ uint16_t middle[hlt::triplet_middle_tile];           // middle hits of a seeding tile
    __shared__ uint16_t first_line[hlt::triplet_middle_tile + 1u];  // their lines are [m] .. [m + 1]

    const uint32_t first_hit = p.velo_cluster_offset[event];
    const uint32_t n_hits = p.velo_cluster_count[event];
    const uint32_t first_track = first_hit / 2u;
    const uint32_t max_tracks = (first_hit + p.velo_cluster_bound[event]) / 2u - first_track;
    const uint32_t* pair_offset = p.velo_module_pair_offset + event * (hlt::n_velo_module_pairs + 1u);
    const hlt::hits_view hits{p.velo_hit_x + first_hit,
                              p.velo_hit_y + first_hit,
                              p.velo_hit_z + first_hit,
                              p.velo_hit_phi + first_hit,
                              p.velo_phi_bin_offset + event * hlt::phi_bin_stride,
                              pair_offset};
    const float* module_z = p.velo_geometry->module_z;
    uint16_t* track_hits = p.velo_track_hits + first_track * hlt::max_velo_track_hits;
    uint8_t* track_hit_count = p.velo_track_hit_count + first_track;
    uint16_t* seed_hits = p.velo_seed_hits + 4u * first_hit;
    uint8_t* used = p.velo_hit_used + first_hit;
    uint32_t* open_hits = p.velo_open_hits + first_hit;
    uint32_t* open_state = p.velo_open_state + first_hit;
    uint16_t* unused = p.velo_unused_hits + first_hit;

    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) used[i] = 0;

    uint32_t n_open = 0, n_tracks = 0, n_seeds = 0;
    uint32_t n_downstream = 0;  // unused hits of the pair downstream, listed at its offset in `unused`
    bool overflow = false;
    __syncthreads();
    {   // the last pair is only ever downstream
        const uint32_t begin = pair_offset[hlt::n_velo_module_pairs - 1u], end = pair_offset[hlt::n_velo_module_pairs];
        for (uint32_t i = begin + threadIdx.x; i < end; i += blockDim.x) unused[i] = static_cast<uint16_t>(i);
        n_downstream = end - begin;
    }

    for (uint32_t pair = hlt::n_velo_module_pairs - 2u; pair >= 1u; --pair) {
        const uint32_t target = pair - 1u;

        // Forwarding into the target pair.
        uint32_t n_kept = 0;
        const float middle_z = 0.5f * (module_z[2u * target] + module_z[2u * target + 1u]);
        for (uint32_t base = 0; base < n_open; base += hlt::triplet_tile) {
            const uint32_t n_tile = hlt::min_of(n_open - base, hlt::triplet_tile);
            __syncthreads();
            for (uint32_t i = threadIdx.x; i < n_tile; i += blockDim.x) {
                const uint32_t last_two = open_hits[base + i];
                hlt::set_line(lines, i, hits, last_two & 0xffffu, last_two >> 16, middle_z);
            }
            __syncthreads();
            for (uint32_t sub = 0; sub < n_tile; sub += blockDim.x) {
                const uint32_t i = sub + threadIdx.x;
                const bool active = i < n_tile;
                uint32_t last_two = 0, state = 0;
                uint32_t found[2] = {0, 0};  // in the modules of smaller and larger z
                bool has[2] = {false, false};
                bool leads = false;  // which of the two is closer
                if (active) {
                    last_two = open_hits[base + i];
                    state = open_state[base + i];
                    const float tx = lines.tx[i], ty = lines.ty[i];
                    const float cut = p.max_scatter_forward * (1.f + p.scatter_slope * (tx * tx + ty * ty));
                    float best[2] = {cut, cut};
                    const hlt::phi_window window = hlt::window_around(hits, target, lines.phi[i], p.phi_tolerance);
                    for (uint32_t k = 0; k < window.count; ++k) {
                        const uint32_t hit = window[k];
                        if (hlt::phi_distance(hits.phi[hit], lines.phi[i]) > p.phi_tolerance) continue;
                        const float scatter = hlt::scatter_of(lines, i, hits, hit);
                        const uint32_t side = hits.z[hit] > middle_z ? 1u : 0u;
                        if (scatter < best[side]) {
                            best[side] = scatter;
                            found[side] = hit;
                            has[side] = true;
                        }
                    }
                    leads = has[1] && !(has[0] && best[0] <= best[1]);
                }
                const bool extended = has[0] || has[1];
                const bool becomes_track = extended && (state & hlt::open_is_track) == 0u;
                uint32_t n_new;
                const uint32_t new_track = n_tracks + hlt::block_exclusive_sum(becomes_track ? 1u : 0u, scratch, n_new);
                bool kept = false;
                if (extended) {
                    uint32_t track = state & hlt::open_index_mask;
                    uint32_t n = 0;
                    bool has_place = true;
                    if (becomes_track) {
                        uint16_t* seed = seed_hits + 4u * track;
                        track = new_track;
                        has_place = track < max_tracks;
                        if (has_place) {
                            seed[3] = hlt::seed_extended;
                            for (; n < 3u; ++n) {
                                track_hits[track * hlt::max_velo_track_hits + n] = seed[n];
                                used[seed[n]] = 1;
                            }
                        }
                        else
                            overflow = true;
                    }
                    else
                        n = track_hit_count[track];
                    if (has_place) {
                        for (uint32_t side = 2; side-- > 0u;) {
                            if (!has[side] || n >= hlt::max_velo_track_hits) continue;
                            track_hits[track * hlt::max_velo_track_hits + n] = static_cast<uint16_t>(found[side]);
                            used[found[side]] = 1;
                            ++n;
                        }
                        track_hit_count[track] = static_cast<uint8_t>(n);
                        kept = n < hlt::max_velo_track_hits;
                        state = track | hlt::open_is_track;
                        last_two = last_two >> 16 | found[leads ? 1 : 0] << 16;
                    }
                }
                else if (active) {
                    state += hlt::open_skipped_unit;
                    kept = state / hlt::open_skipped_unit <= p.max_skipped_pairs;
                }
                uint32_t n_still_open;
                const uint32_t at = n_kept + hlt::block_exclusive_sum(kept ? 1u : 0u, scratch, n_still_open);
                if (kept) {
                    open_hits[at] = last_two;
                    open_state[at] = state;
                }
                n_tracks = hlt::min_of(n_tracks + n_new, max_tracks);
                n_kept += n_still_open;
            }
        }
        n_open = n_kept;
        __syncthreads();

        // Seeding: unused hits downstream and in the middle, in order of phi.
        uint32_t n_unused_downstream = 0, n_unused_middle = 0;
        const uint32_t downstream_begin = pair_offset[pair + 1u];
        const uint32_t middle_begin = pair_offset[pair], middle_end = pair_offset[pair + 1u];
        for (uint32_t base = 0; base < n_downstream; base += blockDim.x) {
            const uint32_t i = base + threadIdx.x;
            const uint16_t hit = i < n_downstream ? unused[downstream_begin + i] : 0;
            const bool keep = i < n_downstream && used[hit] == 0;
            uint32_t total;
            const uint32_t at = n_unused_downstream + hlt::block_exclusive_sum(keep ? 1u : 0u, scratch, total);
            if (keep) unused[downstream_begin + at] = hit;
            n_unused_downstream += total;
        }
        for (uint32_t base = middle_begin; base < middle_end; base += blockDim.x) {
            const uint32_t hit = base + threadIdx.x;
            const bool keep = hit < middle_end && used[hit] == 0;
            uint32_t total;
            const uint32_t at = n_unused_middle + hlt::block_exclusive_sum(keep ? 1u : 0u, scratch, total);
            if (keep) unused[middle_begin + at] = static_cast<uint16_t>(hit);
            n_unused_middle += total;
        }
        __syncthreads();

        const uint16_t* downstream = unused + downstream_begin;
        const uint32_t wanted = pair == hlt::n_velo_module_pairs - 2u ? p.first_candidates : p.candidates;
        const uint32_t n_partners = hlt::min_of(wanted, n_unused_downstream);
        uint32_t nearest = 0;  // first unused hit downstream of phi not below that of the middle hit
        for (uint32_t base = 0; base < n_unused_middle; base += hlt::triplet_middle_tile) {
            const uint32_t n_tile = hlt::min_of(n_unused_middle - base, hlt::triplet_middle_tile);
            uint32_t n_lines = 0;
            for (uint32_t sub = 0; sub < n_tile; sub += blockDim.x) {
                const uint32_t m = sub + threadIdx.x;
                uint32_t n_near = 0;
                uint16_t near_hits[hlt::max_partners];
                if (m < n_tile) {
                    const uint32_t hit = unused[middle_begin + base + m];
                    middle[m] = static_cast<uint16_t>(hit);
                    const int16_t phi = hits.phi[hit];
                    while (nearest < n_unused_downstream && hits.phi[downstream[nearest]] < phi) ++nearest;
                    uint32_t at = nearest + n_unused_downstream - (n_partners >> 1);
                    for (uint32_t k = 0; k < n_partners; ++k, ++at) {
                        while (at >= n_unused_downstream) at -= n_unused_downstream;
                        const uint16_t other = downstream[at];
                        if (hlt::phi_distance(hits.phi[other], phi) <= p.max_seed_dphi) near_hits[n_near++] = other;
                    }
                }
                uint32_t total;
                const uint32_t line = n_lines + hlt::block_exclusive_sum(n_near, scratch, total);
                if (m < n_tile) {
                    first_line[m] = static_cast<uint16_t>(line);
                    for (uint32_t k = 0; k < n_near; ++k) partner[line + k] = near_hits[k];
                    for (uint32_t k = 0; k < n_near; ++k) lines.phi[line + k] = static_cast<int16_t>(m);
                }
                n_lines += total;
            }
            if (threadIdx.x == 0) first_line[n_tile] = static_cast<uint16_t>(n_lines);
            __syncthreads();
            const float dz = module_z[2u * target] - module_z[2u * pair + 2u];
            for (uint32_t i = threadIdx.x; i < n_lines; i += blockDim.x) {
                const uint32_t m = static_cast<uint32_t>(lines.phi[i]);
                hlt::set_line(lines, i, hits, partner[i], middle[m], hits.z[partner[i]] + dz);
            }
            __syncthreads();
            for (uint32_t sub = 0; sub < n_tile; sub += blockDim.x) {
                const uint32_t m = sub + threadIdx.x;
                uint32_t best_line = 0, best_hit = 0;
                bool found = false;
                float best = 3.4e38f;
                if (m < n_tile) {
                    for (uint32_t i = first_line[m]; i < first_line[m + 1u]; ++i) {
                        const float tx = lines.tx[i], ty = lines.ty[i];
                        const float cut = p.max_scatter * (1.f + p.scatter_slope * (tx * tx + ty * ty));
                        const hlt::phi_window window = hlt::window_around(hits, target, lines.phi[i], p.phi_tolerance);
                        for (uint32_t k = 0; k < window.count; ++k) {
                            const uint32_t hit = window[k];
                            if (used[hit] != 0 ||
                                hlt::phi_distance(hits.phi[hit], lines.phi[i]) > p.phi_tolerance)
                                continue;
                            const float scatter = hlt::scatter_of(lines, i, hits, hit);
                            if (scatter < best && scatter < cut) {
                                best = scatter;
                                best_line = i;
                                best_hit = hit;
                                found = true;
                            }
                        }
                    }
                }
                uint32_t n_found;
                const uint32_t at = hlt::block_exclusive_sum(found ? 1u : 0u, scratch, n_found);
                if (found) {
                    uint16_t* seed = seed_hits + 4u * (n_seeds + at);
                    seed[0] = partner[best_line];
                    seed[1] = middle[m];
                    seed[2] = static_cast<uint16_t>(best_hit);
                    seed[3] = hlt::seed_left;
                    open_hits[n_open + at] = middle[m] | best_hit << 16;
                    open_state[n_open + at] = n_seeds + at;
                }
                n_seeds += n_found;
                n_open += n_found;
            }
            __syncthreads();
        }
        n_downstream = n_unused_middle;
    }

    if (threadIdx.x == 0) {
        p.velo_candidate_count[event] = n_tracks;
        p.velo_seed_count[event] = n_seeds;
    }
    if (overflow) atomicOr(&p.event_flags[event], static_cast<uint32_t>(hlt::overflow));
}
