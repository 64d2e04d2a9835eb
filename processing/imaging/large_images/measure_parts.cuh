// The component of each run, and the features of components from their runs; only intensities need the pixels
// (A. Hennequin, Performance optimization for the LHCb experiment, PhD thesis, Sorbonne Universite, 2022, section 4.3,
// algorithm 11).
//
// In:  runs.label [run]: the first run of its component; runs.parent of that run: the number of the component.
// Out: runs.label [run]: the number of the component; the columns of components.
// One block per part; each thread takes whole rows. Blocks of other parts add to the same components. So a thread keeps
// what it adds to one component until a run of another one follows. Bounds: as ccl_measure_components.
#pragma once

#include "framework/device/between_blocks.cuh"
#include "imaging/components/generated/component_types.h"
#include "imaging/components/run_features.cuh"
#include "imaging/large_images/generated/ccl_measure_parts.h"
#include "imaging/large_images/row_ranges.cuh"

namespace hlt {

/// What a thread adds to a component.
struct feature_sums {
    uint32_t component, area;
    component_box box;
    uint64_t sum_x, sum_y, intensity, weighted_x, weighted_y;
};

__device__ feature_sums no_features(uint32_t component)
{
    return {component, 0, {0xffffffffu, 0xffffffffu, 0, 0}, 0, 0, 0, 0, 0};
}

/// Add to the component of the sums; `columns` are those of the collection `components`, `first` the first component
/// of the event. A sum of 64 bits is stored as its low and its high word.
template <typename Columns>
__device__ void add_features(const Columns& columns, uint32_t first, const feature_sums& sums)
{
    if (sums.area == 0u) return;
    const uint32_t i = first + sums.component;
    const auto add = [i](uint32_t* words, uint64_t value) {
        add_between_blocks(reinterpret_cast<uint64_t*>(words) + i, value);
    };
    add_between_blocks(&columns.area[i], sums.area);
    add(columns.sum_x, sums.sum_x);
    add(columns.sum_y, sums.sum_y);
    add(columns.intensity, sums.intensity);
    add(columns.weighted_x, sums.weighted_x);
    add(columns.weighted_y, sums.weighted_y);
    lower_between_blocks(&columns.box[i].left, sums.box.left);
    lower_between_blocks(&columns.box[i].top, sums.box.top);
    raise_between_blocks(&columns.box[i].right, sums.box.right);
    raise_between_blocks(&columns.box[i].bottom, sums.box.bottom);
}

}  // namespace hlt

HLT_KERNEL(ccl_measure_parts)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t event = p.event_of(blockIdx.x);
    const hlt::image_shape shape = p.images.shape[event];
    const hlt::row_part part = hlt::rows_of_part(blockIdx.x - event * p.n_parts, p.image_rows.count[event]);
    const uint32_t first_row = p.image_rows.first(event), first_run = p.runs.first(event);
    const uint32_t n_components = p.components.count[event], first = p.components.first(event);
    hlt::feature_sums sums = hlt::no_features(0);
    for (uint32_t y = part.first + threadIdx.x; y < part.last; y += blockDim.x) {
        const hlt::row_runs runs = p.image_rows.runs[first_row + y];
        if (runs.count == 0u) continue;
        const uint8_t* const row = p.input.bytes + p.image_rows.data[first_row + y];
        for (uint32_t run = first_run + runs.first; run < first_run + runs.first + runs.count; ++run) {
            const uint32_t component = p.runs.parent[first_run + p.runs.label[run]];
            p.runs.label[run] = component;
            if (component >= n_components) continue;
            if (component != sums.component) {
                hlt::add_features(p.components, first, sums);
                sums = hlt::no_features(component);
            }
            const hlt::image_run span = p.runs.span[run];
            const hlt::run_features own = hlt::features_of_run(span, y, row, shape.bits);
            sums.area += own.area;
            sums.sum_x += own.sum_x;
            sums.sum_y += own.sum_y;
            sums.intensity += own.intensity;
            sums.weighted_x += own.weighted_x;
            sums.weighted_y += own.weighted_y;
            sums.box = {hlt::min_of(sums.box.left, uint32_t{span.begin}), hlt::min_of(sums.box.top, y),
                        hlt::max_of(sums.box.right, span.end - 1u), hlt::max_of(sums.box.bottom, y)};
        }
    }
    hlt::add_features(p.components, first, sums);
}
