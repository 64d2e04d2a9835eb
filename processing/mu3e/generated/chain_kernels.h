// Written by tools/generate_device_headers.py from mu3e/chain.py. Do not edit.
// clang-format off
#pragma once

#include "algorithms/copy_list.cuh"
#include "algorithms/fragment_offsets.cuh"
#include "algorithms/list_offsets.cuh"
#include "mu3e/hits/sort_hits.cuh"
#include "mu3e/tracks/extend_tracks.cuh"
#include "mu3e/tracks/find_triplets.cuh"
#include "mu3e/tracks/fit_triplets.cuh"
#include "mu3e/tracks/select_triplets.cuh"
#include "mu3e/vertices/find_vertices.cuh"

#define HLT_KERNELS(X) \
    X(fragment_offsets) \
    X(mu3e_sort_hits) \
    X(mu3e_select_triplets) \
    X(mu3e_fit_triplets) \
    X(mu3e_extend_tracks) \
    X(mu3e_find_vertices) \
    X(mu3e_find_triplets) \
    X(list_offsets) \
    X(copy_list)

#if defined(HLT_WITH_CPU_FORMS)
#include "algorithms/fragment_offsets_cpu.h"
#include "mu3e/hits/sort_hits_cpu.h"
#include "mu3e/tracks/extend_tracks_cpu.h"
#include "mu3e/tracks/fit_triplets_cpu.h"
#include "mu3e/tracks/select_triplets_cpu.h"
#include "mu3e/vertices/find_vertices_cpu.h"

#define HLT_CPU_FORMS(X) \
    X(fragment_offsets) \
    X(mu3e_sort_hits) \
    X(mu3e_select_triplets) \
    X(mu3e_fit_triplets) \
    X(mu3e_extend_tracks) \
    X(mu3e_find_vertices)
#endif
