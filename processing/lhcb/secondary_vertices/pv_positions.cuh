// The primary vertices of an event, for the flights of many pairs. On the CPU, a flight is compared with eight or
// sixteen of them at once: in dense events 40 % of the time of a pair went into this loop.
#pragma once

#include "lhcb/secondary_vertices/flight_origin.cuh"
#if !HLT_ON_GPU
#include "framework/device/lowest_lane.h"
#endif

namespace hlt {

class pv_positions {
  public:
    __device__ pv_positions(const primary_vertex* pvs, uint32_t n) : pvs_(pvs), n_(n)
    {
#if !HLT_ON_GPU
        for (uint32_t i = 0; i < n; ++i) x_[i] = pvs[i].x, y_[i] = pvs[i].y, z_[i] = pvs[i].z;
#endif
    }

    /// origin_of.
    __device__ flight_origin origin(const vertex_of_two& vertex, float sx, float sy) const
    {
#if !HLT_ON_GPU
        if (compares_eight_lanes && n_ > 1u) return origin_of_lanes(vertex, sx, sy);
#endif
        return origin_of(pvs_, n_, vertex, sx, sy);
    }

  private:
    const primary_vertex* pvs_;
    uint32_t n_;
#if !HLT_ON_GPU
    static_assert(max_pvs % n_wide == 0u);
    static constexpr float beyond_all_ = 3e38f;  // mm^2
    float x_[max_pvs] = {}, y_[max_pvs] = {}, z_[max_pvs] = {};

    flight_origin origin_of_lanes(const vertex_of_two& vertex, float sx, float sy) const
    {
        float_wide smallest = float_wide{} + beyond_all_;
        uint_wide nearest{};
        for (uint32_t first = 0; first < n_; first += n_wide) {
            float_wide x, y, z;
            load_wide(x, x_ + first);
            load_wide(y, y_ + first);
            load_wide(z, z_ + first);
            const float_wide dz = z - vertex.z;
            const float_wide dx = vertex.x + dz * sx - x;
            const float_wide dy = vertex.y + dz * sy - y;
            const float_wide distance2 = dx * dx + dy * dy;
            const uint_wide number = wide_numbers + first;
            const int_wide nearer = (distance2 < smallest) & (number < n_);
            smallest = nearer ? distance2 : smallest;
            nearest = nearer ? number : nearest;
        }
        const float lowest = lowest_wide(smallest);
        const uint32_t pv = lowest_wide(smallest <= lowest ? nearest : uint_wide{} + no_pv);
        return {pv, sqrtf(lowest / (1.f + sx * sx + sy * sy))};
    }
#endif
};

}  // namespace hlt
