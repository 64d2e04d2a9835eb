// Written by tools/generate_device_headers.py from na62/chain.py. Do not edit.
// clang-format off
#pragma once

#include "algorithms/copy_list.cuh"
#include "algorithms/fragment_offsets.cuh"
#include "algorithms/list_offsets.cuh"
#include "na62/rich/fit_ring.cuh"
#include "na62/rich/read_hits.cuh"
#include "na62/rich/search_rings.cuh"

#define HLT_KERNELS(X) \
    X(fragment_offsets) \
    X(rich_read_hits) \
    X(rich_search_rings) \
    X(rich_fit_ring) \
    X(list_offsets) \
    X(copy_list)

#if defined(HLT_WITH_CPU_FORMS)
#include "algorithms/fragment_offsets_cpu.h"
#include "na62/rich/fit_ring_cpu.h"
#include "na62/rich/search_rings_cpu.h"

#define HLT_CPU_FORMS(X) \
    X(fragment_offsets) \
    X(rich_search_rings) \
    X(rich_fit_ring)
#endif
