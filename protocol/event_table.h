#pragma once

#include <nanobind/nanobind.h>

void define_event_table(nanobind::module_& module);
