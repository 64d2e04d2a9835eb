// The momentum of a long track for the muon kernels.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr float least_muon_qop = 1e-9f;  // 1/MeV: no track has 1,000 TeV

/// MeV, from charge over momentum.
__device__ float muon_momentum(float qop) { return 1.f / max_of(fabsf(qop), least_muon_qop); }

}  // namespace hlt
