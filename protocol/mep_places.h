// The places of the MFPs of a MEP (docs/formats/mep.md): the checks of Mep.parse.
#pragma once

#include <nanobind/nanobind.h>

void add_mep_places(nanobind::module_& module);
