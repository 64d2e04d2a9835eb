// A long track for the fits. On the CPU the fits take several tracks at once (long_tracks_cpu.h), with the same code.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

struct one_long_track {
    uint32_t track;

    /// The result of of_track(number of the track).
    template <typename Of>
    __device__ float each(const Of& of_track) const
    {
        return of_track(track);
    }
    __device__ float of(const float* column) const { return column[track]; }
    __device__ void put(float* column, float value) const { column[track] = value; }
};

}  // namespace hlt
