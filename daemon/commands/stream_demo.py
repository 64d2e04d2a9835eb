"""The demo of a chain without events: a stream in short time slices, one of whose sources is killed on the way.

What the node publishes and writes is compared with the windows of the same stream in one slice.
"""

import contextlib
import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import zmq
from numpy.typing import NDArray
from rich.progress import Progress

from hltnode.daemon.commands.common import console
from hltnode.daemon.commands.demo_processes import (
    STOP_SECONDS,
    DemoError,
    child,
    free_ports,
    get,
    new_node_name,
    wait_until_running,
)
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.event_building.accounting import closes
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_mep
from hltnode.processing.framework.streaming import END, LINES, START, Streaming
from hltnode.processing.offline.chain_tools import SimulatedSample
from hltnode.processing.selection.trigger_chain import TriggerChain, installed_chain
from hltnode.protocol.raw_data import mep as mep_files
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import subdetector_of
from hltnode.protocol.raw_data.time_windows import TimeWindow, decode_window, join_windows
from hltnode.protocol.transport.decisions import SliceDecision, decode_decisions

SUB_SLICES = 2
"""Sub-slices of a slice without its margins: few, so that many windows cross a border."""
SECONDS = 8.0
"""Time in which the feeders send the stream if no rate is asked for."""
STALL_SECONDS = 60.0
RUN = 1
Window = tuple[int, int, int]
"""Start and end in ns since the start of the run, lines."""
SubSlice = list[RawBank]


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """Settings of a demo: n simulated sub-slices, feeders and the node; rate: sub-slices per second, None: usual."""

    sample: SimulatedSample
    n: int
    chain: str
    feeders: int
    rate: float | None
    backend: str
    output: Path


def run_stream_demo(scratch: Path, plan: StreamPlan) -> dict[str, Any]:
    """Run everything; returns the summary. Raises DemoError."""
    chain = installed_chain(plan.chain)
    streaming = chain.with_lines(chain.load_trigger(None)).streaming
    assert streaming is not None
    n_slices = -(-plan.n // SUB_SLICES)
    stream = scratch / "stream.mep"
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("simulating sub-slices", total=plan.n)
        made: list[SubSlice] = []
        for banks in islice(plan.sample.events(plan.n), plan.n):
            made.append([bank for bank in banks if chain.readout.source_of(bank) is not None])
            progress.advance(bar)
        stream.write_bytes(b"".join(_slice(chain, streaming, made, number) for number in range(n_slices)))
        true = windows_in_one_slice(chain, streaming, made)
        if not true:
            raise DemoError(f"no window in {plan.n} sub-slices: expected a longer stream (-n)")
        decided, status, is_killed = _send(scratch, plan, stream, n_slices, SUB_SLICES + streaming.margins, progress)
    found = [window for decision in decided for window in windows_of(decision)]
    paths = sorted(plan.output.glob(f"{status['node']}_{status['session']}_*accepted*.mdf"))
    records = [window for path in paths for window in _records(path)]
    length = SUB_SLICES * streaming.sub_slice_ns
    missing, more = Counter(true) - Counter(found), Counter(found) - Counter(true)
    kept = join_windows(records)
    covered = {
        (start, end, lines)
        for start, end, lines in true
        if any(each.start_ns <= start and end <= each.end_ns for each in kept)
    }
    fragments = status["accounting"]["fragments"]
    right = (Counter(found) & Counter(true)).elements()
    missing_hits = hits_missing(kept, _times_of_hits(streaming, made))
    return {
        "candidates": len(found),
        "found_at_borders": sum(start // length != (end - 1) // length for start, end, _ in right),
        "lost": len(missing.keys() | (set(true) - covered)),
        "doubled": sum(more.values()) + len(records) - len({record.id for record in records}),
        "hits_lost": int(missing_hits.clip(0).sum()),
        "hits_doubled": int((-missing_hits).clip(0).sum()),
        "slices": n_slices,
        "sub_slice_ns": streaming.sub_slice_ns,
        "feeders": plan.feeders,
        "killed": int(is_killed),
        "fragments_sent_again": fragments["received"] - fragments["built"],
        "kept_ns": sum(window.end_ns - window.start_ns for window in kept),
        "hits": sum(len(window.times) for window in kept),
        "records": len(records),
        "tck": status["tck"],
        "files": {str(path): path.stat().st_size for path in paths},
        "accounting": status["accounting"],
        "accounting_closes": closes(status["accounting"])
        and status["events"]["processed"] == n_slices * (SUB_SLICES + streaming.margins),
    }


def windows_in_one_slice(chain: TriggerChain, streaming: Streaming, made: Sequence[SubSlice]) -> list[Window]:
    """The windows of accepted sub-slices of a stream that is not cut."""
    empty = _empty(made)
    events = [*[empty] * streaming.margin_before, *made, *[empty] * streaming.margin_behind]
    mep = encode_mep(chain, events)
    limits = BatchLimits(events=len(events), meps=1, input_bytes=mep.data.nbytes, rows=len(mep.fragments))
    backend = create_backend("cpu", chain.kernels, threads=1)
    engine = chain.create_engine(backend, chain.load_geometry(None), chain.load_trigger(None), limits)
    try:
        (batch,) = OfflineRunner(engine, workspaces=1).run([mep])
        output = batch.workspace.output.copy()
        kept = (output.accepted != 0) & (output.flags & engine.flags.errors == 0)
    finally:
        engine.close()
    content = output.lists[chain.windows]
    of = np.repeat(np.arange(len(events), dtype=np.int64), content.counts)
    origin = (of - streaming.margin_before) * streaming.sub_slice_ns
    times = [np.maximum(origin + content.values[name].astype(np.int64), 0) for name in (START, END)]
    return _rows(*(each[kept[of]] for each in (*times, content.values[LINES])))


def windows_of(decision: SliceDecision) -> list[Window]:
    """The windows that a node published. Raises DemoError where they did not fit."""
    content = decision.time_windows()
    if content is None:
        raise DemoError(f"the windows of slice {decision.mep} did not fit into its decision message")
    return _rows(*(content.values[name] for name in (START, END, LINES)))


def _rows(*columns: Any) -> list[Window]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _records(path: Path) -> list[TimeWindow]:
    found = [decode_window(record.banks()) for record in iter_records(path.read_bytes())]
    return [window for window in found if window is not None]


def _times_of_hits(streaming: Streaming, made: Sequence[SubSlice]) -> NDArray[np.int64]:
    """The times of all hits of a stream in ns, ascending."""
    hit, unit = streaming.hit, Fraction(streaming.hit.unit_ns)
    times = [np.empty(0, np.int64)]
    for number, banks in enumerate(made):
        for bank in banks:
            if streaming.subdetectors is None or subdetector_of(bank.source_id) in streaming.subdetectors:
                rows = np.frombuffer(bank.payload, np.uint8).reshape(-1, hit.size)[:, hit.time_offset :]
                ticks = np.ascontiguousarray(rows[:, : np.dtype(hit.time_type).itemsize]).view(hit.time_type)[:, 0]
                in_ns = ticks.astype(np.int64) * unit.numerator // unit.denominator
                times.append(number * streaming.sub_slice_ns + in_ns)
    return np.sort(np.concatenate(times))


def hits_missing(windows: Sequence[TimeWindow], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Hits of the stream in the time of each window less those that the window has; i64[windows]."""
    edges = np.array([(window.start_ns, window.end_ns) for window in windows], np.int64).reshape(-1, 2)
    begin, end = np.searchsorted(times, edges).T
    return np.array(end - begin - [len(window.times) for window in windows], np.int64)


def _empty(made: Sequence[SubSlice]) -> SubSlice:
    return [RawBank(bank.type, bank.version, bank.source_id, memoryview(b"")) for bank in made[0]]


def _slice(chain: TriggerChain, streaming: Streaming, made: Sequence[SubSlice], number: int) -> bytes:
    """Slice `number` as a MEP: its sub-slices between those of its neighbours; empty ones outside of the stream."""
    first = number * SUB_SLICES - streaming.margin_before
    empty = _empty(made)
    events = [made[i] if 0 <= i < len(made) else empty for i in range(first, first + SUB_SLICES + streaming.margins)]
    packed = encode_mep(chain, events, number)
    return mep_files.encode_mep([bytes(packed.data[at : at + size]) for _, at, size in packed.fragments])


def _send(
    scratch: Path, plan: StreamPlan, stream: Path, n_slices: int, n_events: int, progress: Progress
) -> tuple[list[SliceDecision], dict[str, Any], bool]:
    """Send the slices to a node; returns its decisions, its status, and whether a feeder was killed on the way."""
    ports = free_ports(4)
    data, control, decisions = (f"tcp://127.0.0.1:{port}" for port in ports[:3])
    config = scratch / "node.toml"
    config.write_text(
        f"""
[node]
name = "{new_node_name()}"
[network]
data = "{data}"
control = "{control}"
decisions = "{decisions}"
[builder]
min_feeders = {plan.feeders}
mep_timeout_ms = 60000
overtaken_after_ms = 60000
evict_after_ms = 60000
[pipeline]
backend = "{plan.backend}"
[trigger]
chain = {json.dumps(plan.chain)}
[output]
directory = {json.dumps(str(plan.output.resolve()))}
[http]
port = {ports[3]}
[log]
level = "warning"
format = "console"
"""
    )
    rate = plan.rate if plan.rate is not None else n_slices * n_events / SECONDS
    with contextlib.ExitStack() as stack:
        context = stack.enter_context(zmq.Context())
        subscriber = stack.enter_context(context.socket(zmq.SUB))
        subscriber.set(zmq.LINGER, 0)
        subscriber.set(zmq.RCVHWM, 0)
        subscriber.subscribe(b"")
        subscriber.connect(decisions)
        node = stack.enter_context(child("serve", "--config", str(config)))
        url = f"http://127.0.0.1:{ports[3]}"
        wait_until_running(node, url)
        said = stack.enter_context((scratch / "feeders").open("w+"))

        def start(i: int) -> subprocess.Popen[bytes]:
            return stack.enter_context(
                child(
                    *("replay", str(stream), "--to", data, "--control", control, "--part", f"{i}/{plan.feeders}"),
                    *("--chain", plan.chain, "--run", str(RUN), "--rate", str(rate)),
                    stderr=said,
                )
            )

        senders = [start(i) for i in range(1, plan.feeders + 1)]
        bar = progress.add_task("slices decided", total=n_slices)
        found: list[SliceDecision] = []
        last = time.monotonic()
        is_killed = False
        try:
            while len(found) < n_slices or any(sender.poll() is None for sender in senders):
                if node.poll() is not None:
                    raise DemoError(f"the node ended early with exit code {node.returncode}")
                if failed := [sender.returncode for sender in senders if sender.poll() not in (None, 0)]:
                    raise DemoError(f"a feeder ended with exit code {failed[0]}")
                if not is_killed and 3 * len(found) >= n_slices and senders[0].poll() is None:
                    senders[0].kill()
                    senders[0].wait()
                    senders[0], is_killed = start(1), True
                if time.monotonic() - last > STALL_SECONDS:
                    raise DemoError(f"no decision for {STALL_SECONDS:.0f} s after {len(found)} of {n_slices} slices")
                if subscriber.poll(100):
                    found += [each for each in decode_decisions(subscriber.recv()) if isinstance(each, SliceDecision)]
                    last = time.monotonic()
                    progress.update(bar, completed=len(found))
        except DemoError:
            said.seek(0)
            progress.console.print(said.read(), markup=False, highlight=False)
            raise
        status = json.loads(get(f"{url}/status"))
        node.send_signal(signal.SIGTERM)
        if exit_code := node.wait(STOP_SECONDS):
            raise DemoError(f"the node ended with exit code {exit_code}")
    return found, status, is_killed


def show_stream(result: dict[str, Any]) -> None:
    """Print the summary in lines of at most 80 columns; each path has its own line."""
    of_stream = result["slices"] * SUB_SLICES * result["sub_slice_ns"]
    span = f"{of_stream / 1e6:.1f} ms" if of_stream >= 1_000_000 else f"{of_stream / 1e3:.1f} us"
    lines = [
        "",
        f"{result['feeders']} feeders sent {span} of hits over TCP, in {result['slices']} slices.",
        "One of them was killed on the way and started again."
        if result["killed"]
        else "None was killed: they ended early.",
        "",
        f"  windows         {result['candidates']}, {result['found_at_borders']} of them across a border of slices",
        f"  lost            {result['lost']} windows of the stream without cuts, {result['hits_lost']} hits",
        f"  doubled         {result['doubled']} windows, {result['hits_doubled']} hits",
        f"  sent again      {result['fragments_sent_again']} fragments",
        f"  kept            {result['hits']} hits, {result['kept_ns'] / of_stream:.1%} of the time",
        f"  decided by      trigger configuration {result['tck']}",
        "",
        "The hits in the windows, for hltnode inspect or hltnode.open:",
        "",
        *(f"  {path}" for path in result["files"]),
        "",
    ]
    echo("\n".join(lines))
    fragments = result["accounting"]["fragments"]
    if result["accounting_closes"]:
        echo(f"All {fragments['received']} fragments are accounted for: the accounting closes.")
    else:
        echo(f"The accounting DOES NOT CLOSE: {fragments}")
