// Kept events as MDF records (docs/formats/mdf.md): their raw banks and the trigger banks, in compiled code.
#pragma once

#include <nanobind/nanobind.h>

void add_event_records(nanobind::module_& module);
