// The VELO as kernels see it: VeloGeometry.to_bytes() of processing/lhcb/geometry/velo.py, units mm.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_velo_modules = 52;
constexpr uint32_t n_velo_module_pairs = 26;
constexpr uint32_t n_velo_sensors = 208;
constexpr uint32_t n_velo_columns = 768;  // of a sensor: three chips of 256
constexpr uint32_t n_velo_rows = 256;
constexpr float velo_pixel_pitch = 0.055f;

struct velo_geometry {
    float module_z[n_velo_modules];
    float local_x[n_velo_columns];              // centre of the column
    float x_pitch[n_velo_columns];              // wider at the chip borders
    float local_to_global[n_velo_sensors][12];  // rotation row-major, then translation
    float beamline_x;
    float beamline_y;
};

}  // namespace hlt
