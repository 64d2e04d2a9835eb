// All kernels of the sequence: the one translation unit that each back end compiles.
#pragma once

#include "batch/fragment_offsets.cuh"

// Every kernel that a back end can launch by name.
#define HLT_KERNELS(X) X(fragment_offsets)
