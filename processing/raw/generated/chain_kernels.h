// Written by tools/generate_device_headers.py from raw/chain.py. Do not edit.
// clang-format off
#pragma once

#include "algorithms/copy_list.cuh"
#include "algorithms/fragment_offsets.cuh"
#include "algorithms/list_offsets.cuh"
#include "raw/banks/list_banks.cuh"
#include "raw/banks/source_offsets.cuh"

#define HLT_KERNELS(X) \
    X(fragment_offsets) \
    X(raw_source_offsets) \
    X(raw_list_banks) \
    X(list_offsets) \
    X(copy_list)

#if defined(HLT_WITH_CPU_FORMS)
#include "algorithms/fragment_offsets_cpu.h"

#define HLT_CPU_FORMS(X) \
    X(fragment_offsets)
#endif
