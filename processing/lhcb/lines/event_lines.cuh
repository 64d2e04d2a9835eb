// Selection lines on whole events, and the decision (formats.md C3 event lines, C4).
//
// One block per event, which takes the lines in tiles, so that a menu may have any number of them. First all threads
// count the tracks that a line asks for, line by line; then one thread per line makes its decision: prescale and
// selection and postscale. The event is accepted if a line is left.
//
// A new line type gets a number in line_table.cuh, a case in `line_selects` (and, if it loops over tracks, one in
// `line_counts_track`), and its dataclass in processing/lines.
// Bounds: n_lines lines, an event's decisions in ceil(n_lines / 32) words; tracks of an event as velo_track_count.
#pragma once

#include "lhcb/velo/impact_parameter.cuh"
#include "selection/line_table.cuh"

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

__device__ bool line_wants_velo_tracks(line_kind kind) { return kind == line_kind::n_displaced_velo_tracks; }

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
    switch (line.kind) {
    case line_kind::passthrough: return true;
    case line_kind::velo_micro_bias: return event.n_velo_tracks >= line.parameters[0];
    case line_kind::n_displaced_velo_tracks: return counted >= line.parameters[0];
    case line_kind::odin_event_type:
        return (event.flags & odin_error) == 0 && (event.odin.event_type & line.parameters[0]) != 0;
    default: return false;
    }
}

}  // namespace hlt

struct event_lines_parameters {
    const hlt::batch_header* batch_header;
    const hlt::line_record* line_table;
    const hlt::odin_data* odin;
    const uint32_t* event_flags;
    const uint32_t* velo_cluster_offset;
    const uint32_t* velo_track_count;
    const uint8_t* velo_track_backward;
    const float* velo_track_ip;
    const float* velo_track_ip_chi2;
    const uint8_t* velo_track_pv;
    uint32_t* lines;
    uint8_t* accepted;
    uint32_t n_lines;
};

HLT_KERNEL(event_lines)
{
    const event_lines_parameters p = *parameters;
    if (blockIdx.x >= p.batch_header->n_events) return;
    __shared__ uint32_t counted[hlt::lines_per_tile];
    __shared__ uint32_t decisions[hlt::lines_per_tile / 32];

    const hlt::line_event event{p.odin[blockIdx.x], p.event_flags[blockIdx.x], p.velo_track_count[blockIdx.x]};
    const uint32_t first = p.velo_cluster_offset[blockIdx.x] / 2;
    uint32_t* const words = p.lines + static_cast<uint64_t>(blockIdx.x) * ((p.n_lines + 31) / 32);
    bool accepted = false;  // of thread 0
    for (uint32_t tile = 0; tile < p.n_lines; tile += hlt::lines_per_tile) {
        const hlt::line_record* const lines = p.line_table + tile;
        const uint32_t left = p.n_lines - tile;
        const uint32_t n_lines = left < hlt::lines_per_tile ? left : hlt::lines_per_tile;
        const uint32_t n_words = (n_lines + 31) / 32;
        for (uint32_t i = threadIdx.x; i < n_lines; i += blockDim.x) counted[i] = 0;
        for (uint32_t i = threadIdx.x; i < n_words; i += blockDim.x) decisions[i] = 0;
        __syncthreads();

        for (uint32_t i = 0; i < n_lines; ++i) {
            if (!hlt::line_wants_velo_tracks(lines[i].kind)) continue;
            const hlt::line_record line = lines[i];
            uint32_t mine = 0;
            for (uint32_t track = first + threadIdx.x; track < first + event.n_velo_tracks; track += blockDim.x) {
                const hlt::line_velo_track seen{p.velo_track_ip[track], p.velo_track_ip_chi2[track],
                                                p.velo_track_backward[track] != 0,
                                                p.velo_track_pv[track] != hlt::no_pv};
                mine += hlt::line_counts_track(line, seen) ? 1u : 0u;
            }
            if (mine != 0) atomicAdd(&counted[i], mine);
        }
        __syncthreads();

        for (uint32_t i = threadIdx.x; i < n_lines; i += blockDim.x) {
            const hlt::line_record line = lines[i];
            if (hlt::scaler_passes(line.prescale, event.odin) && hlt::line_selects(line, event, counted[i]) &&
                hlt::scaler_passes(line.postscale, event.odin))
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
    if (threadIdx.x == 0) p.accepted[blockIdx.x] = accepted ? 1 : 0;
}
