// Labels of pixels on the CPU, by the algorithm that `method` names (labelling_types). Each labels all pixels; the
// label of a run is that of its first pixel. An image with missing rows is left to the common kernel.
#pragma once

#include "imaging/components/find_runs_cpu.h"
#include "imaging/cpu_labelling/flood_fill.h"
#include "imaging/cpu_labelling/label_image.cuh"
#include "imaging/cpu_labelling/light_speed.h"
#include "imaging/cpu_labelling/rosenfeld.h"
#include "imaging/cpu_labelling/simd_rosenfeld.h"

namespace hlt {

/// Label the pixels of an image, whose runs are known. run_labels: places for the labels of the runs. Returns the
/// number of components.
inline uint32_t label_pixels_and_runs(uint32_t method, const binary_image& image, const row_runs* rows,
                                      const image_run* runs, uint32_t* run_labels)
{
    uint32_t n_components = 0;
    switch (method) {
    case method_rosenfeld: n_components = label_by_rosenfeld<false>(image); break;
    case method_rosenfeld_dt: n_components = label_by_rosenfeld<true>(image); break;
    case method_lsl_std: n_components = light_speed<false>{image}.label(rows, runs, run_labels); break;
    case method_lsl_rle: n_components = light_speed<true>{image}.label(rows, runs, run_labels); break;
    case method_flood_fill: n_components = label_by_flood_fill(image); break;
    case method_simd_v1_128: return simd_rosenfeld<4, false>{image}.label(rows, runs, run_labels);
    case method_simd_v1_256: return simd_rosenfeld<8, false>{image}.label(rows, runs, run_labels);
    case method_simd_v1_512: return simd_rosenfeld<16, false>{image}.label(rows, runs, run_labels);
    case method_simd_v2_128: return simd_rosenfeld<4, true>{image}.label(rows, runs, run_labels);
    case method_simd_v2_256: return simd_rosenfeld<8, true>{image}.label(rows, runs, run_labels);
    default: return simd_rosenfeld<16, true>{image}.label(rows, runs, run_labels);
    }
    for (uint32_t y = 0; y < image.shape.height; ++y)
        for (uint32_t run = rows[y].first; run < rows[y].first + rows[y].count; ++run)
            run_labels[run] = image.labels_of_row(y)[runs[run].begin] - 1u;
    return n_components;
}

}  // namespace hlt

HLT_CPU_FORM(ccl_label_image)
{
    if (!p.takes(event)) return;

    const uint32_t n_rows = p.image_rows.count[event];
    const uint32_t* const data = p.image_rows.data + p.image_rows.first(event);
    for (uint32_t y = 0; y < n_rows; ++y)
        if (data[y] == hlt::no_row_data) return ccl_label_image(p, dim3{event, 1, 1});

    hlt::find_runs_in_order(p, event);
    const hlt::row_runs* const rows = p.image_rows.runs + p.image_rows.first(event);
    const hlt::image_run* const spans = p.runs.span + p.runs.first(event);
    uint32_t* const label = p.runs.label + p.runs.first(event);
    uint32_t n_components = 0;
    if (n_rows != 0u) {
        const hlt::binary_image image{
            p.images.shape[event],
            p.threshold,
            p.input.bytes,
            data,
            p.pixels_scratch.labels + p.pixels_scratch.first(event),
            p.runs_scratch.parents + p.runs_scratch.first(event),
        };
        n_components = hlt::label_pixels_and_runs(p.method, image, rows, spans, label);
    }
    p.all_components.count[event] = n_components;
    p.components.count[event] = hlt::min_of(n_components, p.components.bound[event]);
    if (n_components > p.components.bound[event]) p.events.flags[event] |= hlt::too_many_components;
}
