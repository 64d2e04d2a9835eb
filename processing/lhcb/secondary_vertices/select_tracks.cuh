// The long tracks that may be part of a secondary vertex, packed in their order, with their possible uses
// (docs/physics/secondary-vertices.md).
//
// One block per event; threads stride over tracks, a prefix sum gives the places. Every cut is written so that a NaN
// fails it.
// Bounds: tracks of an event as long_tracks.count.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/secondary_vertices/generated/secondary_vertices_select_tracks.h"
#include "lhcb/secondary_vertices/generated/vertex_types.h"

namespace hlt {

constexpr float vertex_max_momentum = 1e7f;  // MeV; the momentum of a track with more is not measured

}  // namespace hlt

HLT_KERNEL(secondary_vertices_select_tracks)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t first_track = p.long_tracks.first(blockIdx.x);
    const uint32_t n_tracks = p.long_tracks.count[blockIdx.x];
    const uint32_t first = p.vertex_tracks.first(blockIdx.x);

    uint32_t n = 0;
    for (uint32_t base = 0; base < n_tracks; base += blockDim.x) {
        const uint32_t number = base + threadIdx.x;
        const uint32_t track = first_track + number;
        uint32_t use = 0;
        if (number < n_tracks) {
            const float tx = p.long_tracks.beam_tx[track], ty = p.long_tracks.beam_ty[track];
            const float qop = p.long_tracks.beam_qop[track];
            const float momentum = 1.f / (qop < 0.f ? -qop : qop);
            const float pt = momentum * sqrtf((tx * tx + ty * ty) / (1.f + tx * tx + ty * ty));
            const float ip = p.long_tracks.ip[track], ip_chi2 = p.long_tracks.ip_chi2[track];
            if (p.long_tracks.chi2[track] < p.max_chi2 && momentum > 0.f && momentum < hlt::vertex_max_momentum) {
                if (pt > p.displaced_min_pt && ip > p.displaced_min_ip && ip_chi2 > p.displaced_min_ip_chi2)
                    use |= hlt::for_displaced;
                if (pt > p.v0_min_pt && ip > p.v0_min_ip && ip_chi2 > p.v0_min_ip_chi2) {
                    use |= hlt::for_v0;
                    if (ip > p.v0_far_min_ip && ip_chi2 > p.v0_far_min_ip_chi2) use |= hlt::for_v0_far;
                }
                if (p.long_tracks.is_muon[track] != 0) use |= hlt::for_dimuon;
            }
            if (use != 0) {
                if (qop > 0.f) use |= hlt::is_positive;
                use |= static_cast<uint32_t>(p.long_tracks.pv[track]) << hlt::use_pv_shift;
            }
        }
        uint32_t total;
        const uint32_t place = first + n + hlt::block_exclusive_count(use != 0, scratch, total);
        if (use != 0) {
            const float z = p.long_tracks.beam_z[track];
            const float tx = p.long_tracks.beam_tx[track], ty = p.long_tracks.beam_ty[track];
            p.vertex_tracks.track[place] = static_cast<uint16_t>(number);
            p.vertex_tracks.use[place] = use;
            p.vertex_tracks.x0[place] = p.long_tracks.beam_x[track] - z * tx;
            p.vertex_tracks.y0[place] = p.long_tracks.beam_y[track] - z * ty;
            p.vertex_tracks.tx[place] = tx;
            p.vertex_tracks.ty[place] = ty;
            p.vertex_tracks.ip_chi2[place] = p.long_tracks.ip_chi2[track];
        }
        n += total;
    }
    if (threadIdx.x == 0) p.vertex_tracks.count[blockIdx.x] = n;
}
