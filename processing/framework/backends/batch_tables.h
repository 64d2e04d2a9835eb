// Writes the tables of a batch (framework/batch.py), for the module _executor.
#pragma once

#include <nanobind/nanobind.h>

void add_batch_tables(nanobind::module_& module);
