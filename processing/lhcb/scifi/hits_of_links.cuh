// Banks of versions 7 and 8 to hits. A SiPM is read by one link, and one thread takes all words of a bank. So a thread
// counts the hits of its SiPMs, and later inserts them into their run, without atomics. Runs of the SiPMs of a mat are
// consecutive; a prefix sum over the mats in the order of x gives their places.
//
// Most runs have one or two hits, so an insertion sort is enough. A link has scifi_channels_per_link channels; one with
// more hits contradicts itself and gives none, which also bounds the sort. Two hits of one half-channel contradict each
// other: they are kept, and flag the event.
#pragma once

#include "lhcb/scifi/hit_columns.cuh"
#include "lhcb/scifi/link_bank.cuh"

namespace hlt {

constexpr uint32_t n_scifi_sipms = scifi_sipms_per_mat * n_scifi_mats;
static_assert(scifi_channels_per_link < 255u);

/// Hits of each SiPM, by its place.
struct scifi_sipm_hits {
    uint8_t n[n_scifi_sipms];  // scifi_channels_per_link + 1: more than it has channels
    uint8_t n_written[n_scifi_sipms];

    /// Called by thread `thread` of `n_threads`.
    __device__ void clear(uint32_t thread, uint32_t n_threads)
    {
        for (uint32_t place = thread; place < n_scifi_sipms; place += n_threads) n[place] = n_written[place] = 0;
    }
    __device__ void count(uint32_t place)
    {
        if (n[place] <= scifi_channels_per_link) ++n[place];
    }
    /// Hits of a mat, after those of SiPMs with too many are removed; these set `errors`.
    __device__ uint32_t finish_mat(uint32_t mat, uint32_t& errors)
    {
        uint32_t of_mat = 0;
        for (uint32_t place = scifi_sipms_per_mat * mat; place < scifi_sipms_per_mat * (mat + 1u); ++place) {
            if (n[place] > scifi_channels_per_link) {
                n[place] = 0;
                errors |= bank_error;
            }
            of_mat += n[place];
        }
        return of_mat;
    }
    /// Insert a hit among the `codes` of its mat in ascending order. Sets `errors` if its half-channel has a hit.
    __device__ void insert(uint32_t place, uint32_t code, uint16_t* codes, uint32_t& errors)
    {
        if (n[place] == 0u) return;
        for (uint32_t before = place & ~(scifi_sipms_per_mat - 1u); before < place; ++before) codes += n[before];
        uint32_t at = n_written[place]++;
        for (; at > 0u && order_of(codes[at - 1u]) > order_of(code); --at) {
            if (of_one_half_channel(codes[at - 1u], code)) errors |= bank_error;
            codes[at] = codes[at - 1u];
        }
        if (at > 0u && of_one_half_channel(codes[at - 1u], code)) errors |= bank_error;
        codes[at] = static_cast<uint16_t>(code);
    }

  private:
    /// By half-channel, then by pseudo-size.
    __device__ static uint32_t order_of(uint32_t code) { return (code & 0x3ffu) << 4 | code >> 10; }
    __device__ static bool of_one_half_channel(uint32_t code, uint32_t other)
    {
        return ((code ^ other) & 0x3ffu) == 0u;
    }
};

/// Call work(hit) for each hit of a bank, in the order of its words.
template <scifi_rule rule, typename Work>
__device__ void for_scifi_hits(const scifi_bank& bank, Work work)
{
    for (uint32_t i = 0; i < bank.n_words; ++i) {
        const scifi_word word = bank[i];
        if (i + 1u == bank.n_words || !are_scifi_edges<rule>(word, bank[i + 1u])) {
            work(hit_of_word<rule>(word));
            continue;
        }
        const scifi_edges edges{word, bank[++i]};
        const uint32_t n = count_hits_of_edges<rule>(edges);
        for (uint32_t k = 0; k < n; ++k) work(hit_of_edges<rule>(edges, n, k));
    }
}

/// Call work(place of its SiPM, code) for each hit of a bank whose link exists and is not off. A link that does not
/// exist sets `errors`.
template <typename Work>
__device__ void for_scifi_hits_of_links(const scifi_link_bank& of, bool lossy, uint32_t& errors, Work work)
{
    const auto of_hit = [&](const scifi_bank_hit& hit) {
        const uint32_t link = hit.channel / scifi_channels_per_link;
        if (link >= scifi_links_of_bank) {
            errors |= bank_error;
            return;
        }
        const uint32_t place = of.place[link];
        if (place == no_scifi_place) return;
        const uint32_t in_mat = place % scifi_sipms_per_mat * scifi_channels_per_link;
        work(place, scifi_code({in_mat + hit.channel % scifi_channels_per_link, hit.fraction, hit.size}));
    };
    const scifi_rule rule = scifi_rule_of(of.bank.version, lossy);
    if (rule == scifi_rule::one_hit_per_word)
        for_scifi_hits<scifi_rule::one_hit_per_word>(of.bank, of_hit);
    else if (rule == scifi_rule::version_7)
        for_scifi_hits<scifi_rule::version_7>(of.bank, of_hit);
    else
        for_scifi_hits<scifi_rule::version_8>(of.bank, of_hit);
}

/// Count the hits of each SiPM, for the banks of thread `thread` of `n_threads`. Sets `errors`.
__device__ void count_scifi_hits_of_links(const raw_banks& banks, const event_row& at, const row_range& rows,
                                          const scifi_sipms& sipms, bool lossy, uint32_t thread, uint32_t n_threads,
                                          scifi_sipm_hits& hits, uint32_t& errors)
{
    for (uint32_t i = thread; i < rows.count; i += n_threads) {
        const scifi_link_bank of = read_scifi_link_bank(banks, rows, i, at.index, sipms);
        if (of.bank.broken) errors |= bank_error;
        for_scifi_hits_of_links(of, lossy, errors, [&](uint32_t place, uint32_t) { hits.count(place); });
    }
}

/// Write the codes of the hits in order, for the banks of thread `thread` of `n_threads`. `offset`: of the hits of each
/// mat.
__device__ void write_scifi_codes_of_links(const raw_banks& banks, const event_row& at, const row_range& rows,
                                           const scifi_sipms& sipms, bool lossy, uint32_t thread, uint32_t n_threads,
                                           const uint16_t* offset, uint16_t* codes, scifi_sipm_hits& hits,
                                           uint32_t& errors)
{
    for (uint32_t i = thread; i < rows.count; i += n_threads) {
        const scifi_link_bank of = read_scifi_link_bank(banks, rows, i, at.index, sipms);
        for_scifi_hits_of_links(of, lossy, errors, [&](uint32_t place, uint32_t code) {
            hits.insert(place, code, codes + offset[place / scifi_sipms_per_mat], errors);
        });
    }
}

}  // namespace hlt
