// Impact parameter of every VELO track to its primary vertex: the vertex with the smallest value
// (docs/physics/impact-parameter.md).
//
// One block per event, one thread per track.
//     IP = sqrt((dx^2 + dy^2) / (1 + tx^2 + ty^2)), d = track at the z of the vertex minus vertex;
//     IP chi2 = d^T V^-1 d, V = covariance of the track there plus that of the vertex, projected along the track.
// Without a vertex in the event, IP and IP chi2 are 0 and the vertex is no_pv.
// Bounds: tracks of an event as velo_tracks.count, vertices as pvs.count.
#pragma once

#include "lhcb/primary_vertices/generated/velo_impact_parameter.h"
#include "lhcb/primary_vertices/ip_chi2.cuh"
#include "lhcb/primary_vertices/tracks.cuh"

HLT_KERNEL(velo_impact_parameter)
{
    if (!p.takes(blockIdx.x)) return;

    const uint32_t first = p.velo_tracks.first(blockIdx.x);
    const uint32_t n_tracks = p.velo_tracks.count[blockIdx.x];
    const uint32_t n_pvs = p.pvs.count[blockIdx.x];
    const hlt::primary_vertex* pvs = p.pvs.vertex + p.pvs.first(blockIdx.x);

    for (uint32_t track = first + threadIdx.x; track < first + n_tracks; track += blockDim.x) {
        const float x = p.velo_beamline.x[track];
        const float y = p.velo_beamline.y[track];
        const float z = p.velo_beamline.z[track];
        const float tx = p.velo_beamline.tx[track];
        const float ty = p.velo_beamline.ty[track];

        uint32_t nearest = hlt::no_pv;
        float nearest_distance2 = 0.f;
        for (uint32_t i = 0; i < n_pvs; ++i) {
            const float dz = pvs[i].z - z;
            const float dx = x + dz * tx - pvs[i].x;
            const float dy = y + dz * ty - pvs[i].y;
            const float distance2 = dx * dx + dy * dy;
            if (nearest == hlt::no_pv || distance2 < nearest_distance2) {
                nearest = i;
                nearest_distance2 = distance2;
            }
        }

        float chi2 = 0.f;
        if (nearest != hlt::no_pv) {
            const hlt::primary_vertex pv = pvs[nearest];
            const float dz = pv.z - z;
            const float dx = x + dz * tx - pv.x;
            const float dy = y + dz * ty - pv.y;
            const float c20 = p.velo_beamline.c20[track];
            const float of_track = p.velo_beamline.c00[track] + dz * (2.f * c20 + dz * p.velo_beamline.c22[track]);
            chi2 = hlt::ip_chi2(pv, dx, dy, tx, ty, of_track, of_track);
        }
        p.velo_tracks.ip[track] = sqrtf(nearest_distance2 / (1.f + tx * tx + ty * ty));
        p.velo_tracks.ip_chi2[track] = chi2;
        p.velo_tracks.pv[track] = static_cast<uint8_t>(nearest);
    }
}
