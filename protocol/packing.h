// Events to frames: the raw banks of many events, transposed to one MFP for each readout source.
#pragma once

#include <nanobind/nanobind.h>

void define_packing(nanobind::module_& module);
