// Labels of runs on the CPU: one pass over the rows, one over the runs.
//
// A thread that sees the rows in order needs no atomic operation, and no set for a run that touches a run above: it
// takes the set of the first one (L. Lacassagne and B. Zavidovique, Light speed labeling: efficient connected component
// labeling on RISC architectures, J. Real-Time Image Proc. 6 (2011) 117, doi:10.1007/s11554-009-0134-0). A parent has
// a smaller number than its child, so one ascending pass replaces all parents by the numbers of components.
#pragma once

#include "imaging/components/label_runs.cuh"
#include "imaging/components/union_find_cpu.h"

namespace hlt {

/// Give each run of a row the set of the runs above that it touches, which become one set.
inline __attribute__((always_inline)) void label_row(const image_run* runs, const row_runs& above, const row_runs& own,
                                                     uint32_t reach, uint32_t* parents)
{
    uint32_t i = above.first;
    const uint32_t end_above = above.first + above.count, end_own = own.first + own.count;
    for (uint32_t j = own.first; j < end_own; ++j) {
        const uint32_t begin = runs[j].begin, end = runs[j].end + reach;
        while (i < end_above && runs[i].end + reach <= begin) ++i;
        if (i == end_above || runs[i].begin >= end) {
            parents[j] = j;
            continue;
        }
        uint32_t root = root_of(parents, i);
        // The last run above that touches this one may touch the next one, too.
        while (i + 1u < end_above && runs[i + 1u].begin < end) {
            const uint32_t other = root_of(parents, ++i);
            if (other < root) {
                parents[root] = other;
                root = other;
            } else {
                parents[other] = root;
            }
        }
        parents[j] = root;
    }
}

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

    hlt::row_runs above{0, 0};
    for (uint32_t y = 0; y < n_rows; ++y) {
        hlt::label_row(spans, above, rows[y], reach, label);
        above = rows[y];
    }
    uint32_t n_components = 0;
    for (uint32_t i = 0; i < n_runs; ++i) label[i] = label[i] == i ? n_components++ : label[label[i]];

    p.all_components.count[event] = n_components;
    p.components.count[event] = hlt::min_of(n_components, p.components.bound[event]);
    if (n_components > p.components.bound[event]) p.events.flags[event] |= hlt::too_many_components;
}
