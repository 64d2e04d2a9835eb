// Banks of hits (docs/formats/mu3e-hits.md), and hits as sorted words of 64 bits: group, time, sensor, column, row.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "mu3e/geometry/generated/sensor_types.h"
#include "mu3e/hits/generated/mu3e_flags.h"
#include "mu3e/hits/generated/mu3e_types.h"

namespace hlt {

/// Hits of a bank; 0 for a bank that is not used.
__device__ uint32_t hits_of_bank(const fragment_view& bank, const mfp_row& row)
{
    const bool sound = bank.type == mu3e_hits_bank && row.version == mu3e_hits_version;
    return sound && bank.size % mu3e_hit_bytes == 0u ? bank.size / mu3e_hit_bytes : 0u;
}

/// Whether a bank is there, but not used.
__device__ bool is_bad_bank(const fragment_view& bank, const mfp_row& row)
{
    return bank.type != no_bank &&
           (bank.type != mu3e_hits_bank || row.version != mu3e_hits_version || bank.size % mu3e_hit_bytes != 0u);
}

/// A hit of a bank; time in ns since the start of its sub-slice.
struct raw_hit {
    uint32_t sensor, column, row, time;
};

__device__ __forceinline__ raw_hit load_hit(const uint8_t* hits, uint32_t i)
{
    const uint8_t* const bytes = hits + mu3e_hit_bytes * i;
    const uint32_t pixel = load_u32(bytes);
    return {pixel & 0xFFFFu, pixel >> 16 & 0xFFu, pixel >> 24, load_u16(bytes + 4)};
}

/// Flags of a hit of the sub-slice itself; 0: it is used.
__device__ __forceinline__ uint32_t faults_of_hit(const raw_hit& hit, const mu3e_sensor* sensors, uint32_t length)
{
    uint32_t found = 0;
    if (hit.sensor >= max_sensors || sensors[hit.sensor].layer == no_layer) found |= unknown_sensor;
    if (hit.column >= pixels_of_sensor) found |= bad_column;
    if (hit.row >= pixels_of_sensor) found |= bad_row;
    if (hit.time >= length) found |= time_outside;
    return found;
}

/// The sorted word of a hit; `time`: ns since `reach` before the start of the sub-slice.
__device__ __forceinline__ uint64_t word_of_hit(const raw_hit& hit, const mu3e_sensor* sensors, uint32_t time)
{
    const mu3e_sensor sensor = sensors[hit.sensor];
    const uint32_t group = sensor.layer + (sensor.station == 0u ? 0u : uint32_t{mu3e_recurl_groups});
    return uint64_t{group} << mu3e_group_bit | uint64_t{time} << mu3e_time_bit | hit.sensor << 16 | hit.column << 8 |
           hit.row;
}

__device__ __forceinline__ uint32_t group_of_hit(uint64_t word)
{
    return static_cast<uint32_t>(word >> mu3e_group_bit);
}
__device__ __forceinline__ uint32_t time_of_hit(uint64_t word)
{
    return static_cast<uint32_t>(word >> mu3e_time_bit) & ((1u << (mu3e_group_bit - mu3e_time_bit)) - 1u);
}
__device__ __forceinline__ uint32_t pixel_of_hit(uint64_t word)
{
    return static_cast<uint32_t>(word) & ((1u << mu3e_time_bit) - 1u);
}

struct position {
    float x, y, z;
};

/// Middle of the pixel of a hit.
__device__ __forceinline__ position position_of_hit(uint64_t word, const mu3e_sensor* sensors)
{
    constexpr float pitch = 0.08f, middle = (pixels_of_sensor - 1u) * 0.5f;
    const uint32_t pixel = pixel_of_hit(word);
    const mu3e_sensor s = sensors[pixel >> 16];
    const float u = (static_cast<float>(pixel >> 8 & 0xFFu) - middle) * pitch;
    const float v = (static_cast<float>(pixel & 0xFFu) - middle) * pitch;
    return {s.x + (u * s.ux + v * s.vx), s.y + (u * s.uy + v * s.vy), s.z + (u * s.uz + v * s.vz)};
}

/// ns before and behind the hits of a candidate in which its tracks are continued.
template <typename Parameters>
__device__ __forceinline__ uint32_t reach_of(const Parameters& p)
{
    return max_of(p.hit_window, p.recurl_window);
}

}  // namespace hlt
