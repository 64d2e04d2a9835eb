// All kernels of the sequence: the one translation unit that each back end compiles.
#pragma once

#include "batch/fragment_offsets.cuh"
#include "lines/event_lines.cuh"
#include "odin/odin_decode.cuh"
#include "pv/cleanup.cuh"
#include "pv/extrapolate.cuh"
#include "pv/multi_fit.cuh"
#include "pv/peaks.cuh"
#include "velo/impact_parameter.cuh"
#include "velo/kalman.cuh"

// Every kernel that a back end can launch by name.
#define HLT_KERNELS(X)         \
    X(fragment_offsets)        \
    X(odin_decode)             \
    X(velo_kalman_filter)      \
    X(pv_beamline_extrapolate) \
    X(pv_beamline_peaks)       \
    X(pv_beamline_multi_fit)   \
    X(pv_beamline_cleanup)     \
    X(velo_impact_parameter)   \
    X(event_lines)
