// Selection lines on whole events, and the decision (docs/physics/selection-lines.md).
//
// One block per event, which takes the lines in tiles, so that a menu may have any number of them. First all threads
// count the tracks that a line asks for, line by line; then one thread per line makes its decision: prescale and
// selection and postscale. The event is accepted if a line is left.
//
// A new line type gets a number in kinds.py, a case in `line_selects` (and, if it loops over tracks, one in
// `line_counts_track`), and its dataclass in processing/lhcb/lines.
// Bounds: n_lines lines, an event's decisions in ceil(n_lines / 32) words; tracks of an event as velo_tracks.count.
#pragma once

#include "lhcb/lines/generated/event_lines.h"
#include "lhcb/lines/generated/line_types.h"
#include "lhcb/velo/generated/velo_types.h"
#include "selection/scalers.cuh"

namespace hlt {

/// Lines whose counts are held at a time.
constexpr uint32_t lines_per_tile = 256;

/// What lines may look at in an event.
struct line_event {
    odin_data odin;
    uint32_t flags;
    uint32_t n_velo_tracks;
};

/// What lines may look at in a VELO track.
struct line_velo_track {
    float ip;       // mm, smallest to any primary vertex
    float ip_chi2;  // to the same vertex
    bool backward;
    bool has_pv;
};

__device__ bool line_wants_velo_tracks(uint32_t kind)
{
    return kind == static_cast<uint32_t>(line_kind::n_displaced_velo_tracks);
}

/// The words by which scalers know an event: GPS time, run and event number.
struct scaler_event {
    uint32_t words[5];
};

__device__ scaler_event scaler_event_of(const odin_data& odin)
{
    return {{odin.gps_time_low, odin.gps_time_high, odin.run, odin.event_id_low, odin.event_id_high}};
}

/// Whether a track counts for a line.
__device__ bool line_counts_track(const line_record& line, const line_velo_track& track)
{
    // n_displaced_velo_tracks: min_tracks, min_ip, max_ip, min_ip_chi2.
    return track.has_pv && !track.backward && track.ip > __uint_as_float(line.parameters[1]) &&
           track.ip < __uint_as_float(line.parameters[2]) && track.ip_chi2 > __uint_as_float(line.parameters[3]);
}

/// Whether a line selects the event; `counted` is the number of tracks that count for it.
__device__ bool line_selects(const line_record& line, const line_event& event, uint32_t counted)
{
    switch (static_cast<line_kind>(line.kind)) {
    case line_kind::passthrough: return true;
    case line_kind::velo_micro_bias: return event.n_velo_tracks >= line.parameters[0];
    case line_kind::n_displaced_velo_tracks: return counted >= line.parameters[0];
    case line_kind::odin_event_type:
        return (event.flags & odin_error) == 0 && (event.odin.event_type & line.parameters[0]) != 0;
    default: return false;
    }
}

}  // namespace hlt

HLT_KERNEL(event_lines)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t counted[hlt::lines_per_tile];
    __shared__ uint32_t decisions[hlt::lines_per_tile / 32];

    const hlt::line_event event{p.events.odin[blockIdx.x], p.events.flags[blockIdx.x], p.velo_tracks.count[blockIdx.x]};
    const hlt::scaler_event scaler = hlt::scaler_event_of(event.odin);
    const uint32_t first = p.velo_tracks.first(blockIdx.x);
    uint32_t* const words = p.events.lines + static_cast<uint64_t>(blockIdx.x) * ((p.n_lines + 31) / 32);
    bool accepted = false;  // of thread 0
    for (uint32_t tile = 0; tile < p.n_lines; tile += hlt::lines_per_tile) {
        const hlt::line_record* const lines = p.line_table + tile;
        const uint32_t n_lines = hlt::min_of(p.n_lines - tile, hlt::lines_per_tile);
        const uint32_t n_words = (n_lines + 31) / 32;
        for (uint32_t i = threadIdx.x; i < n_lines; i += blockDim.x) counted[i] = 0;
        for (uint32_t i = threadIdx.x; i < n_words; i += blockDim.x) decisions[i] = 0;
        __syncthreads();

        for (uint32_t i = 0; i < n_lines; ++i) {
            if (!hlt::line_wants_velo_tracks(lines[i].kind)) continue;
            const hlt::line_record line = lines[i];
            uint32_t mine = 0;
            for (uint32_t track = first + threadIdx.x; track < first + event.n_velo_tracks; track += blockDim.x) {
                const hlt::line_velo_track seen{p.velo_tracks.ip[track], p.velo_tracks.ip_chi2[track],
                                                p.velo_tracks.backward[track] != 0,
                                                p.velo_tracks.pv[track] != hlt::no_pv};
                mine += hlt::line_counts_track(line, seen) ? 1u : 0u;
            }
            if (mine != 0) atomicAdd(&counted[i], mine);
        }
        __syncthreads();

        for (uint32_t i = threadIdx.x; i < n_lines; i += blockDim.x) {
            const hlt::line_record line = lines[i];
            if (hlt::scaler_passes(line.prescale, scaler.words) && hlt::line_selects(line, event, counted[i]) &&
                hlt::scaler_passes(line.postscale, scaler.words))
                atomicOr(&decisions[i / 32], 1u << (i % 32));
        }
        __syncthreads();

        if (threadIdx.x == 0)
            for (uint32_t i = 0; i < n_words; ++i) {
                words[tile / 32 + i] = decisions[i];
                accepted = accepted || decisions[i] != 0;
            }
        __syncthreads();
    }
    if (threadIdx.x == 0) p.events.accepted[blockIdx.x] = accepted ? 1 : 0;
}
