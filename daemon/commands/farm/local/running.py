"""Runs a farm on this machine until it is told to end."""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hltnode.daemon.commands.common import thread_count
from hltnode.daemon.commands.demo import samples_of
from hltnode.daemon.commands.farm.local.accounts import NodeAccount, result_of
from hltnode.daemon.commands.farm.local.monitoring import Monitoring, start_monitoring
from hltnode.daemon.commands.farm.local.nodes import (
    FEED_SECONDS,
    LocalFeeder,
    LocalNode,
    NodeSettings,
    wait_until_running,
)
from hltnode.daemon.commands.farm.local.processes import EndSignals, FarmFailedError, end_of, processes
from hltnode.daemon.commands.farm.local.restarts import Restarts
from hltnode.daemon.commands.guard import guarded_folder
from hltnode.daemon.commands.mep_streams.simulated_stream import write_stretch
from hltnode.daemon.commands.progress import event_progress
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.daemon.replay.site import MAX_FRAGMENT_BYTES
from hltnode.processing.offline.chain_tools import SimulatedSample
from hltnode.processing.offline.named_samples import counted
from hltnode.processing.selection.trigger_chain import installed_chain

FARM_FILE = "farm.json"
"""Addresses and process ids of the running farm, in its folder."""
SLICES = 4
"""Simulated slices of a streaming chain, which the feeder repeats."""
EVENTS_PER_MEP = 100
MEP_BYTES = 4 << 20
"""Mean size of a MEP of large events: a quarter of the largest one that the nodes take."""
LOOK_SECONDS = 0.2
SHOW_SECONDS = 1.0
FIRST_SECONDS = 120.0
"""Longest time from the start of the feeder to the first computed event."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmPlan:
    """A farm. sample: simulated events, of which n are made and repeated; rate: events per second, None: the greatest;
    seconds: time with events, None: until a signal; directory: a new folder, None: a temporary one."""

    sample: SimulatedSample
    n: int
    nodes: int
    chain: str
    backend: str
    rate: float | None
    seconds: float | None
    directory: Path | None
    monitoring: bool


def run_local_farm(plan: FarmPlan, signals: EndSignals, say: Say, show: Say) -> dict[str, Any]:
    """Run the farm; returns the JSON object of its accounting. Raises FarmFailedError and EndedBySignalError.

    Args:
        say: gets lines that stay.
        show: gets a line that replaces the one before.
    """
    with ExitStack() as stack:
        if plan.directory is None:
            folder = stack.enter_context(guarded_folder("hltnode-farm-"))
        else:
            folder = plan.directory.absolute()
            folder.mkdir(parents=True, exist_ok=True)
        # The processes end before the folder goes.
        started = stack.enter_context(processes())
        run = int(time.time())
        given = _write_events(plan, folder, run)
        nodes = [LocalNode(f"node{i}", folder / f"node{i}", started) for i in range(plan.nodes)]
        settings = NodeSettings(chain=plan.chain, backend=plan.backend, threads=max(1, thread_count(0) // plan.nodes))
        for node in nodes:
            node.configure(settings, [each.url for each in nodes])
            node.start()
        show("the nodes start")
        wait_until_running(nodes)
        monitoring = start_monitoring(folder / "prometheus", nodes, started) if plan.monitoring else Monitoring()
        feeder = LocalFeeder(folder / "feeder", started)
        rate = "greatest" if plan.rate is None else str(plan.rate)
        options = ("--loop", "--rate", rate, "--events-per-mep", str(given.per_mep))
        feeder.start(nodes, given.file, plan.chain, run, *options)

        def say_restart(text: str) -> None:
            # The node has another process id.
            _write_addresses(folder / FARM_FILE, nodes, feeder, monitoring)
            say(text)

        _write_addresses(folder / FARM_FILE, nodes, feeder, monitoring)
        say(f"farm page     {nodes[0].url}/farm")
        if plan.monitoring:
            say(f"Prometheus    {f'{monitoring.prometheus}/alerts' if monitoring.prometheus else 'is not installed'}")
        if monitoring.alertmanager:
            say(f"Alertmanager  {monitoring.alertmanager}")
        say(f"files         {folder}")
        signals.wait_for_first()
        restarts = Restarts(nodes, time.monotonic(), say_restart)
        _follow(plan, signals, nodes, feeder, restarts, show)
        show("the feeder waits for the last acknowledgements")
        feeder.end_input()
        _await_end(restarts, feeder, show)
        fed = feeder.report()
        show("the nodes drain")
        accounts = [_account(node) for node in nodes]
        return result_of(fed, accounts, given.sources) | {
            "run": run,
            "chain": plan.chain,
            "directory": None if plan.directory is None else str(folder),
            "ended_by": signals.number,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Input:
    """What the feeder repeats."""

    file: Path
    per_mep: int
    sources: int


def _write_events(plan: FarmPlan, folder: Path, run: int) -> _Input:
    """Write the simulated events, or slices of a streaming chain."""
    chain = installed_chain(plan.chain)
    path = folder / "events.mep"
    if chain.with_lines(chain.load_trigger(None)).streaming is not None:
        per_mep = max(1, plan.n // SLICES)
        write_stretch(chain, plan.sample, per_mep, SLICES, path, None, run)
    else:
        # A chain may lack the ODIN bank that MEP files begin with, so these are records.
        path = folder / "events.mdf"
        with (
            path.open("wb") as file,
            closing(plan.sample.blocks(plan.n, thread_count(0))) as made,
            event_progress("simulating events", plan.n) as add,
        ):
            file.writelines(counted(made, add))
        per_mep = max(1, min(EVENTS_PER_MEP, plan.n * MEP_BYTES // max(1, path.stat().st_size)))
    packing = Packing(events_per_mep=per_mep, max_fragment_bytes=MAX_FRAGMENT_BYTES, run=run)
    sources = meps_of_files([path], chain.readout, packing).sources
    return _Input(file=path, per_mep=per_mep, sources=len(sources))


def _write_addresses(path: Path, nodes: Sequence[LocalNode], feeder: LocalFeeder, monitoring: Monitoring) -> None:
    assert feeder.process is not None
    content = {
        "nodes": [
            {
                "name": node.name,
                "data": node.data,
                "control": node.control,
                "decisions": node.decisions,
                "http": node.url,
                "pid": None if node.process is None else node.process.pid,
            }
            for node in nodes
        ],
        "feeder_pid": feeder.process.pid,
        "farm_page": f"{nodes[0].url}/farm",
        "prometheus": monitoring.prometheus,
        "alertmanager": monitoring.alertmanager,
    }
    # A reader never finds half a file.
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(content, indent=1))
    unfinished.replace(path)


def _follow(
    plan: FarmPlan, signals: EndSignals, nodes: Sequence[LocalNode], feeder: LocalFeeder, restarts: Restarts, show: Say
) -> None:
    """Until the time is over or a signal comes; nodes that have ended start again."""
    started = time.monotonic()
    first: float | None = None
    shown = processed_then = 0.0
    while not signals.wait(LOOK_SECONDS):
        now = time.monotonic()
        restarts.check(now)
        if not feeder.is_alive:
            raise FarmFailedError(f"the feeder ended:\n{end_of(feeder.log)}")
        if first is not None and plan.seconds is not None and now - first >= plan.seconds:
            return
        if first is not None and now - shown < SHOW_SECONDS:
            continue
        processed = sum(_processed(node) for node in nodes)
        if first is not None and shown:
            rate = max(0.0, processed - processed_then) / (now - shown)
            waiting = restarts.text(now)
            show(f"{processed:.0f} events, {rate:.0f} events/s" + (f"; {waiting}" if waiting else ""))
        shown, processed_then = now, processed
        if first is None:
            first = now if processed else None
            if now - started > FIRST_SECONDS:
                raise FarmFailedError(f"no event after {FIRST_SECONDS:.0f} s:\n{end_of(feeder.log)}")


def _processed(node: LocalNode) -> float:
    try:
        return samples_of(node.metrics()).get("hltnode_events_processed_total", 0.0)
    except OSError:
        return 0.0


def _await_end(restarts: Restarts, feeder: LocalFeeder, show: Say) -> None:
    """Wait for the feeder; a node that has ended meanwhile starts again."""
    end = time.monotonic() + FEED_SECONDS
    while feeder.is_alive:
        restarts.check(time.monotonic())
        if waiting := restarts.text(time.monotonic()):
            show(f"the feeder waits for the last acknowledgements; {waiting}")
        if time.monotonic() > end:
            raise FarmFailedError(f"the feeder did not end after {FEED_SECONDS:.0f} s:\n{end_of(feeder.log)}")
        time.sleep(LOOK_SECONDS)
    restarts.start_waiting(time.monotonic())


def _account(node: LocalNode) -> NodeAccount:
    """Stop a node, and count what it did."""
    # A node that has just been started again is let run first: its files of the earlier session are recovered.
    if node.killed:
        wait_until_running([node])
    status = node.stop()
    if status is None:
        raise FarmFailedError(f"{node.name} left no last status:\n{end_of(node.log)}")
    files = sorted(node.output.glob("*_accepted_*.mdf"))
    return NodeAccount(name=node.name, status=status, killed=node.killed, files=files)
