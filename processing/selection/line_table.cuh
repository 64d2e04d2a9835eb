// The table of selection lines as kernels see it; processing/selection/line.py writes the same layout.
#pragma once

#include "lhcb/raw_data/odin_decode.cuh"

namespace hlt {

constexpr uint32_t max_line_parameters = 8;

/// What a line looks at. Line types in Python carry these numbers.
enum class line_kind : uint32_t {
    passthrough = 1,
    velo_micro_bias = 2,
    n_displaced_velo_tracks = 3,
    odin_event_type = 4,
};

/// A deterministic scaler (formats.md C4).
struct line_scaler {
    uint32_t seed;    // hash of the line's name and "_pre" or "_post"
    uint32_t limit;   // passes if the hash of the event is below
    uint32_t always;  // 1: scale 1
};

/// One line. The meaning of the parameters is that of the kind; floats stand as their bits.
struct line_record {
    line_kind kind;
    line_scaler prescale;
    line_scaler postscale;
    uint32_t parameters[max_line_parameters];
};

__device__ uint32_t scaler_mix(uint32_t state)
{
    state += state << 16;
    state ^= state >> 13;
    state += state << 4;
    state ^= state >> 7;
    state += state << 10;
    state ^= state >> 5;
    state += state << 8;
    state ^= state >> 16;
    return state;
}

/// Whether the event passes the scaler: a hash of GPS time, run and event number, the same on every machine.
__device__ bool scaler_passes(const line_scaler& scaler, const odin_data& odin)
{
    uint32_t state = scaler.seed;
    state = scaler_mix(state + odin.gps_time_low);
    state = scaler_mix(state + odin.gps_time_high);
    state = scaler_mix(state + odin.run);
    state = scaler_mix(state + odin.event_id_low);
    state = scaler_mix(state + odin.event_id_high);
    return scaler.always != 0 || state < scaler.limit;
}

}  // namespace hlt
