// How many SciFi hits an event, each of its banks and each mat has, and where those of each mat will stand.
//
// A mat belongs to one bank, whose words and hits rise; so the hits of a mat are a run of those of its bank, and a prefix
// sum over the mats in the order of x is all the sorting that is needed. A bank whose words do not rise, that has words
// of links that it does not read, or two edges too close to one another is damaged: it flags the event and gives no
// hits. So do two banks of one number, both of them. An event that the global event cut took gives none either.
// In:  the fragments of the SciFi rows, scifi_read_out; events.flags.
// Out: scifi_hits.bound [event], scifi_hits.bank_hits [event][240], scifi_hits.mat_offset [event][1032]; events.flags.
// One block per event; threads stride over the banks, each reads the words of its own, then over the mats.
// Bounds: n_scifi_banks banks and n_scifi_mats mats, whatever the rows are; scifi_hit_offsets refuses events of which
// 16 bits do not number the hits.
#pragma once

#include "framework/generated/launch_types.h"
#include "lhcb/scifi/bank.cuh"
#include "lhcb/scifi/generated/scifi_count_hits.h"

namespace hlt {

/// Hits of each mat by its place, and of each bank.
struct scifi_counts {
    alignas(16) uint16_t of_mat[scifi_mat_stride];
    alignas(16) uint16_t of_bank[n_scifi_banks];
    uint32_t seen[n_scifi_banks / 32u + 1u];   // a bit for each bank number
    uint32_t twice[n_scifi_banks / 32u + 1u];  // those that more than one bank has
};

/// Count the hits of a bank. `of_mat` gets them by place; 0 if the bank is damaged.
template <scifi_rule rule>
__device__ uint32_t count_hits_of_bank(const scifi_bank& bank, const uint16_t* __restrict__ place, uint32_t n_mats,
                                       uint16_t* of_mat, bool& broken)
{
    if (bank.n_words == 0u) return 0;
    // First the number of hits up to the last word of each mat: nothing has to be read again.
    uint32_t hits = 0;
    bool taken = false, wrong = false;
    scifi_word word = bank[0];
    for (uint32_t i = 1; i < bank.n_words; ++i) {
        const scifi_word next = bank[i];
        const bool edges = !taken && are_scifi_edges<rule>(word, next);
        const uint32_t distance = next.channel() - word.channel();
        wrong |= next.channel() <= word.channel();
        if (rule == scifi_rule::version_5) wrong |= edges && distance < scifi_min_edge_distance;
        hits += edges ? count_hits_of_edges<rule>({word, next}) : taken ? 0u : 1u;
        of_mat[place[min_of(word.mat(), n_mats - 1u)]] = static_cast<uint16_t>(hits);
        taken = edges;
        word = next;
    }
    hits += taken ? 0u : 1u;
    wrong |= word.mat() >= n_mats;
    of_mat[place[min_of(word.mat(), n_mats - 1u)]] = static_cast<uint16_t>(hits);
    uint32_t before = 0;
    for (uint32_t mat = 0; mat < n_mats; ++mat) {
        uint16_t& count = of_mat[place[mat]];
        const uint32_t last = count;
        count = static_cast<uint16_t>(!wrong && last > before ? last - before : 0u);
        before = max_of(before, last);
    }
    broken |= wrong;
    return wrong ? 0u : hits;
}

}  // namespace hlt

HLT_KERNEL(scifi_count_hits)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ hlt::scifi_counts counts;

    uint16_t* mat_offset = p.scifi_hits.mat_offset + event * hlt::scifi_mat_stride;
    uint16_t* bank_hits = p.scifi_hits.bank_hits + event * hlt::n_scifi_banks;
    if ((p.events.flags[event] & hlt::global_event_cut) != 0u) {
        if (threadIdx.x == 0) p.scifi_hits.bound[event] = 0;
        return;
    }
    hlt::zero_words(&counts, sizeof counts / 16u * 4u);
    __syncthreads();

    const hlt::scifi_read_out& read_out = *p.scifi_read_out;
    const hlt::event_row at = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::scifi_rows_of(p.raw_banks, at.mep);
    bool broken = false;
    for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + i];
        const hlt::scifi_bank bank = hlt::scifi_bank_of(hlt::fragment_of(p.raw_banks, row, at.index), row);
        broken |= bank.broken;
        if (bank.broken || bank.n_words == 0u) continue;
        const uint32_t bit = 1u << bank.number % 32u;
        if ((atomicOr(&counts.seen[bank.number / 32u], bit) & bit) != 0u) {
            atomicOr(&counts.twice[bank.number / 32u], bit);
            continue;
        }
        const uint16_t* place = read_out.place + read_out.first_mat[bank.number];
        const uint32_t n_mats = read_out.n_mats[bank.number];
        const bool one_hit_per_word = p.lossy != 0u || bank.version == 4u;
        uint32_t hits;
        if (one_hit_per_word)
            hits = hlt::count_hits_of_bank<hlt::scifi_rule::one_hit_per_word>(bank, place, n_mats, counts.of_mat,
                                                                              broken);
        else if (bank.version == 5u)
            hits = hlt::count_hits_of_bank<hlt::scifi_rule::version_5>(bank, place, n_mats, counts.of_mat, broken);
        else
            hits = hlt::count_hits_of_bank<hlt::scifi_rule::version_6>(bank, place, n_mats, counts.of_mat, broken);
        counts.of_bank[bank.number] =
            static_cast<uint16_t>(hits != 0u && one_hit_per_word ? hits | hlt::one_scifi_hit_per_word : hits);
    }
    __syncthreads();
    for (uint32_t number = threadIdx.x; number < hlt::n_scifi_banks; number += blockDim.x) {
        if ((counts.twice[number / 32u] >> number % 32u & 1u) == 0u) continue;
        broken = true;
        counts.of_bank[number] = 0;
        for (uint32_t mat = 0; mat < read_out.n_mats[number]; ++mat)
            counts.of_mat[read_out.place[read_out.first_mat[number] + mat]] = 0;
    }
    if (broken) atomicOr(&p.events.flags[event], static_cast<uint32_t>(hlt::bank_error));
    __syncthreads();

    // Each thread takes mats that stand together, so that one prefix sum over the threads is enough.
    const uint32_t of_thread = (hlt::n_scifi_mats + blockDim.x - 1u) / blockDim.x;
    const uint32_t first = hlt::min_of(threadIdx.x * of_thread, hlt::n_scifi_mats);
    const uint32_t last = hlt::min_of(first + of_thread, hlt::n_scifi_mats);
    uint32_t mine = 0;
    if (blockDim.x > 1u)
        for (uint32_t i = first; i < last; ++i) mine += counts.of_mat[i];
    uint32_t total;
    uint32_t offset = hlt::block_exclusive_sum(mine, scratch, total);
    for (uint32_t i = first; i < last; ++i) {
        mat_offset[i] = static_cast<uint16_t>(offset);
        offset += counts.of_mat[i];
    }
    for (uint32_t i = threadIdx.x; i < hlt::n_scifi_banks; i += blockDim.x) bank_hits[i] = counts.of_bank[i];
    if (threadIdx.x == blockDim.x - 1u) mat_offset[hlt::n_scifi_mats] = static_cast<uint16_t>(offset);
    if (threadIdx.x == blockDim.x - 1u) p.scifi_hits.bound[event] = offset;
}
