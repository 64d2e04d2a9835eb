// Decoding of an event on the CPU: banks to codes of hits, 16 bits each, then codes to hits, mat by mat. Both steps
// take a vector of eight words or codes at once.
#pragma once

#include "framework/device/lanes.cuh"
#include "lhcb/scifi/bank.cuh"
#include "lhcb/scifi/hit_columns.cuh"
#include "lhcb/scifi/hits_of_links.cuh"

namespace hlt {

/// Start and end of the codes of each mat, by mat index.
struct scifi_runs {
    uint16_t begin[n_scifi_mat_indices];
    uint16_t end[n_scifi_mat_indices];
};

/// Selects from the words that may be combined with the next one (bit k) those that are combined: in a row, every
/// second one.
inline uint32_t first_of_scifi_edges(uint32_t candidates)
{
    if ((candidates & candidates >> 1) == 0u) return candidates;
    uint32_t first = 0;
    for (uint32_t left = candidates; left != 0u; left &= ~(3u * (left & (0u - left)))) first |= left & (0u - left);
    return first;
}

/// Eight consecutive words of a bank, and their hits: one for each bit of `kept`.
template <scifi_rule rule>
struct eight_scifi_words {
    uint8x16 codes;       // of hits
    int8x16 mat;          // of the bank
    uint32_t kept;        // words that are not second edges
    uint32_t first;       // words that are combined with the next one
    uint32_t not_one;     // combined words that make no hit, or several
    bool broken = false;  // words that do not ascend, or edges that are too close

    /// The words from `i` on, fewer at the end of the bank. `second`: true if the first one is a second edge.
    inline __attribute__((always_inline)) eight_scifi_words(const scifi_bank& bank, uint32_t i, bool second)
    {
        const uint32_t n = bank.n_words - i;
        const uint32_t there = (1u << min_of(n, 8u)) - 1u, followed = (1u << min_of(n - 1u, 8u)) - 1u;
        uint8x16 word, next;
        load_first8(word, bank.bytes + 2u * i, n);
        load_first8(next, bank.bytes + 2u * i + 2u, n - 1u);
        mat = __builtin_convertvector(word >> 11, int8x16);
        const int8x16 distance =
            __builtin_convertvector(next >> 2, int8x16) - __builtin_convertvector(word >> 2, int8x16);
        broken = (bits_of(distance <= 0) & followed) != 0u;
        codes = (word >> 1 & 0x3ffu) | uint16_t{scifi_narrow << 10};
        kept = there;
        first = not_one = 0;
        if (rule != scifi_rule::version_5) codes = (word & 1u) != 0u ? word >> 1 & 0x3ffu : codes;
        if (rule == scifi_rule::one_hit_per_word) return;
        const uint8x16 edges = rule == scifi_rule::version_5 ? word & next & 1u : word & 1u;
        first = bits_of((edges != 0u) & ((word ^ next) >> 9 == 0u)) & followed & (second ? ~1u : ~0u);
        first = first_of_scifi_edges(first);
        kept &= ~(first << 1 | (second ? 1u : 0u));
        uint8x16 half_channel, width;
        if (rule == scifi_rule::version_5) {
            broken |= (first & bits_of(distance < int16_t{scifi_min_edge_distance})) != 0u;
            not_one = first & bits_of(distance > int16_t{scifi_piece});
            half_channel = (next >> 1) - uint16_t{scifi_piece};
            width = (next >> 1) - (word >> 2 << 1) - 1u;
        } else {
            const int8x16 sound = ((word & 2u) != 0u) & ((next & 3u) == 1u);
            not_one = first & ~bits_of(sound & (distance <= int16_t{2u * scifi_piece - 2u}));
            width = __builtin_convertvector(distance, uint8x16) + 2u;
            half_channel = (word >> 2 << 1) + width - 3u;
        }
        const uint8x16 of_edges = (half_channel & 0x3ffu) | width << 10;
        const int8x16 lanes{1, 2, 4, 8, 16, 32, 64, 128};
        codes = (lanes & static_cast<int16_t>(first)) != 0 ? of_edges : codes;
    }

    /// Words of the mats up to `last`.
    uint32_t of_mats(uint32_t last) const { return bits_of(mat <= static_cast<int16_t>(last)); }
};

/// Writes the codes of the hits of banks.
struct scifi_code_writer {
    uint16_t* __restrict__ codes;
    uint32_t room;
    uint32_t n = 0;  // codes so far; codes beyond `room` are counted, not written

    /// Write the codes of a bank with `n_mats` mats, and the end of the codes of each mat. A broken bank has no codes.
    /// Returns true if it is broken.
    template <scifi_rule rule>
    bool write_bank(const scifi_bank& bank, uint32_t n_mats, uint16_t* __restrict__ end)
    {
        const uint32_t before = n;
        for (uint32_t mat = 0; mat < n_mats; ++mat) end[mat] = static_cast<uint16_t>(before);
        bool broken = scifi_word{bank[bank.n_words - 1u]}.mat() >= n_mats, second = false;
        for (uint32_t i = 0; i < bank.n_words && !broken; i += 8u) {
            const eight_scifi_words<rule> words(bank, i, second);
            broken = words.broken;
            if (broken) break;
            if (words.not_one == 0u)
                write_eight(words, n_mats, end);
            else
                write_each(bank, i, words, n_mats, end);
            second = words.first >> 7 != 0u;
        }
        if (!broken) return false;
        n = before;
        for (uint32_t mat = 0; mat < n_mats; ++mat) end[mat] = static_cast<uint16_t>(before);
        return true;
    }

    /// The same, with a rule that is only known at run time.
    bool write_bank(const scifi_bank& bank, scifi_rule rule, uint32_t n_mats, uint16_t* __restrict__ end)
    {
        return rule == scifi_rule::one_hit_per_word ? write_bank<scifi_rule::one_hit_per_word>(bank, n_mats, end)
               : rule == scifi_rule::version_5      ? write_bank<scifi_rule::version_5>(bank, n_mats, end)
                                                    : write_bank<scifi_rule::version_6>(bank, n_mats, end);
    }

  private:
    /// Each kept word makes one hit.
    template <scifi_rule rule>
    void write_eight(const eight_scifi_words<rule>& words, uint32_t n_mats, uint16_t* __restrict__ end)
    {
        const uint32_t n_hits = static_cast<uint32_t>(__popc(words.kept));
        if (n + n_hits <= room) store_packed(codes + n, words.codes, words.kept);
        for (uint32_t mat = 0; mat < n_mats; ++mat)
            end[mat] = static_cast<uint16_t>(end[mat] + __popc(words.kept & words.of_mats(mat)));
        n += n_hits;
    }

    template <scifi_rule rule>
    void write_each(const scifi_bank& bank, uint32_t i, const eight_scifi_words<rule>& words, uint32_t n_mats,
                    uint16_t* __restrict__ end)
    {
        for (uint32_t left = words.kept; left != 0u; left &= left - 1u) {
            const uint32_t k = static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1u;
            uint32_t n_hits = 1;
            if ((words.not_one >> k & 1u) == 0u) {
                if (n < room) codes[n] = words.codes[k];
            } else {
                const scifi_edges edges{bank[i + k], bank[i + k + 1u]};
                n_hits = count_hits_of_edges<rule>(edges);
                for (uint32_t hit = 0; hit < n_hits && n + n_hits <= room; ++hit)
                    codes[n + hit] = static_cast<uint16_t>(scifi_code(hit_of_edges<rule>(edges, n_hits, hit)));
            }
            n += n_hits;
            for (uint32_t mat = bank[i + k].mat(); mat < n_mats; ++mat)
                end[mat] = static_cast<uint16_t>(end[mat] + n_hits);
        }
    }
};

/// Write the codes of the banks of an event, at most `room`; returns their number without this limit. `errors` gets
/// bits of event_flag.
inline uint32_t write_scifi_codes(const raw_banks& banks, const event_row& at, const row_range& rows,
                                  const scifi_read_out& read_out, const scifi_bank_set& twice, bool lossy,
                                  uint16_t* codes, uint32_t room, scifi_runs& runs, uint32_t& errors)
{
    scifi_code_writer writer{codes, room};
    for (uint32_t i = rows.first; i < rows.first + rows.count; ++i) {
        const scifi_bank bank = read_scifi_bank(banks, banks.mfp_rows[i], at.index, twice);
        if (bank.broken) errors |= bank_error;
        if (bank.n_words == 0u) continue;
        const uint32_t n_mats = read_out.n_mats[bank.number];
        uint16_t* const begin = runs.begin + read_out.first_mat[bank.number];
        uint16_t* const end = runs.end + read_out.first_mat[bank.number];
        uint32_t before = writer.n;
        if (writer.write_bank(bank, scifi_rule_of(bank.version, lossy), n_mats, end)) errors |= bank_error;
        for (uint32_t mat = 0; mat < n_mats; ++mat) {
            begin[mat] = static_cast<uint16_t>(before);
            before = end[mat];
        }
    }
    return writer.n;
}

/// As write_scifi_codes, for banks of versions 7 and 8; without codes if there is no room for them.
inline uint32_t write_scifi_codes_of_links(const raw_banks& banks, const event_row& at, const row_range& rows,
                                           const scifi_read_out& read_out, const scifi_sipms& sipms, bool lossy,
                                           uint16_t* codes, uint32_t room, scifi_runs& runs, uint32_t& errors)
{
    scifi_sipm_hits hits;
    hits.clear(0, 1);
    count_scifi_hits_of_links(banks, at, rows, sipms, lossy, 0, 1, hits, errors);
    uint16_t offset[n_scifi_mats];
    uint32_t n_hits = 0;
    for (uint32_t place = 0; place < n_scifi_mats; ++place) {
        const uint32_t index = read_out.mat[place];
        offset[place] = runs.begin[index] = static_cast<uint16_t>(n_hits);
        n_hits += hits.finish_mat(place, errors);
        runs.end[index] = static_cast<uint16_t>(n_hits);
    }
    if (n_hits <= room) write_scifi_codes_of_links(banks, at, rows, sipms, lossy, 0, 1, offset, codes, hits, errors);
    return n_hits;
}

/// Write eight hits of mat `index` from place `at` on.
inline void store_scifi_hits(const scifi_hit_columns& hits, uint32_t at, const uint8x16& codes, const scifi_mat& mat,
                             uint32_t index)
{
    const auto copy = [](void* to, const auto& vector) { std::memcpy(to, &vector, sizeof vector); };
    const uint8x32 code = widened(codes);
    float8 u;
    find_scifi_u(mat, as_float(code & 0xffu), as_float(code >> 7 & 1u), as_float(code >> 8 & 3u), u);
    copy(hits.x + at, mat.x_first + mat.dx_du * u);
    copy(hits.z + at, mat.z_first + mat.dz_du * u);
    copy(hits.id + at, scifi_hit_columns::first_id(index) + (code >> 1 & 0x1ffu));
    copy(hits.info + at, static_cast<uint16_t>(index) | codes >> 10 << 11);
}

/// Write the hits of all mats in order. The hits of the next mat overwrite the values behind the last hit of a mat.
inline void write_scifi_hits(const scifi_read_out& read_out, const scifi_mat* __restrict__ mats, const uint16_t* codes,
                             const scifi_runs& runs, const scifi_hit_columns& hits, uint16_t* offset)
{
    constexpr uint32_t ahead = 32;  // mats are in the order of their index
    uint32_t to = 0;
    for (uint32_t place = 0; place < n_scifi_mats; ++place) {
        prefetch(mats + read_out.mat[min_of(place + ahead, n_scifi_mats - 1u)]);
        const uint32_t index = read_out.mat[place];
        const scifi_mat& mat = mats[index];
        const uint32_t begin = runs.begin[index], end = runs.end[index];
        offset[place] = static_cast<uint16_t>(to);
        for (uint32_t i = 0; i == 0u || i < end - begin; i += 8u) {
            uint8x16 eight;
            load8(eight, mat.falls != 0u ? codes + end - i - 8 : codes + begin + i);
            store_scifi_hits(hits, to + i, mat.falls != 0u ? reversed8(eight) : eight, mat, index);
        }
        to += end - begin;
    }
    offset[n_scifi_mats] = static_cast<uint16_t>(to);
}

}  // namespace hlt
