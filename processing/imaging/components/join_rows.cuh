// Joins the runs of two adjacent rows that touch: two lists of runs are merged (A. Hennequin, Performance optimization
// for the LHCb experiment, PhD thesis, Sorbonne Universite, 2022, section 4.4.1, second phase of FLSL, which looks runs
// up by column).
#pragma once

#include "imaging/components/generated/component_types.h"
#include "imaging/components/union_find.cuh"

namespace hlt {

/// Join the runs of a row with those of the row above that they touch. reach: 1 if corners touch, too.
__device__ void join_rows(const image_run* runs, const row_runs& above, const row_runs& own, uint32_t reach,
                          uint32_t* parents)
{
    uint32_t i = above.first, j = own.first;
    while (i < above.first + above.count && j < own.first + own.count) {
        const image_run a = runs[i], b = runs[j];
        if (a.begin < b.end + reach && b.begin < a.end + reach) join_sets(parents, i, j);
        if (a.end < b.end) {
            ++i;
        } else {
            ++j;
        }
    }
}

}  // namespace hlt
