// The component of each run: runs of adjacent rows that touch are joined, and the sets get numbers in raster order
// (A. Hennequin, Performance optimization for the LHCb experiment, PhD thesis, Sorbonne Universite, 2022,
// section 4.4.1, second phase of FLSL).
//
// In:  image_rows.runs, runs.span. Out: runs.label [run], the numbers of components, a flag if there are too many.
// One block per event; threads stride over rows, then over runs. Bounds: as ccl_find_runs.
//
// The numbers of the components overwrite the parents, so labels need no second array: a root gets the number of its
// component with the highest bit, the other runs take it from their root, and the bit is removed.
#pragma once

#include "framework/generated/launch_types.h"
#include "imaging/components/generated/ccl_label_runs.h"
#include "imaging/components/generated/component_types.h"
#include "imaging/components/join_rows.cuh"
#include "imaging/images/generated/image_flags.h"

namespace hlt {

constexpr uint32_t root_bit = 1u << 31;

/// The threads of a block label the runs of an image; `scratch` has a word for each of their warps. reach: 1 if corners
/// touch, too.
template <typename Parameters>
__device__ void label_runs(const Parameters& p, uint32_t event, uint32_t reach, uint32_t* scratch)
{
    const uint32_t n_rows = p.image_rows.count[event];
    const uint32_t n_runs = p.runs.count[event];
    const row_runs* const rows = p.image_rows.runs + p.image_rows.first(event);
    const image_run* const spans = p.runs.span + p.runs.first(event);
    uint32_t* const label = p.runs.label + p.runs.first(event);

    for (uint32_t i = threadIdx.x; i < n_runs; i += blockDim.x) label[i] = i;
    block_barrier();
    for (uint32_t y = 1u + threadIdx.x; y < n_rows; y += blockDim.x)
        join_rows(spans, rows[y - 1u], rows[y], reach, label);
    block_barrier();
    for (uint32_t i = threadIdx.x; i < n_runs; i += blockDim.x) atomicMin(&label[i], find_root(label, i));
    block_barrier();

    uint32_t n_components = 0;
    for (uint32_t base = 0; base < n_runs; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        const bool is_root = i < n_runs && label[i] == i;
        uint32_t total;
        const uint32_t number = n_components + block_exclusive_count(is_root, scratch, total);
        if (is_root) label[i] = number | root_bit;
        n_components += total;
    }
    block_barrier();
    for (uint32_t i = threadIdx.x; i < n_runs; i += blockDim.x)
        if ((label[i] & root_bit) == 0u) label[i] = label[label[i]];
    block_barrier();
    for (uint32_t i = threadIdx.x; i < n_runs; i += blockDim.x) label[i] &= ~root_bit;

    if (threadIdx.x != 0) return;
    p.all_components.count[event] = n_components;
    p.components.count[event] = min_of(n_components, p.components.bound[event]);
    if (n_components > p.components.bound[event]) p.events.flags[event] |= too_many_components;
}

}  // namespace hlt

HLT_KERNEL(ccl_label_runs)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    hlt::label_runs(p, event, p.diagonal != 0u ? 1u : 0u, scratch);
}
