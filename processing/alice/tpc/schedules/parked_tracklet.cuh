// Tracklets between two launches, in global memory.
#pragma once

#include "alice/tpc/tracks/longest_tracklets.cuh"

namespace hlt {

/// Clusters of a parked tracklet: the tracklets of a slice have those of a row side by side.
struct parked_hits {
    uint16_t* of_row;
    uint32_t stride;

    __device__ uint32_t cluster(uint32_t row) const { return of_row[row * stride]; }
    __device__ void set(uint32_t row, uint32_t number) const { of_row[row * stride] = static_cast<uint16_t>(number); }
};

/// The parked tracklets of a slice: the first start hits, one for each place.
struct parked_slice {
    uint16_t* at;     // row of the next step in the lower 8 bits, stage above
    float* state;     // 16 for each
    uint16_t* steps;  // 8 for each
    uint16_t* of_rows;
    uint32_t n_places, n;

    __device__ parked_hits hits(uint32_t i) const { return {of_rows + i, n_places}; }

    __device__ void park(uint32_t i, const tracklet_progress& now) const
    {
        const bool at_top = now.stage == tracklet_stage::top;
        at[i] = static_cast<uint16_t>(static_cast<uint32_t>(now.stage) << 8 | (at_top ? now.last : now.row));
        if (now.stage == tracklet_stage::none) return;
        *reinterpret_cast<tpc_state*>(state + 16u * i) = now.t;
        const uint32_t words[8] = {now.first,    now.last,          now.n,     now.missed, now.link,
                                   now.seed_end, now.lowest_before, now.fitted};
        for (uint32_t word = 0; word < 8u; ++word) steps[8u * i + word] = static_cast<uint16_t>(words[word]);
    }

    /// Of a tracklet that is not `none`.
    __device__ tracklet_progress unpark(uint32_t i) const
    {
        const uint16_t* const words = steps + 8u * i;
        return {*reinterpret_cast<const tpc_state*>(state + 16u * i),
                static_cast<tracklet_stage>(at[i] >> 8),
                at[i] & 0xFFu,
                words[0],
                words[1],
                words[2],
                words[3],
                words[4],
                words[5],
                words[6],
                words[7]};
    }

    __device__ tracklet_stage stage(uint32_t i) const { return static_cast<tracklet_stage>(at[i] >> 8); }
};
static_assert(sizeof(tpc_state) == 16u * sizeof(float));

/// For any kernel with the columns of parked tracklets.
template <typename Parameters>
__device__ parked_slice parked_slice_of(const Parameters& p, uint32_t part)
{
    const uint32_t first = p.tpc_parked.first(part), n_places = p.tpc_parked.first(part + 1u) - first;
    return {p.tpc_parked.at + first,
            p.tpc_parked.state + first * 16u,
            p.tpc_parked.steps + first * 8u,
            p.tpc_parked.rows + first * tpc_rows,
            n_places,
            min_of(n_places, p.tpc_slices.start_hits[part])};
}

/// Calls `work(i)` for the parked tracklets for which `takes(i)` is true, in batches of one for each thread: threads
/// are idle only in the last batch. `queue`: twice as many places as threads, shared. All threads of the block must
/// call it.
template <typename Takes, typename Work>
__device__ void for_compacted(const parked_slice& parked, uint16_t* queue, uint32_t* scratch, const Takes& takes,
                              const Work& work)
{
    uint32_t waiting = 0;
    for (uint32_t base = 0; base < parked.n; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        const bool is_taken = i < parked.n && takes(i);
        uint32_t more;
        const uint32_t place = waiting + block_exclusive_count(is_taken, scratch, more);
        if (is_taken) queue[place] = static_cast<uint16_t>(i);
        waiting += more;
        block_barrier();
        if (waiting < blockDim.x) continue;
        waiting -= blockDim.x;
        const uint32_t mine = queue[waiting + threadIdx.x];
        block_barrier();
        work(mine);
    }
    if (threadIdx.x < waiting) work(queue[threadIdx.x]);
}

}  // namespace hlt
