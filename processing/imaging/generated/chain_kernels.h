// Written by tools/generate_device_headers.py from imaging/chain.py. Do not edit.
// clang-format off
#pragma once

#include "algorithms/copy_list.cuh"
#include "algorithms/fragment_offsets.cuh"
#include "algorithms/list_offsets.cuh"
#include "imaging/components/find_runs.cuh"
#include "imaging/components/label_runs.cuh"
#include "imaging/components/measure_components.cuh"
#include "imaging/components/place_images.cuh"
#include "imaging/cpu_labelling/label_image.cuh"
#include "imaging/gpu_labelling/features/collect_features.cuh"
#include "imaging/gpu_labelling/features/measure_intensities.cuh"
#include "imaging/gpu_labelling/flsl/flsl_label.cuh"
#include "imaging/gpu_labelling/flsl/flsl_measure.cuh"
#include "imaging/gpu_labelling/flsl/flsl_measure_cd.cuh"
#include "imaging/gpu_labelling/flsl/flsl_merge.cuh"
#include "imaging/gpu_labelling/flsl/flsl_otf_label.cuh"
#include "imaging/gpu_labelling/flsl/flsl_otf_merge.cuh"
#include "imaging/gpu_labelling/ha4/ha4_32_label.cuh"
#include "imaging/gpu_labelling/ha4/ha4_32_measure.cuh"
#include "imaging/gpu_labelling/ha4/ha4_32_measure_cd.cuh"
#include "imaging/gpu_labelling/ha4/ha4_32_merge.cuh"
#include "imaging/gpu_labelling/ha4/ha4_64_label.cuh"
#include "imaging/gpu_labelling/ha4/ha4_64_measure.cuh"
#include "imaging/gpu_labelling/ha4/ha4_64_measure_cd.cuh"
#include "imaging/gpu_labelling/ha4/ha4_64_merge.cuh"
#include "imaging/gpu_labelling/ha4/ha4_otf_label.cuh"
#include "imaging/gpu_labelling/ha4/ha4_otf_merge.cuh"
#include "imaging/gpu_labelling/labels/count_labels.cuh"
#include "imaging/gpu_labelling/labels/number_labels.cuh"
#include "imaging/gpu_labelling/labels/place_labels.cuh"
#include "imaging/gpu_labelling/pixelwise/measure_pixels.cuh"
#include "imaging/gpu_labelling/pixelwise/merge_pixels.cuh"
#include "imaging/gpu_labelling/pixelwise/naive_label.cuh"
#include "imaging/gpu_labelling/pixelwise/playne_label.cuh"
#include "imaging/images/assemble_rows.cuh"
#include "imaging/images/read_headers.cuh"
#include "imaging/large_images/count_runs.cuh"
#include "imaging/large_images/find_roots.cuh"
#include "imaging/large_images/join_borders.cuh"
#include "imaging/large_images/join_groups.cuh"
#include "imaging/large_images/join_runs.cuh"
#include "imaging/large_images/measure_parts.cuh"
#include "imaging/large_images/number_roots.cuh"
#include "imaging/large_images/place_components.cuh"
#include "imaging/large_images/place_runs.cuh"
#include "imaging/sparse_images/label_pixels.cuh"
#include "imaging/sparse_images/place_pixels.cuh"
#include "imaging/sparse_images/read_pixel_headers.cuh"

#define HLT_KERNELS(X) \
    X(fragment_offsets) \
    X(ccl_read_headers) \
    X(ccl_place_images) \
    X(ccl_assemble_rows) \
    X(ccl_find_runs) \
    X(ccl_label_runs) \
    X(ccl_measure_components) \
    X(ccl_count_runs) \
    X(ccl_place_runs) \
    X(ccl_join_runs) \
    X(ccl_join_borders) \
    X(ccl_join_groups) \
    X(ccl_find_roots) \
    X(ccl_place_components) \
    X(ccl_number_roots) \
    X(ccl_measure_parts) \
    X(ccl_label_image) \
    X(ccl_read_pixel_headers) \
    X(ccl_place_pixels) \
    X(ccl_label_pixels) \
    X(ccl_place_labels) \
    X(ccl_naive_label) \
    X(ccl_merge_pixels) \
    X(ccl_count_labels) \
    X(ccl_number_labels) \
    X(ccl_measure_pixels) \
    X(ccl_playne_label) \
    X(ccl_ha4_32_label) \
    X(ccl_ha4_32_merge) \
    X(ccl_ha4_32_measure) \
    X(ccl_ha4_32_measure_cd) \
    X(ccl_ha4_64_label) \
    X(ccl_ha4_64_merge) \
    X(ccl_ha4_64_measure) \
    X(ccl_ha4_64_measure_cd) \
    X(ccl_ha4_otf_label) \
    X(ccl_ha4_otf_merge) \
    X(ccl_collect_features) \
    X(ccl_measure_intensities) \
    X(ccl_flsl_label) \
    X(ccl_flsl_merge) \
    X(ccl_flsl_measure) \
    X(ccl_flsl_measure_cd) \
    X(ccl_flsl_otf_label) \
    X(ccl_flsl_otf_merge) \
    X(list_offsets) \
    X(copy_list)

#if defined(HLT_WITH_CPU_FORMS)
#include "algorithms/fragment_offsets_cpu.h"
#include "imaging/components/find_runs_cpu.h"
#include "imaging/components/label_runs_cpu.h"
#include "imaging/components/measure_components_cpu.h"
#include "imaging/cpu_labelling/label_image_cpu.h"
#include "imaging/sparse_images/label_pixels_cpu.h"

#define HLT_CPU_FORMS(X) \
    X(fragment_offsets) \
    X(ccl_find_runs) \
    X(ccl_label_runs) \
    X(ccl_measure_components) \
    X(ccl_label_image) \
    X(ccl_label_pixels)
#endif
