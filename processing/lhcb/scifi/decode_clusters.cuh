// SciFi banks (type 64) to hits, sorted by x in each zone.
//
// A mat belongs to one bank, whose words and hits rise with the channel, and the mats of a zone follow one another in
// x. So there is nothing to sort: the hits of each mat are a run of those of its bank, which stands in the result at a
// place that a prefix sum over the mats in the order of x gives, turned round where x falls with the channel. A bank
// whose words do not rise, that has words of links that it does not read, or two edges too close to one another is
// damaged: it flags the event and gives no hits. So does a bank of which two sources have the number.
//
// First each bank's words become codes of hits, 16 bits each: half-channel in the mat (10 bits), pseudo-size << 10.
// Then the codes of each mat become hits: x and z are where the fibre, extended, passes y = 0. In:  the fragments of
// the SciFi rows, scifi_mats, scifi_read_out, scifi_hits.bound. Out: scifi_hits.{x, z, id, info}, scifi_hits.count
// [event], scifi_hits.zone_offset [event][32]; events.flags;
//      scratch.codes.
// One block per event; threads stride over the banks, each reads the words of its own, then over the mats.
// Bounds: an event with more hits than scifi_hits.bound is flagged and gives none. Codes lie between scifi_hit_padding
// places on either side, which are read and not used; behind the hits as many are written and not used.
#pragma once

#include "framework/device/vector8.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/scifi/bank.cuh"
#include "lhcb/scifi/generated/scifi_decode_clusters.h"

namespace hlt {

/// What becomes of the words of a bank.
struct scifi_walk {
    uint32_t n_hits;
    bool broken;
    bool crowded;  // more hits than there is room for: the walk has ended early
};

/// Where the codes of each mat begin and end, by mat index.
struct scifi_runs {
    alignas(16) uint16_t begin[n_scifi_mat_indices];
    alignas(16) uint16_t end[n_scifi_mat_indices];
};

/// Counts hits.
struct scifi_hit_counter {
    uint32_t n = 0;
    __device__ void take(uint32_t, uint32_t, uint32_t) { ++n; }
    __device__ void end_word(scifi_word) {}
    __device__ bool has_room(uint32_t) const { return true; }
};

/// Writes the codes of the hits of a bank, and where those of each of its mats end.
struct scifi_code_writer {
    uint16_t* __restrict__ codes;
    uint16_t* __restrict__ end;  // of the mats of the bank
    uint32_t last_mat;           // of the bank
    uint32_t n;                  // codes up to now
    uint32_t room;

    __device__ void take(uint32_t channel, uint32_t fraction, uint32_t size)
    {
        codes[n++] = static_cast<uint16_t>((channel & 0x1ffu) << 1 | fraction | size << 10);
    }
    __device__ void end_word(scifi_word word) { end[min_of(word.mat(), last_mat)] = static_cast<uint16_t>(n); }
    __device__ bool has_room(uint32_t more) const { return n + more <= room; }
};

/// Take the hits of a bank in the order of its channels.
template <scifi_rule rule, typename Hits>
__device__ scifi_walk walk_scifi_bank(const scifi_bank& bank, uint32_t n_mats, Hits hits)
{
    const uint32_t before = hits.n;
    const uint32_t n_words = bank.n_words;
    bool broken = false;
    int32_t last = -1;  // word
    for (uint32_t i = 0; i < n_words; ++i) {
        const scifi_word word = bank[i];
        broken |= static_cast<int32_t>(word.bits) <= (last | 3);
        if (rule != scifi_rule::one_hit_per_word && word.edge() != 0u && i + 1u < n_words) {
            const scifi_word next = bank[i + 1u];
            if (are_scifi_edges<rule>(word, next)) {
                const scifi_edges edges{word, next};
                broken |= !edges.are_possible<rule>();
                if (broken) break;
                if (!hits.has_room(count_hits_of_edges<rule>(edges) + (n_words - i))) return {0, false, true};
                take_hits_of_edges<rule>(edges, hits);
                ++i;
                last = static_cast<int32_t>(next.bits);
                hits.end_word(next);
                continue;
            }
        }
        hits.take(word.channel(), word.fraction(), scifi_size_of<rule>(word));
        hits.end_word(word);
        last = static_cast<int32_t>(word.bits);
    }
    broken |= last >= 0 && scifi_word{static_cast<uint32_t>(last)}.mat() >= n_mats;
    return {broken ? 0u : hits.n - before, broken, false};
}

template <typename Hits>
__device__ scifi_walk walk_scifi_bank(const scifi_bank& bank, uint32_t n_mats, bool lossy, const Hits& hits)
{
    if (lossy || bank.version == 4u) return walk_scifi_bank<scifi_rule::one_hit_per_word>(bank, n_mats, hits);
    if (bank.version == 5u) return walk_scifi_bank<scifi_rule::version_5>(bank, n_mats, hits);
    return walk_scifi_bank<scifi_rule::version_6>(bank, n_mats, hits);
}

/// Distance (mm) of half-channels from the first one of their mat. `Real`: float, or several of them.
template <typename Real>
__device__ __forceinline__ void find_scifi_u(const scifi_mat& mat, const Real& half_channel, const Real& die,
                                             const Real& sipm, Real& u)
{
    u = half_channel * mat.half_pitch + die * mat.die_gap + sipm * mat.sipm_pitch;
}

/// Where the hits of an event are written.
struct scifi_hit_columns {
    float* __restrict__ x;
    float* __restrict__ z;
    uint32_t* __restrict__ id;
    uint16_t* __restrict__ info;

    __device__ void store(uint32_t at, uint32_t code, const scifi_mat& mat, uint32_t index) const
    {
        float u;
        find_scifi_u(mat, static_cast<float>(code & 0xffu), static_cast<float>(code >> 7 & 1u),
                     static_cast<float>(code >> 8 & 3u), u);
        x[at] = mat.x_first + mat.dx_du * u;
        z[at] = mat.z_first + mat.dz_du * u;
        id[at] = first_id(index) + (code >> 1 & 0x1ffu);
        info[at] = static_cast<uint16_t>(index | code >> 10 << 11);
    }

#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
    /// Eight hits at once.
    void store8(uint32_t at, const uint8x16& codes, const scifi_mat& mat, uint32_t index) const
    {
        const uint8x32 code = __builtin_convertvector(codes, uint8x32);
        float8 u;
        find_scifi_u(mat, __builtin_convertvector(code & 0xffu, float8),
                     __builtin_convertvector(code >> 7 & 1u, float8), __builtin_convertvector(code >> 8 & 3u, float8),
                     u);
        store(x + at, mat.x_first + mat.dx_du * u);
        store(z + at, mat.z_first + mat.dz_du * u);
        store(id + at, first_id(index) + (code >> 1 & 0x1ffu));
        store(info + at, static_cast<uint16_t>(index) | codes >> 10 << 11);
    }

  private:
    template <typename Vector>
    static void store(void* to, const Vector& vector)
    {
        std::memcpy(to, &vector, sizeof vector);
    }
#endif

  private:
    __device__ static uint32_t first_id(uint32_t index)
    {
        return scifi_detector << 28 | (first_scifi_mat + index) << 9;
    }
};

}  // namespace hlt

HLT_KERNEL(scifi_decode_clusters)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ hlt::scifi_runs runs;
    __shared__ uint16_t offset[hlt::n_scifi_mats + 1u];           // of the hits of each mat, by place
    __shared__ uint32_t seen[(hlt::n_scifi_banks + 31u) / 32u];   // a bit for each bank number
    __shared__ uint32_t twice[(hlt::n_scifi_banks + 31u) / 32u];  // those that more than one source has
    __shared__ uint32_t errors;

    const uint32_t bound = p.scifi_hits.bound[event];
    uint16_t* __restrict__ zone_offset = p.scifi_hits.zone_offset + event * hlt::scifi_zone_stride;
    if (bound == 0u) {
        for (uint32_t zone = threadIdx.x; zone < hlt::scifi_zone_stride; zone += blockDim.x) zone_offset[zone] = 0;
        if (threadIdx.x == 0) p.scifi_hits.count[event] = 0;
        return;
    }
    const uint32_t first = p.scifi_hits.first(event);
    uint16_t* __restrict__ codes = p.scratch.codes + first + hlt::scifi_hit_padding;
    const hlt::scifi_read_out& __restrict__ read_out = *p.scifi_read_out;
    const hlt::event_row at = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::scifi_rows_of(p.raw_banks, at.mep);
    const hlt::mfp_row* __restrict__ mfp_rows = p.raw_banks.mfp_rows + rows.first;

    hlt::zero_words(&runs, sizeof runs / 4u);
    for (uint32_t i = threadIdx.x; i < sizeof seen / 4u; i += blockDim.x) seen[i] = twice[i] = 0;
    if (threadIdx.x == 0) errors = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x) {
        const uint32_t number = hlt::scifi_bank_number(mfp_rows[i]);
        if (number >= hlt::n_scifi_banks) continue;
        const uint32_t bit = 1u << number % 32u;
        if ((atomicOr(&seen[number / 32u], bit) & bit) != 0u) atomicOr(&twice[number / 32u], bit);
    }
    __syncthreads();

    uint32_t n_codes = 0, my_errors = 0;
    bool fits = true;
    for (uint32_t base = 0; base < rows.count && fits; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        hlt::scifi_bank bank{};
        if (i < rows.count)
            bank = hlt::scifi_bank_of(hlt::fragment_of(p.raw_banks, mfp_rows[i], at.index), mfp_rows[i]);
        if (bank.n_words > 0u && (twice[bank.number / 32u] >> bank.number % 32u & 1u) != 0u) {
            bank.broken = true;
            bank.n_words = 0;
        }
        const uint32_t first_mat = bank.n_words > 0u ? read_out.first_mat[bank.number] : 0u;
        const uint32_t n_mats = bank.n_words > 0u ? read_out.n_mats[bank.number] : 0u;
        // A thread of many has to count its hits to know where they begin, one alone only if they may not fit.
        hlt::scifi_walk walk{0, false, true};
        hlt::scifi_code_writer writer{codes, runs.end + first_mat, n_mats - 1u, n_codes, bound};
        if (blockDim.x == 1u && n_codes + bank.n_words <= bound)
            walk = hlt::walk_scifi_bank(bank, n_mats, p.lossy != 0u, writer);
        const bool counted = walk.crowded;
        if (counted) walk = hlt::walk_scifi_bank(bank, n_mats, p.lossy != 0u, hlt::scifi_hit_counter{});
        if (bank.broken || walk.broken) my_errors |= hlt::bank_error;
        uint32_t total;
        const uint32_t begin = n_codes + hlt::block_exclusive_sum(walk.n_hits, scratch, total);
        n_codes += total;
        fits = n_codes <= bound;  // for all threads alike
        if (!fits) my_errors |= hlt::overflow;
        if (fits && counted && !walk.broken) {
            writer.n = begin;
            writer.room = ~0u;  // there is
            hlt::walk_scifi_bank(bank, n_mats, p.lossy != 0u, writer);
        }
        uint32_t before = begin;
        for (uint32_t mat = first_mat; mat < first_mat + n_mats; ++mat) {
            const uint32_t end = walk.broken ? begin : hlt::max_of(before, uint32_t{runs.end[mat]});
            runs.begin[mat] = static_cast<uint16_t>(before);
            runs.end[mat] = static_cast<uint16_t>(end);
            before = end;
        }
    }
    if (my_errors != 0u) atomicOr(&errors, my_errors);
    __syncthreads();
    const bool overflows = (errors & hlt::overflow) != 0u;

    // Each thread takes mats that stand together, so that one prefix sum over the threads is enough.
    const uint32_t of_thread = (hlt::n_scifi_mats + blockDim.x - 1u) / blockDim.x;
    const uint32_t first_place = hlt::min_of(threadIdx.x * of_thread, hlt::n_scifi_mats);
    const uint32_t last_place = overflows ? first_place : hlt::min_of(first_place + of_thread, hlt::n_scifi_mats);
    const auto n_hits_at = [&](uint32_t place) -> uint32_t {
        return runs.end[read_out.mat[place]] - runs.begin[read_out.mat[place]];
    };
    uint32_t mine = 0, n_hits;
    for (uint32_t place = first_place; place < last_place; ++place) {
        offset[place] = static_cast<uint16_t>(mine);
        mine += n_hits_at(place);
    }
    const uint32_t before = hlt::block_exclusive_sum(mine, scratch, n_hits);
    if (blockDim.x > 1u)
        for (uint32_t place = first_place; place < last_place; ++place) offset[place] += static_cast<uint16_t>(before);
    if (threadIdx.x == 0) {
        offset[hlt::n_scifi_mats] = static_cast<uint16_t>(n_hits);
        p.scifi_hits.count[event] = n_hits;
        if (errors != 0u) p.events.flags[event] |= errors;
    }
    __syncthreads();
    for (uint32_t zone = threadIdx.x; zone < hlt::scifi_zone_stride; zone += blockDim.x)
        zone_offset[zone] = overflows ? uint16_t{0} : offset[read_out.first_place[zone]];
    if (overflows) return;

    const hlt::scifi_hit_columns hits{p.scifi_hits.x + first, p.scifi_hits.z + first, p.scifi_hits.id + first,
                                      p.scifi_hits.info + first};
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
    if (blockDim.x == 1u) {
        // Eight at once, mat after mat: what is written behind the last hit of a mat, the next ones overwrite.
        uint32_t to = 0;
        for (uint32_t place = 0; place < hlt::n_scifi_mats; ++place) {
            const uint32_t index = read_out.mat[place];
            const hlt::scifi_mat& mat = p.scifi_mats[index];
            const uint32_t n = uint32_t{runs.end[index]} - runs.begin[index];
            for (uint32_t i = 0; i == 0u || i < n; i += 8u) {
                hlt::uint8x16 eight;
                hlt::load8(eight, mat.falls != 0u ? codes + runs.end[index] - i - 8 : codes + runs.begin[index] + i);
                hits.store8(to + i, mat.falls != 0u ? hlt::reversed8(eight) : eight, mat, index);
            }
            to += n;
        }
        return;
    }
#endif
    for (uint32_t place = threadIdx.x; place < hlt::n_scifi_mats; place += blockDim.x) {
        const uint32_t index = read_out.mat[place];
        const hlt::scifi_mat& mat = p.scifi_mats[index];
        const uint32_t begin = runs.begin[index], n = runs.end[index] - begin, to = offset[place];
        for (uint32_t i = 0; i < n; ++i)
            hits.store(to + i, codes[mat.falls != 0u ? begin + n - 1u - i : begin + i], mat, index);
    }
}
