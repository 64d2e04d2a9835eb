// Writes the decision message of one MEP (docs/formats/decision-message.md), for the module _native.
#pragma once

#include <nanobind/nanobind.h>

void add_decision_message(nanobind::module_& module);
