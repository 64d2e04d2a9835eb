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
#include "imaging/images/assemble_rows.cuh"
#include "imaging/images/read_headers.cuh"
#include "imaging/large_images/count_runs.cuh"
#include "imaging/large_images/find_roots.cuh"
#include "imaging/large_images/join_borders.cuh"
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
    X(ccl_find_roots) \
    X(ccl_place_components) \
    X(ccl_number_roots) \
    X(ccl_measure_parts) \
    X(ccl_read_pixel_headers) \
    X(ccl_place_pixels) \
    X(ccl_label_pixels) \
    X(list_offsets) \
    X(copy_list)

#if defined(HLT_WITH_CPU_FORMS)
#include "algorithms/fragment_offsets_cpu.h"
#include "imaging/components/label_runs_cpu.h"
#include "imaging/sparse_images/label_pixels_cpu.h"

#define HLT_CPU_FORMS(X) \
    X(fragment_offsets) \
    X(ccl_label_runs) \
    X(ccl_label_pixels)
#endif
