// Frames in memory that another process may change at any moment (docs/formats/memory-socket.md).
#pragma once

#include <nanobind/nanobind.h>

void add_shared_frames(nanobind::module_& module);
