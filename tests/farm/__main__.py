"""python -m tests.farm --nodes 1,2,4 --seconds 12: the table of real nodes beside the model of the same farm.

Each number of nodes is run at 60 % of its capacity without and with each fault, and once as fast as the nodes accept
MEPs. The times of batches of the model are those that the nodes measured. `*` marks differences above 15 %.
"""

import argparse
import json
import tempfile
from pathlib import Path

from hltnode.daemon.commands.farm.local.processes import processes
from hltnode.daemon.farm_model.description import FaultKind
from tests.farm.comparison import Row, model_of, rows_of, run_model, table_of
from tests.farm.paced_node import EVENT_SECONDS, OVERHEAD_SECONDS
from tests.farm.real import EVENTS_PER_MEP, MEPS_OF_A_SLOT, Fault, Pause, fitted_service, run_real

LOAD = 0.6
SLOWNESS = 3.0
PAUSE = Pause(at=3.0, seconds=30.0)
"""A subscriber of decisions that does not read: longer than the buffers on the way to it last."""
AFTER_PAUSE = 10.0
"""Seconds with MEPs after the pause."""
MEPS_AT_ONCE = 1e4
"""MEPs per second of sources that never wait, for the greatest rate."""


def scenarios(nodes: int, seconds: float) -> dict[str, list[Fault]]:
    """The faults of each scenario. In a farm of one node, no other one takes over its MEPs."""
    at = seconds / 4
    found: dict[str, list[Fault]] = {"quiet": []}
    if nodes > 1:
        found["kill"] = [Fault(kind=FaultKind.KILL, node=0, at=at, seconds=5.0)]
    found["stop"] = [Fault(kind=FaultKind.STOP, node=0, at=at, seconds=1.5)]
    found["slow"] = [Fault(kind=FaultKind.SLOW, node=0, at=at, seconds=3.0, factor=SLOWNESS)]
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
        service: dict[str, float] = {}
        mep_seconds = longest / (LOAD * nodes * meps)
        for name, faults in {**scenarios(nodes, arguments.seconds), "subscriber": [], "greatest": []}.items():
            if arguments.only and name not in arguments.only:
                continue
            spacing = 1 / MEPS_AT_ONCE if name == "greatest" else mep_seconds
            pause = PAUSE if name == "subscriber" else None
            n = round((PAUSE.at + PAUSE.seconds + AFTER_PAUSE if pause else arguments.seconds) / mep_seconds)
            with tempfile.TemporaryDirectory(prefix="hltnode-") as folder, processes() as started:
                real = run_real(Path(folder), nodes, n, spacing, faults, started, pause)
            assert real.accounting_closes
            assert not real.report.unacknowledged
            # Those of the farm without faults, which comes first; a slow node would make all of them slow.
            service = service or fitted_service(real.service)
            description = model_of(nodes, n, spacing, real.struck, service, real.event_bytes, real.paused)
            rows += rows_of(f"{name}, {nodes} nodes", real, run_model(description))
            print(table_of([row for row in rows if row.scenario == f"{name}, {nodes} nodes"]).text(), flush=True)
            print(f"batches: {len(real.service)}, {service}; MEPs of each node {real.meps_of_node}", flush=True)
            print(f"pause of the subscriber: {real.paused}" if pause else "", flush=True)
    print(table_of(rows).text())
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([[r.scenario, r.name, r.real, r.model] for r in rows], indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
