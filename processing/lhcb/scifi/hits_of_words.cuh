// The threads of a block decode an event together, word by word. They count the hits of each word; a prefix sum gives
// the place of its hits among those of its mat; then they write the hits. Neighbouring lanes process neighbouring
// words.
#pragma once

#include "framework/device/warp_runs.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/scifi/bank.cuh"
#include "lhcb/scifi/hit_columns.cuh"

namespace hlt {

/// The words of a bank. The words of an event are numbered bank by bank.
struct scifi_bank_words {
    uint32_t offset;      // in the bytes of the batch
    uint32_t first_word;  // its number in the event
    uint16_t n_words;
    uint8_t number;  // of the bank
    uint8_t version;

    __device__ scifi_bank bank(const raw_banks& banks) const
    {
        return {banks.bytes + offset, n_words, number, version, false};
    }
};
static_assert(n_scifi_banks <= 256u);

/// Data on the words of an event, shared by the threads.
struct scifi_event_words {
    static constexpr uint32_t none = ~0u;

    uint32_t first_word[n_scifi_mat_indices];  // of each mat
    uint32_t end_of_bank[n_scifi_banks];       // number of its last word plus one
    scifi_bank_set broken;

    __device__ void clear()
    {
        for (uint32_t i = threadIdx.x; i < n_scifi_mat_indices; i += blockDim.x) first_word[i] = none;
        broken.clear();
    }
};

/// True if the word before is combined with word `i`: in a row of edges on one link, every second one is combined with
/// its successor.
template <scifi_rule rule>
__device__ bool is_taken_scifi_word(const scifi_bank& bank, uint32_t i)
{
    if (rule == scifi_rule::one_hit_per_word || (rule == scifi_rule::version_5 && bank[i].edge() == 0u)) return false;
    uint32_t begin = i;
    // A word that does not ascend ends the row, so a row is never longer than a link.
    while (begin > 0u && bank[begin - 1u].edge() != 0u && bank[begin - 1u].on_link_of(bank[begin]) &&
           bank[begin - 1u].bits < bank[begin].bits)
        --begin;
    return (i - begin) % 2u != 0u;
}

/// Number of hits of word `i`. The hits of two combined edges count for the first one.
template <scifi_rule rule>
__device__ uint32_t count_hits_of_word(const scifi_bank& bank, uint32_t i, bool& broken)
{
    if (is_taken_scifi_word<rule>(bank, i)) return 0;
    if (i + 1u == bank.n_words || !are_scifi_edges<rule>(bank[i], bank[i + 1u])) return 1;
    const scifi_edges edges{bank[i], bank[i + 1u]};
    if (edges.are_possible<rule>()) return count_hits_of_edges<rule>(edges);
    broken = true;
    return 0;
}

/// Hit `k` of the `n` hits of word `i`.
template <scifi_rule rule>
__device__ scifi_bank_hit hit_of_words(const scifi_bank& bank, uint32_t i, uint32_t n, uint32_t k)
{
    if (i + 1u < bank.n_words && are_scifi_edges<rule>(bank[i], bank[i + 1u]))
        return hit_of_edges<rule>({bank[i], bank[i + 1u]}, n, k);
    return hit_of_word<rule>(bank[i]);
}

/// Call work(words of the bank, i) for each word of the event. Returns bits of event_flag.
template <typename Work>
__device__ uint32_t for_each_scifi_word(const raw_banks& banks, const event_row& at, const row_range& rows,
                                        const scifi_bank_set& twice, uint32_t* scratch,
                                        warp_runs<scifi_bank_words>* runs, Work work)
{
    uint32_t errors = 0, n_words = 0;
    for (uint32_t base = 0; base < rows.count; base += blockDim.x) {
        scifi_bank_words words{};
        if (base + threadIdx.x < rows.count) {
            const mfp_row& row = banks.mfp_rows[rows.first + base + threadIdx.x];
            const scifi_bank bank = read_scifi_bank(banks, row, at.index, twice);
            if (bank.broken) errors |= bank_error;
            words = {static_cast<uint32_t>(bank.bytes - banks.bytes), 0, static_cast<uint16_t>(bank.n_words),
                     static_cast<uint8_t>(bank.number), static_cast<uint8_t>(bank.version)};
        }
        uint32_t total;
        words.first_word = n_words + block_exclusive_sum(words.n_words, scratch, total);
        n_words += total;
        share_runs(runs[threadIdx.x / warp_size], words.n_words, words, work);
    }
    return errors;
}

/// Exclusive prefix sum over `n` values, in place. The sum is stored behind the last one and returned.
__device__ uint32_t sum_in_place(uint16_t* values, uint32_t n, uint32_t* scratch)
{
    // Each thread takes consecutive values, so that one prefix sum over the threads is enough.
    const uint32_t of_thread = (n + blockDim.x - 1u) / blockDim.x;
    const uint32_t first = min_of(threadIdx.x * of_thread, n), last = min_of(first + of_thread, n);
    uint32_t mine = 0, total;
    for (uint32_t i = first; i < last; ++i) mine += values[i];
    uint32_t before = block_exclusive_sum(mine, scratch, total);
    for (uint32_t i = first; i < last; ++i) {
        const uint32_t value = values[i];
        values[i] = static_cast<uint16_t>(before);
        before += value;
    }
    if (threadIdx.x == 0) values[n] = static_cast<uint16_t>(total);
    __syncthreads();
    return total;
}

/// Decode an event of at most `bound` hits and fewer words: write the hits, and the `offset` of the hits of each mat,
/// by place. `number` is scratch for one number per word, `event` shared memory. Returns the number of hits; with more
/// than `bound`, none are written.
__device__ uint32_t decode_scifi_words(const raw_banks& banks, const event_row& at, const row_range& rows,
                                       const scifi_read_out& read_out, const scifi_mat* mats,
                                       const scifi_bank_set& twice, bool lossy, uint16_t* number, uint32_t bound,
                                       const scifi_hit_columns& hits, uint16_t* offset, scifi_event_words& event,
                                       uint32_t& errors)
{
    __shared__ uint32_t scratch[max_block_size / warp_size];
    __shared__ warp_runs<scifi_bank_words> runs[max_block_size / warp_size];
    __shared__ uint32_t n_words;

    event.clear();
    if (threadIdx.x == 0) n_words = 0;
    __syncthreads();
    errors |= for_each_scifi_word(banks, at, rows, twice, scratch, runs, [&](const scifi_bank_words& of, uint32_t i) {
        const scifi_bank bank = of.bank(banks);
        const scifi_word word = bank[i];
        bool broken = word.mat() >= read_out.n_mats[of.number];
        bool begins = i == 0u;
        if (i > 0u) {
            broken |= word.channel() <= bank[i - 1u].channel();
            begins = word.mat() != bank[i - 1u].mat();
        }
        const scifi_rule rule = scifi_rule_of(of.version, lossy);
        number[of.first_word + i] = static_cast<uint16_t>(
            rule == scifi_rule::one_hit_per_word ? count_hits_of_word<scifi_rule::one_hit_per_word>(bank, i, broken)
            : rule == scifi_rule::version_5      ? count_hits_of_word<scifi_rule::version_5>(bank, i, broken)
                                                 : count_hits_of_word<scifi_rule::version_6>(bank, i, broken));
        if (broken)
            event.broken.add(of.number);
        else if (begins)
            atomicMin(&event.first_word[read_out.first_mat[of.number] + word.mat()], of.first_word + i);
        if (i + 1u == of.n_words) {
            event.end_of_bank[of.number] = of.first_word + of.n_words;
            atomicMax(&n_words, of.first_word + of.n_words);
        }
    });
    __syncthreads();
    sum_in_place(number, n_words, scratch);

    for (uint32_t place = threadIdx.x; place < n_scifi_mats; place += blockDim.x) {
        const uint32_t index = read_out.mat[place], of_bank = mats[index].bank;
        uint32_t n_hits = 0;
        if (event.first_word[index] != event.none && !event.broken.has(of_bank)) {
            uint32_t end = event.end_of_bank[of_bank];
            for (uint32_t mat = read_out.first_mat[of_bank] + read_out.n_mats[of_bank] - 1u; mat > index; --mat)
                end = min_of(end, event.first_word[mat]);
            n_hits = static_cast<uint16_t>(number[end] - number[event.first_word[index]]);
        }
        offset[place] = static_cast<uint16_t>(n_hits);
    }
    for (uint32_t i = threadIdx.x; i < n_scifi_banks; i += blockDim.x)
        if (event.broken.has(i)) errors |= bank_error;
    __syncthreads();
    const uint32_t n_hits = sum_in_place(offset, n_scifi_mats, scratch);
    if (n_hits > bound) return n_hits;

    for_each_scifi_word(banks, at, rows, twice, scratch, runs, [&](const scifi_bank_words& of, uint32_t i) {
        const uint32_t before = number[of.first_word + i];
        const uint32_t n = static_cast<uint16_t>(number[of.first_word + i + 1u] - before);
        if (n == 0u || event.broken.has(of.number)) return;
        const scifi_bank bank = of.bank(banks);
        const uint32_t index = read_out.first_mat[of.number] + bank[i].mat();
        const scifi_mat& mat = mats[index];
        const uint32_t rank = static_cast<uint16_t>(before - number[event.first_word[index]]);
        const bool falls = mat.falls != 0u;
        const uint32_t to = falls ? offset[mat.place + 1u] - 1u - rank : offset[mat.place] + rank;
        const scifi_rule rule = scifi_rule_of(of.version, lossy);
#pragma unroll 1
        for (uint32_t k = 0; k < n; ++k) {
            const scifi_bank_hit hit =
                rule == scifi_rule::one_hit_per_word ? hit_of_words<scifi_rule::one_hit_per_word>(bank, i, n, k)
                : rule == scifi_rule::version_5      ? hit_of_words<scifi_rule::version_5>(bank, i, n, k)
                                                     : hit_of_words<scifi_rule::version_6>(bank, i, n, k);
            hits.store(falls ? to - k : to + k, scifi_code(hit), mat, index);
        }
    });
    return n_hits;
}

}  // namespace hlt
