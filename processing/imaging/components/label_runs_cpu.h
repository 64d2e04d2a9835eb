// Labels of runs on the CPU: one pass over the rows, one over the runs.
//
// A thread that sees the rows in order needs no atomic operation, and no set for a run that touches a run above: it
// takes the set of the first one (L. Lacassagne and B. Zavidovique, Light speed labeling: efficient connected component
// labeling on RISC architectures, J. Real-Time Image Proc. 6 (2011) 117, doi:10.1007/s11554-009-0134-0). The first and
// the last run above come from a table by column, so no branch depends on the pixels. Runs that touch several wait in
// a list and are joined after the row. A parent has a smaller number than its child, so one ascending pass replaces all
// parents by the numbers of components.
#pragma once

#include "framework/device/vector8.cuh"
#include "imaging/components/label_runs.cuh"
#include "imaging/images/generated/image_types.h"

namespace hlt {

/// Join the sets of `a` and `b` by splicing their paths (E. W. Dijkstra after M. Rem, A Discipline of Programming,
/// 1976, chapter 23). Parents stay smaller than their children.
inline __attribute__((always_inline)) void splice_sets(uint32_t* parents, uint32_t a, uint32_t b)
{
    while (parents[a] != parents[b]) {
        if (parents[a] < parents[b]) {
            const uint32_t other = a;
            a = b;
            b = other;
        }
        const uint32_t next = parents[a];
        parents[a] = parents[b];
        if (next == a) return;
        a = next;
    }
}

/// Runs of the row above that a run touches, as numbers in that row.
struct runs_above {
    uint32_t first, end;
};

/// The runs of a row by column.
class run_table {
  public:
    /// Fill the places of columns up to `last`.
    inline __attribute__((always_inline)) void fill(const image_run* runs, uint32_t n, uint32_t last)
    {
        uint32_t place = 0;
        sixteen value{};
        for (uint32_t i = 0; i < n; ++i) {
            fill_until(place, runs[i].begin + 1u, value);
            fill_until(place, runs[i].end + 1u, value);
        }
        fill_until(place, last + 2u, value);
    }

    /// The runs that a run in the next row touches. reach: 1 if corners touch, too.
    inline __attribute__((always_inline)) runs_above touched(const image_run& run, uint32_t reach) const
    {
        return {edges_[run.begin + 1u - reach] / 2u, (edges_[run.end + reach] + 1u) / 2u};
    }

  private:
    using sixteen = uint16_t __attribute__((vector_size(32)));
    static constexpr uint32_t lanes = 16;

    inline __attribute__((always_inline)) void fill_until(uint32_t& place, uint32_t end, sixteen& value)
    {
        for (; place < end; place += lanes) std::memcpy(edges_ + place, &value, sizeof value);
        place = end;
        value += 1;
    }

    // Place x + 1: begins and ends of runs up to column x.
    uint16_t edges_[max_side + 2u + lanes];
};

/// Give each run of a row the set of the first run above that it touches, or its own.
class row_labeller {
  public:
    row_labeller(const image_run* runs, uint32_t reach, uint32_t* parents)
        : runs_{runs}, reach_{reach}, parents_{parents}
    {
    }

    inline __attribute__((always_inline)) void label(const row_runs above, const row_runs own)
    {
        if (own.count == 0u) return;
        table_.fill(runs_ + above.first, above.count, runs_[own.first + own.count - 1u].end);
        uint32_t n_several = 0;
        for (uint32_t j = own.first; j < own.first + own.count; ++j) {
            const runs_above touched = table_.touched(runs_[j], reach_);
            // A run that touches none reads any parent, and keeps its own number.
            const uint32_t joined = touched.end > touched.first ? ~0u : 0u;
            parents_[j] = (parents_[above.first + touched.first] & joined) | (j & ~joined);
            several_[n_several] = static_cast<uint16_t>(j - own.first);
            n_several += touched.end > touched.first + 1u ? 1u : 0u;
        }
        for (uint32_t k = 0; k < n_several; ++k) {
            const uint32_t j = own.first + several_[k];
            const runs_above touched = table_.touched(runs_[j], reach_);
            for (uint32_t i = touched.first + 1u; i < touched.end; ++i) splice_sets(parents_, above.first + i, j);
        }
    }

  private:
    const image_run* runs_;
    uint32_t reach_;
    uint32_t* parents_;
    run_table table_;
    uint16_t several_[max_side / 2u + 1u];
};

}  // namespace hlt

HLT_CPU_FORM(ccl_label_runs)
{
    if (!p.takes(event)) return;

    const uint32_t n_rows = p.image_rows.count[event];
    const uint32_t n_runs = p.runs.count[event];
    const hlt::row_runs* const rows = p.image_rows.runs + p.image_rows.first(event);
    const hlt::image_run* const spans = p.runs.span + p.runs.first(event);
    uint32_t* const label = p.runs.label + p.runs.first(event);
    const uint32_t reach = p.diagonal != 0u ? 1u : 0u;

    hlt::row_labeller labeller{spans, reach, label};
    hlt::row_runs above{0, 0};
    for (uint32_t y = 0; y < n_rows; ++y) {
        labeller.label(above, rows[y]);
        above = rows[y];
    }
    uint32_t n_components = 0;
    for (uint32_t i = 0; i < n_runs; ++i) {
        const uint32_t parent = label[i];
        const uint32_t number = label[parent];
        const uint32_t is_root = parent == i ? 1u : 0u;
        // Without a branch, which random images would make mispredicted.
        label[i] = number ^ ((number ^ n_components) & (0u - is_root));
        n_components += is_root;
    }

    p.all_components.count[event] = n_components;
    p.components.count[event] = hlt::min_of(n_components, p.components.bound[event]);
    if (n_components > p.components.bound[event]) p.events.flags[event] |= hlt::too_many_components;
}
