// From the half-channel of a mat to a hit in space (docs/physics/scifi.md).
#pragma once

#include "framework/device/lanes.cuh"
#include "lhcb/scifi/bank.cuh"

namespace hlt {

/// Distance (mm) of half-channels from the first one of their mat. `Real`: float, or a vector of floats.
template <typename Real>
__device__ __forceinline__ void find_scifi_u(const scifi_mat& mat, const Real& half_channel, const Real& die,
                                             const Real& sipm, Real& u)
{
    u = half_channel * mat.half_pitch + die * mat.die_gap + sipm * mat.sipm_pitch;
}

/// Half-channel in the mat (10 bits: of the SiPM, then the SiPM) | pseudo-size << 10.
__device__ uint32_t scifi_code(const scifi_bank_hit& hit)
{
    return (hit.channel & 0x1ffu) << 1 | hit.fraction | hit.size << 10;
}

/// Destination of the hits of an event.
struct scifi_hit_columns {
    float* __restrict__ x;
    float* __restrict__ z;
    uint32_t* __restrict__ id;
    uint16_t* __restrict__ info;

    __device__ void store(uint32_t at, uint32_t code, const scifi_mat& mat, uint32_t index) const
    {
        float u;
        find_scifi_u(mat, static_cast<float>(code & 0xffu), static_cast<float>(code >> 7 & 1u),
                     static_cast<float>(code >> 8 & 3u), u);
        x[at] = mat.x_first + mat.dx_du * u;
        z[at] = mat.z_first + mat.dz_du * u;
        id[at] = first_id(index) + (code >> 1 & 0x1ffu);
        info[at] = static_cast<uint16_t>(index | code >> 10 << 11);
    }

    __device__ static uint32_t first_id(uint32_t index)
    {
        return scifi_detector << 28 | (first_scifi_mat + index) << 9;
    }
};

}  // namespace hlt
