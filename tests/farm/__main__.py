"""python -m tests.farm --nodes 1,2,4 --seconds 12: the table of real nodes beside the model of the same farm.

Each number of nodes is run at 60 % of its capacity without and with each fault, and once as fast as the nodes accept
MEPs. The model gets the times of batches that the nodes measured. `*` marks differences above 15 %; the exit code is 1
with one of them.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

from hltnode.daemon.commands.farm.local.processes import processes
from hltnode.daemon.farm_model.description import FaultKind
from tests.farm.comparison import GOOD, SHIFTS, Row, model_of, rows_of, run_model, shifted, table_of
from tests.farm.paced_node import EVENT_SECONDS, OVERHEAD_SECONDS
from tests.farm.real import EVENTS_PER_MEP, MEPS_OF_A_SLOT, Fault, Pause, RealRun, fitted_service, run_real

LOAD = 0.6
SLOWNESS = 3.0
PAUSE = Pause(at=3.0, seconds=30.0)
"""A subscriber of decisions that does not read: longer than the buffers on the way to it last."""
AFTER_PAUSE = 10.0
"""Seconds with MEPs after the pause."""
MEPS_AT_ONCE = 1e4
"""MEPs per second of sources that never wait, for the greatest rate."""


CALIBRATING = ("greatest", "quiet")
"""Runs whose batches give the service times. One of them alone may have batches of one size, which cannot tell the
overhead from the time of an event."""


def scenarios(nodes: int, seconds: float) -> dict[str, list[Fault]]:
    """The faults of each scenario, the calibrating ones first. In a farm of one node, no other takes over its MEPs."""
    at = seconds / 4
    found: dict[str, list[Fault]] = {name: [] for name in CALIBRATING}
    if nodes > 1:
        found["kill"] = [Fault(kind=FaultKind.KILL, node=0, at=at, seconds=5.0)]
    found["stop"] = [Fault(kind=FaultKind.STOP, node=0, at=at, seconds=1.5)]
    found["slow"] = [Fault(kind=FaultKind.SLOW, node=0, at=at, seconds=3.0, factor=SLOWNESS)]
    found["subscriber"] = []
    return found


def main() -> int:
    """Run all scenarios and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.farm", description=__doc__)
    parser.add_argument("--nodes", default="1,2,4", help="numbers of nodes")
    parser.add_argument("--seconds", type=float, default=12.0, help="time of a scenario with MEPs")
    parser.add_argument(
        "--only", action="append", help="scenario: quiet, kill, stop, slow, subscriber, greatest; repeatable"
    )
    parser.add_argument("--json", type=Path, default=None)
    arguments = parser.parse_args()
    meps = MEPS_OF_A_SLOT
    longest = OVERHEAD_SECONDS + meps * EVENTS_PER_MEP * EVENT_SECONDS
    rows: list[Row] = []
    for nodes in map(int, arguments.nodes.split(",")):
        batches: list[tuple[int, float]] = []
        compared: list[tuple[str, int, float, RealRun]] = []
        mep_seconds = longest / (LOAD * nodes * meps)
        for name, faults in scenarios(nodes, arguments.seconds).items():
            if arguments.only and name not in (*arguments.only, *CALIBRATING):
                continue
            spacing = 1 / MEPS_AT_ONCE if name == "greatest" else mep_seconds
            pause = PAUSE if name == "subscriber" else None
            n = round((PAUSE.at + PAUSE.seconds + AFTER_PAUSE if pause else arguments.seconds) / mep_seconds)
            with tempfile.TemporaryDirectory(prefix="hltnode-") as folder, processes() as started:
                real = run_real(Path(folder), nodes, n, spacing, faults, started, pause)
            assert real.accounting_closes
            assert not real.report.unacknowledged
            if name in CALIBRATING:
                batches += real.service
            compared.append((name, n, spacing, real))
        service = fitted_service(batches)
        print(f"{nodes} nodes, times of {len(batches)} batches: {service}", flush=True)
        for name, n, spacing, real in compared:
            farms = [
                run_model(
                    model_of(nodes, n, spacing, shifted(real.struck, shift), service, real.event_bytes, real.paused)
                )
                for shift in (0.0, *(part * longest for part in SHIFTS if real.struck))
            ]
            of_scenario = rows_of(f"{name}, {nodes} nodes", real, farms)
            rows += of_scenario
            print(table_of(of_scenario).text(), flush=True)
            print(f"batches: {len(real.service)}; MEPs of each node {real.meps_of_node}", flush=True)
            print(*(f"fault: {fault}\n" for fault in real.struck), sep="", end="", flush=True)
            print(f"pause of the subscriber: {real.paused}" if real.paused else "", flush=True)
    print(table_of(rows).text())
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([[r.scenario, r.name, r.real, r.model] for r in rows], indent=1))
    different = [row for row in rows if not row.is_good]
    if different:
        print(
            f"{len(different)} of {len(rows)} numbers differ by more than {GOOD:.0%}. The load of the machine is "
            f"{os.getloadavg()[1]:.1f} (mean of 5 minutes); other busy processes make real latencies longer.",
            flush=True,
        )
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
