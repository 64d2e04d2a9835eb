// The extension module of the daemon: work per fragment; work per MEP or batch is in Python.
#include <nanobind/nanobind.h>

#include "event_building/open_meps.h"
#include "monitoring/source_table.h"
#include "readout/fragment_intake.h"
#include "readout/sender_answers.h"
#include "readout/socket_intake.h"
#include "security/connection_guard.h"
#include "security/connection_tally.h"
#include "udp/udp_intake.h"

NB_MODULE(_native, module)
{
    // Otherwise nanobind reports objects that live until the end of the process as leaks.
    nanobind::set_leak_warnings(false);
    module.doc() = "Intake of fragments into open MEPs";
    add_open_meps(module);
    add_source_table(module);
    add_sender_answers(module);
    add_connection_guard(module);
    add_connection_tally(module);
    add_fragment_intake(module);
    add_socket_intake(module);
    add_udp_intake(module);
}
