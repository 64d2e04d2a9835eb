// Written by tools/generate_device_headers.py from km3net/chain.py. Do not edit.
// clang-format off
#pragma once

#include "algorithms/copy_list.cuh"
#include "algorithms/fragment_offsets.cuh"
#include "algorithms/list_offsets.cuh"
#include "km3net/hits/sort_hits.cuh"
#include "km3net/triggers/find_candidates.cuh"

#define HLT_KERNELS(X) \
    X(fragment_offsets) \
    X(km3net_sort_hits) \
    X(km3net_find_candidates) \
    X(list_offsets) \
    X(copy_list)

#if defined(HLT_WITH_CPU_FORMS)
#include "algorithms/fragment_offsets_cpu.h"
#include "km3net/hits/sort_hits_cpu.h"
#include "km3net/triggers/find_candidates_cpu.h"

#define HLT_CPU_FORMS(X) \
    X(fragment_offsets) \
    X(km3net_sort_hits) \
    X(km3net_find_candidates)
#endif
