// Events to frames: the raw banks of many events, transposed to one MFP per readout source.
#pragma once

#include <nanobind/nanobind.h>

void define_packing(nanobind::module_& module);
