// Written by tools/generate_device_headers.py from imaging/chain.py. Do not edit.
// clang-format off
#pragma once

#include "algorithms/fragment_offsets.cuh"
#include "imaging/components/find_runs.cuh"
#include "imaging/components/label_runs.cuh"
#include "imaging/components/measure_components.cuh"
#include "imaging/components/place_images.cuh"
#include "imaging/images/assemble_rows.cuh"
#include "imaging/images/read_headers.cuh"

#define HLT_KERNELS(X) \
    X(fragment_offsets) \
    X(ccl_read_headers) \
    X(ccl_place_images) \
    X(ccl_assemble_rows) \
    X(ccl_find_runs) \
    X(ccl_label_runs) \
    X(ccl_measure_components)

#if defined(HLT_WITH_CPU_FORMS)
#include "algorithms/fragment_offsets_cpu.h"
#include "imaging/components/label_runs_cpu.h"

#define HLT_CPU_FORMS(X) \
    X(fragment_offsets) \
    X(ccl_label_runs)
#endif
