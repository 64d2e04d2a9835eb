// The threads of a block decode an event together: words one by one to find where those of each mat begin, then each
// thread mats of its own, first to count their hits, then to write them. No two edges that belong together lie in two
// mats.
#pragma once

#include "framework/device/warp_runs.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/scifi/hit_columns.cuh"
#include "lhcb/scifi/walk.cuh"

namespace hlt {

/// The words of a bank.
struct scifi_bank_words {
    uint32_t offset;  // in the bytes of the batch
    uint16_t number;  // of the bank
    uint16_t n_words;
};

/// What the threads know of the words of an event.
struct scifi_mat_words {
    static constexpr uint32_t none = ~0u;

    alignas(16) uint32_t begin[n_scifi_mat_indices];  // first word of each mat in its bank
    scifi_bank_words banks[n_scifi_banks];
    uint8_t versions[n_scifi_banks];
    scifi_bank_set broken;

    __device__ void clear()
    {
        for (uint32_t i = threadIdx.x; i < n_scifi_mat_indices; i += blockDim.x) begin[i] = none;
        for (uint32_t i = threadIdx.x; i < n_scifi_banks; i += blockDim.x) banks[i] = {0, 0, 0};
        broken.clear();
    }

    /// The words of a mat as a bank of their own; none if there are none.
    __device__ scifi_bank of_mat(const raw_banks& raw, const scifi_read_out& read_out, uint32_t index,
                                 uint32_t number) const
    {
        const uint32_t first = begin[index];
        if (first == none) return {raw.bytes, 0, number, 0, false};
        const scifi_bank_words words = banks[number];
        uint32_t end = words.n_words;
        const uint32_t last_mat = read_out.first_mat[number] + read_out.n_mats[number] - 1u;
        for (uint32_t other = last_mat; other > index; --other)
            if (begin[other] != none) end = begin[other];
        // Of a bank that is broken mats may begin in any order.
        return {raw.bytes + words.offset + 2u * first, end > first ? end - first : 0u, number, versions[number], false};
    }
};

/// Writes the hits of a mat, forwards or backwards.
struct scifi_mat_writer {
    const scifi_hit_columns& hits;
    const scifi_mat& mat;
    uint32_t index;  // of the mat
    uint32_t to;
    uint32_t step;
    uint32_t n = 0;

    __device__ void take(uint32_t channel, uint32_t fraction, uint32_t size)
    {
        hits.store(to, scifi_code(channel, fraction, size), mat, index);
        to += step;
        ++n;
    }
    __device__ void end_word(scifi_word) {}
    __device__ bool has_room(uint32_t) const { return true; }
};

/// Find the banks of an event and where the words of each mat begin. Returns bits of event_flag.
__device__ uint32_t find_scifi_words(const raw_banks& raw, const event_row& at, const row_range& rows,
                                     const scifi_read_out& read_out, const scifi_bank_set& twice,
                                     warp_runs<scifi_bank_words>* runs, scifi_mat_words& words)
{
    uint32_t errors = 0;
    for (uint32_t base = 0; base < rows.count; base += blockDim.x) {
        scifi_bank_words of_bank{};
        if (base + threadIdx.x < rows.count) {
            const scifi_bank bank =
                read_scifi_bank(raw, raw.mfp_rows[rows.first + base + threadIdx.x], at.index, twice);
            if (bank.broken) errors |= bank_error;
            if (bank.n_words > 0u) {
                of_bank = {static_cast<uint32_t>(bank.bytes - raw.bytes), static_cast<uint16_t>(bank.number),
                           static_cast<uint16_t>(bank.n_words)};
                words.banks[bank.number] = of_bank;
                words.versions[bank.number] = static_cast<uint8_t>(bank.version);
            }
        }
        share_runs(runs[threadIdx.x / warp_size], of_bank.n_words, of_bank,
                   [&](const scifi_bank_words& of, uint32_t i) {
                       const uint8_t* const word_bytes = raw.bytes + of.offset + 2u * i;
                       const scifi_word word{load_u16(word_bytes)};
                       const scifi_word previous{i > 0u ? load_u16(word_bytes - 2) : 0u};
                       if (word.mat() >= read_out.n_mats[of.number] || (i > 0u && word.channel() <= previous.channel()))
                           words.broken.add(of.number);
                       else if (i == 0u || previous.mat() != word.mat())
                           atomicMin(&words.begin[read_out.first_mat[of.number] + word.mat()], i);
                   });
    }
    return errors;
}

}  // namespace hlt
