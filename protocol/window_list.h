// The list of windows of a time slice for its decision message (docs/formats/decision-message.md).
#pragma once

#include <nanobind/nanobind.h>

void add_window_list(nanobind::module_& module);
