// The tracks of an event, and their clusters, from those of its slices.
//
// In:  tracks and clusters of tracks of each slice. Out: those of the event, in the order of slices, and their numbers.
// One block per event; threads stride over the tracks of a slice. Bounds: an event has the places of its slices.
#pragma once

#include "alice/tpc/tracks/generated/tpc_collect_tracks.h"

HLT_KERNEL(tpc_collect_tracks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    uint32_t n_tracks = 0, n_hits = 0, n_tracklets = 0;
    for (uint32_t part = event * hlt::tpc_slices; part < (event + 1u) * hlt::tpc_slices; ++part) {
        const uint32_t tracks = p.tpc_slices.tracks[part], hits = p.tpc_slices.track_clusters[part];
        for (uint32_t i = threadIdx.x; i < tracks; i += blockDim.x)
            p.tpc_tracks.track[p.tpc_tracks.first(event) + n_tracks + i] =
                p.tpc_slice_tracks.track[p.tpc_slice_tracks.first(part) + i];
        for (uint32_t i = threadIdx.x; i < hits; i += blockDim.x)
            p.tpc_track_clusters.cluster[p.tpc_track_clusters.first(event) + n_hits + i] =
                p.tpc_slice_hits.cluster[p.tpc_slice_hits.first(part) + i];
        n_tracks += tracks;
        n_hits += hits;
        n_tracklets += p.tpc_slices.tracklets[part];
    }
    if (threadIdx.x != 0) return;
    p.tpc_tracks.count[event] = n_tracks;
    p.tpc_track_clusters.count[event] = n_hits;
    p.tpc_tracklets.count[event] = n_tracklets;
}
