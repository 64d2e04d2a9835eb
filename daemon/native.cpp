// The extension module of the daemon: what is done for each fragment, and nothing for a MEP or a batch.
#include <nanobind/nanobind.h>

#include "event_building/open_meps.h"
#include "monitoring/source_table.h"
#include "readout/fragment_intake.h"
#include "readout/socket_intake.h"
#include "security/connection_tally.h"

NB_MODULE(_native, module)
{
    // What lives until the process ends is reported as a leak otherwise.
    nanobind::set_leak_warnings(false);
    module.doc() = "The way of fragments of MEPs that are open";
    add_open_meps(module);
    add_source_table(module);
    add_connection_tally(module);
    add_fragment_intake(module);
    add_socket_intake(module);
}
