// The hits of a bank, or of a run of its words, one after the other in the order of the channels.
#pragma once

#include "lhcb/scifi/bank.cuh"

namespace hlt {

/// What became of the words.
struct scifi_walk {
    uint32_t n_hits;
    bool broken;
    bool crowded;  // more hits than there is room for: the walk has ended early
};

/// Counts hits.
struct scifi_hit_counter {
    uint32_t n = 0;
    __device__ void take(uint32_t, uint32_t, uint32_t) { ++n; }
    __device__ void end_word(scifi_word) {}
    __device__ bool has_room(uint32_t) const { return true; }
};

/// Take the hits of the words of a bank that reads `n_mats` mats: hits.take(channel, fraction, pseudo-size) for each,
/// then hits.end_word(word).
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

/// By the rule of the bank's version. `lossy`: each word is a hit.
template <typename Hits>
__device__ scifi_walk walk_scifi_bank(const scifi_bank& bank, uint32_t n_mats, bool lossy, const Hits& hits)
{
    if (lossy || bank.version == 4u) return walk_scifi_bank<scifi_rule::one_hit_per_word>(bank, n_mats, hits);
    if (bank.version == 5u) return walk_scifi_bank<scifi_rule::version_5>(bank, n_mats, hits);
    return walk_scifi_bank<scifi_rule::version_6>(bank, n_mats, hits);
}

/// Bank numbers.
struct scifi_bank_set {
    uint32_t bits[(n_scifi_banks + 31u) / 32u];

    __device__ void clear()
    {
        for (uint32_t i = threadIdx.x; i < sizeof bits / sizeof bits[0]; i += blockDim.x) bits[i] = 0;
    }
    /// Returns whether it was there before.
    __device__ bool add(uint32_t number)
    {
        const uint32_t bit = 1u << number % 32u;
        return (atomicOr(&bits[number / 32u], bit) & bit) != 0u;
    }
    __device__ bool has(uint32_t number) const { return (bits[number / 32u] >> number % 32u & 1u) != 0u; }
};

/// The bank of a row; without words, and broken if it had any, if two sources have its number.
__device__ scifi_bank read_scifi_bank(const raw_banks& banks, const mfp_row& row, uint32_t event_index,
                                      const scifi_bank_set& twice)
{
    scifi_bank bank = scifi_bank_of(fragment_of(banks, row, event_index), row);
    if (bank.n_words > 0u && twice.has(bank.number)) {
        bank.broken = true;
        bank.n_words = 0;
    }
    return bank;
}

}  // namespace hlt
