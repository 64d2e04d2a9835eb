"""A node with a readout of real size, against its kernels alone: processor time of all threads per event.

The node is a separate process, `hltnode serve` on one thread with the VELO chain or the default sequence; `hltnode
replay` feeds it over tcp or shared memory. Its processor time includes all threads during data taking, without the
start and end of the run. The input is copies of the seven real events with distinct event numbers. A line keeps 3 % of
the events. The baseline runs the same MEPs with all sources through the same sequence alone in this process. In the
node, kernels share processor and memory with the receiver, which is part of the ratio.
"""

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lhcb.real_events import CHAIN, geometry_folder, real_file
from benchmarks.measure import Result, median
from benchmarks.readout.readout_meps import ReadoutMep, real_mep
from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.daemon.storage.histogram_files import LIBRARY_SECONDS
from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.workspace import Workspace
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.odin import decode_odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import encode_bank

FIGURES = "node"
EVENTS_PER_MEP = (100, 1000)
TARGETS = {100: 1.5, 1000: 1.25}
COPIES = 40
FED = {100: 16_000, 1000: 24_000}
"""Number of events for the node; the first and the last quarter are not measured."""
RUNS = 3
BATCHES = 5
"""Number of batches of the kernels for the median."""
MIB = 1 << 20
SECONDS = 120.0
"""Time-out for a node that does not take its events."""
LOOK_SECONDS = 0.5
"""Time between two readings of the status of the node, which cost it some milliseconds each."""
AFTER_START_SECONDS = LIBRARY_SECONDS + 2.0
"""Settling time: a node does a part of its start-up work later."""
WAYS = ("tcp", "shm")
SEQUENCES = ("velo", CHAIN.default_sequence)
SEGMENT_MIB = 1024
TRIGGER = """[sequence]
name = "velo"

[[lines]]
type = "Passthrough"
name = "Hlt1Passthrough"
prescale = 0.03
"""


def numbered_events(shared: Path, path: Path) -> int:
    """Write copies of the real events with distinct event numbers; returns their number."""
    events = list(read_events(real_file(shared)))
    with path.open("wb") as file:
        for number in range(COPIES * len(events)):
            banks = []
            for bank in events[number % len(events)]:
                if bank.type == BankType.ODIN:
                    odin = decode_odin(bank)
                    bank = encode_odin(replace(odin, event_id=number + 1, orbit=number + 1), bank.version)
                banks.append(encode_bank(bank))
            file.write(encode_record(b"".join(banks), run=1, checksum=False))
    return COPIES * len(events)


def kernels_us(mep: ReadoutMep, trigger: Path, sequence: str, geometry: Path) -> float:
    """Processor time of the sequence per event, for batches of this MEP (µs)."""
    limits = BatchLimits(events=mep.n_events, meps=1, input_bytes=mep.data.nbytes + 64, rows=mep.n_sources)
    configured = CHAIN.load_trigger(trigger)
    engine = CHAIN.create_engine(
        CpuBackend(CHAIN.kernels, threads=1),
        CHAIN.with_sequence(sequence).load_geometry(geometry),
        configured,
        limits,
    )
    workspace = engine.create_workspace()
    workspace.input_data[: mep.data.nbytes] = mep.data
    found = median(lambda: _batch_us(workspace, mep), BATCHES)
    engine.close()
    return found


def _batch_us(workspace: Workspace, mep: ReadoutMep) -> float:
    begin = time.process_time()
    workspace.seal([MepInBatch(mep.n_events, mep.places)])
    workspace.submit()
    workspace.wait()
    return (time.process_time() - begin) / mep.n_events * 1e6


def status_of(port: int) -> dict[str, Any] | None:
    """The status of a node; None while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=30) as page:
            found: dict[str, Any] = json.load(page)
    except OSError:
        return None
    return found


EVENT_LOOP, ZEROMQ, KERNELS, OTHERS = "event loop", "ZeroMQ", "kernels", "all other threads"


def cpu_seconds(pid: int) -> float:
    """Processor time of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def thread_seconds(pid: int) -> dict[int, tuple[str, float]]:
    """Name and processor time of each thread of a process."""
    found: dict[int, tuple[str, float]] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            used = int((task / "schedstat").read_text().split()[0]) * 1e-9
            found[int(task.name)] = (task / "comm").read_text(), used
        except FileNotFoundError:
            continue
    return found


def seconds_by_kind(
    pid: int, before: Mapping[int, tuple[str, float]], after: Mapping[int, tuple[str, float]]
) -> dict[str, float]:
    """Processor time between two readings, by kind of thread, for a node with one computing thread."""
    seconds = dict.fromkeys((EVENT_LOOP, ZEROMQ, KERNELS, OTHERS), 0.0)
    for thread, (name, used) in after.items():
        used -= before.get(thread, (name, 0.0))[1]
        kind = EVENT_LOOP if thread == pid else ZEROMQ if name.startswith("ZMQ") else OTHERS
        if kind == OTHERS and used > seconds[KERNELS]:
            # The computing thread uses the most processor time.
            used, seconds[KERNELS] = seconds[KERNELS], used
        seconds[kind] += used
    return seconds


@contextmanager
def process(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """A running hltnode command."""
    command = [sys.executable, "-m", "hltnode.daemon", *map(str, arguments)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield running
    finally:
        running.terminate()
        running.wait()


def write_config(directory: Path, mep: ReadoutMep, trigger: Path, geometry: Path) -> tuple[Path, tuple[str, ...], int]:
    """Write the configuration of a node for such MEPs; returns its path, the options of its feeders, its HTTP port."""
    data, control, decisions, http = free_ports(4)
    mep_bytes = max(int(mep.data.nbytes * 1.3), 16 * MIB)
    config = directory / "node.toml"
    config.write_text(f"""
[network]
data = "tcp://127.0.0.1:{data}"
control = "tcp://127.0.0.1:{control}"
decisions = "tcp://127.0.0.1:{decisions}"
[shared_memory]
socket = "{directory / "memory"}"
[builder]
mep_timeout_ms = 60000
feeder_timeout_ms = 60000
max_mep_bytes = {mep_bytes}
[pipeline]
slots = 3
slot_bytes = {max(mep_bytes, 64 * MIB)}
max_events = 4096
backend = "cpu"
threads = 1
[geometry]
directory = "{geometry}"
[trigger]
file = "{trigger}"
[output]
directory = "{directory / "output"}"
[http]
port = {http}
""")
    to = ("--to", f"tcp://127.0.0.1:{data}", "--control", f"tcp://127.0.0.1:{control}")
    return config, to, http


def wait_until_it_runs(node: subprocess.Popen[bytes], http: int) -> None:
    """Wait until a node takes data."""
    end = time.monotonic() + SECONDS
    while (status := status_of(http)) is None or status["state"] != "running":
        if node.poll() is not None or time.monotonic() > end:
            raise RuntimeError("the node did not start")
        time.sleep(0.2)


def node_us(
    directory: Path, events: Path, n_of_file: int, mep: ReadoutMep, trigger: Path, geometry: Path, way: str
) -> dict[str, float]:
    """Processor time of a node per event, by kind of thread (µs)."""
    config, to, http = write_config(directory, mep, trigger, geometry)
    if way == "shm":
        to = ("--to", f"shm://{directory / 'memory'}", *to[2:], "--segment-mib", str(SEGMENT_MIB))
    fed = FED[mep.n_events]
    repeat = -(-fed // n_of_file)
    with process("serve", "--config", config) as node:
        wait_until_it_runs(node, http)
        time.sleep(AFTER_START_SECONDS)
        how = ("--sources", 1, "--repeat", repeat, "--events-per-mep", mep.n_events)
        with process("replay", events, *to, *how) as feeder:
            before = when_processed(http, node, feeder, repeat * n_of_file // 4)
            after = when_processed(http, node, feeder, repeat * n_of_file * 3 // 4)
    used = seconds_by_kind(node.pid, before[1], after[1])
    return {kind: seconds / (after[0] - before[0]) * 1e6 for kind, seconds in used.items()}


def when_processed(
    port: int, node: subprocess.Popen[bytes], feeder: subprocess.Popen[bytes], events: int
) -> tuple[int, dict[int, tuple[str, float]]]:
    """Wait for this number of events; returns events and processor time of the threads of a node."""
    end = time.monotonic() + SECONDS
    while (status := status_of(port)) is None or status["events"]["processed"] < events:
        if node.poll() is not None or feeder.poll() or time.monotonic() > end:
            raise RuntimeError(f"{events} events were not processed: {status}")
        time.sleep(LOOK_SECONDS)
    return status["events"]["processed"], thread_seconds(node.pid)


def run(shared: Path) -> Iterator[Result]:
    """Measure kernels and node in turn, for each sequence and MEP size."""
    geometry = geometry_folder(shared)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        events = directory / "events.mdf"
        n_of_file = numbered_events(shared, events)
        for sequence in SEQUENCES:
            trigger = directory / f"{sequence}.toml"
            trigger.write_text(TRIGGER.replace("velo", sequence))
            for n_events in EVENTS_PER_MEP:
                mep = real_mep(shared, n_events)
                turns: dict[str, list[tuple[float, dict[str, float]]]] = {way: [] for way in WAYS}
                for turn in range(RUNS):
                    # The speed of a busy machine changes, so the kernels are measured before and after.
                    before = kernels_us(mep, trigger, sequence, geometry)
                    for way in WAYS if turn % 2 else WAYS[::-1]:
                        of_turn = directory / f"{sequence}_{n_events}_{turn}_{way}"
                        of_turn.mkdir()
                        threads = node_us(of_turn, events, n_of_file, mep, trigger, geometry, way)
                        after = kernels_us(mep, trigger, sequence, geometry)
                        turns[way].append(((before + after) / 2, threads))
                        before = after
                for way, of_way in turns.items():
                    yield from _results(f"{sequence}, {way}, {n_events:,} per MEP", n_events, of_way)


def _results(name: str, n_events: int, turns: list[tuple[float, dict[str, float]]]) -> Iterator[Result]:
    kernels = float(np.median([alone for alone, _ in turns]))
    node = float(np.median([sum(threads.values()) for _, threads in turns]))
    ratio = float(np.median([sum(threads.values()) / alone for alone, threads in turns]))
    unit, baseline = "µs of processor time per event", f"kernels alone: {kernels:,.0f} µs"
    yield Result(name, node, unit, baseline, TARGETS[n_events] / ratio, 1.0)
    for kind in turns[0][1]:
        used = float(np.median([threads[kind] for _, threads in turns]))
        yield Result(f"{name}: {kind}", used, unit, baseline, None)


def summary(results: list[Result]) -> dict[str, object]:
    """Ratio of the time of a node to that of its kernels: default sequence over tcp, then by sequence and way."""
    ratios = (result.ratio for result in results if result.ratio)
    found: dict[str, dict[str, float]] = {}
    for sequence in SEQUENCES:
        for n_events in EVENTS_PER_MEP:
            for way in WAYS:
                key = f"cpu_ratio_{n_events}"
                found.setdefault(f"{sequence}_{way}", {})[key] = TARGETS[n_events] / next(ratios)
    return {**found[f"{CHAIN.default_sequence}_tcp"], **found}
