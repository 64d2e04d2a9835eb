// One thread decodes an event: bank after bank to codes of hits, 16 bits each, then mat after mat to hits, eight at
// once. For processors, where what is near in memory costs little and eight lanes compute like one.
#pragma once

#include "lhcb/scifi/bank.cuh"
#include "lhcb/scifi/hit_columns.cuh"

#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)

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
    void take(const scifi_bank_hit&) { ++n; }
    void end_word(scifi_word) {}
    bool has_room(uint32_t) const { return true; }
};

/// Take the hits of the words of a bank that reads `n_mats` mats: hits.take(hit) for each, then hits.end_word(word).
template <scifi_rule rule, typename Hits>
inline scifi_walk walk_scifi_bank(const scifi_bank& bank, uint32_t n_mats, Hits hits)
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
                const uint32_t n = count_hits_of_edges<rule>(edges);
                if (!hits.has_room(n + (n_words - i))) return {0, false, true};
                for (uint32_t k = 0; k < n; ++k) hits.take(hit_of_edges<rule>(edges, n, k));
                ++i;
                last = static_cast<int32_t>(next.bits);
                hits.end_word(next);
                continue;
            }
        }
        hits.take(hit_of_word<rule>(word));
        hits.end_word(word);
        last = static_cast<int32_t>(word.bits);
    }
    broken |= last >= 0 && scifi_word{static_cast<uint32_t>(last)}.mat() >= n_mats;
    return {broken ? 0u : hits.n - before, broken, false};
}

/// By the rule of the bank's version. `lossy`: each word is a hit.
template <typename Hits>
inline scifi_walk walk_scifi_bank(const scifi_bank& bank, uint32_t n_mats, bool lossy, const Hits& hits)
{
    if (lossy || bank.version == 4u) return walk_scifi_bank<scifi_rule::one_hit_per_word>(bank, n_mats, hits);
    if (bank.version == 5u) return walk_scifi_bank<scifi_rule::version_5>(bank, n_mats, hits);
    return walk_scifi_bank<scifi_rule::version_6>(bank, n_mats, hits);
}

/// Writes the codes of the hits of a bank, and where those of each of its mats end.
struct scifi_code_writer {
    uint16_t* __restrict__ codes;
    uint16_t* __restrict__ end;  // of the mats of the bank
    uint32_t last_mat;           // of the bank
    uint32_t n;                  // codes up to now
    uint32_t room;

    void take(const scifi_bank_hit& hit) { codes[n++] = static_cast<uint16_t>(scifi_code(hit)); }
    void end_word(scifi_word word) { end[min_of(word.mat(), last_mat)] = static_cast<uint16_t>(n); }
    bool has_room(uint32_t more) const { return n + more <= room; }
};

/// Where the codes of each mat begin and end, by mat index.
struct scifi_runs {
    uint16_t begin[n_scifi_mat_indices];
    uint16_t end[n_scifi_mat_indices];
};

/// The codes of the banks of an event, at most `room`; returns how many there would be. `errors` gets bits of
/// event_flag.
inline uint32_t write_scifi_codes(const raw_banks& banks, const event_row& at, const row_range& rows,
                                  const scifi_read_out& read_out, const scifi_bank_set& twice, bool lossy,
                                  uint16_t* codes, uint32_t room, scifi_runs& runs, uint32_t& errors)
{
    uint32_t n_codes = 0;
    for (uint32_t i = rows.first; i < rows.first + rows.count; ++i) {
        const scifi_bank bank = read_scifi_bank(banks, banks.mfp_rows[i], at.index, twice);
        if (bank.broken) errors |= bank_error;
        if (bank.n_words == 0u) continue;
        const uint32_t first_mat = read_out.first_mat[bank.number], n_mats = read_out.n_mats[bank.number];
        scifi_code_writer writer{codes, runs.end + first_mat, n_mats - 1u, n_codes, room};
        scifi_walk walk{0, false, true};
        if (n_codes + bank.n_words <= room) walk = walk_scifi_bank(bank, n_mats, lossy, writer);
        if (walk.crowded) {  // or so it seems: the hits of two edges may need the places of the words behind them
            walk = walk_scifi_bank(bank, n_mats, lossy, scifi_hit_counter{});
            writer.room = ~0u;
            if (!walk.broken && n_codes + walk.n_hits <= room) walk_scifi_bank(bank, n_mats, lossy, writer);
        }
        if (walk.broken) errors |= bank_error;
        uint32_t before = n_codes;
        for (uint32_t mat = first_mat; mat < first_mat + n_mats; ++mat) {
            const uint32_t end = walk.broken ? n_codes : max_of(before, uint32_t{runs.end[mat]});
            runs.begin[mat] = static_cast<uint16_t>(before);
            runs.end[mat] = static_cast<uint16_t>(end);
            before = end;
        }
        n_codes += walk.n_hits;
    }
    return n_codes;
}

/// The hits of all mats in their order. What is written behind the last hit of a mat, the next ones overwrite.
inline void write_scifi_hits(const scifi_read_out& read_out, const scifi_mat* __restrict__ mats, const uint16_t* codes,
                             const scifi_runs& runs, const scifi_hit_columns& hits, uint16_t* offset)
{
    uint32_t to = 0;
    for (uint32_t place = 0; place < n_scifi_mats; ++place) {
        const uint32_t index = read_out.mat[place];
        const scifi_mat& mat = mats[index];
        const uint32_t begin = runs.begin[index], end = runs.end[index];
        offset[place] = static_cast<uint16_t>(to);
        for (uint32_t i = 0; i == 0u || i < end - begin; i += 8u) {
            uint8x16 eight;
            load8(eight, mat.falls != 0u ? codes + end - i - 8 : codes + begin + i);
            hits.store8(to + i, mat.falls != 0u ? reversed8(eight) : eight, mat, index);
        }
        to += end - begin;
    }
    offset[n_scifi_mats] = static_cast<uint16_t>(to);
}

}  // namespace hlt

#endif
