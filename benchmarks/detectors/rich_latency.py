"""Latency of a node of the chain `na62_rich` beside the bare loop: from the first packet of 256 events to the decision.

The bare loop is one C++ thread: UDP in, the same kernels on batches of 256 events, UDP out (`rich_bare_loop`). The node
is `hltnode serve` in latency mode, with MEPs of 256 events and decisions first. Both get the same packets from the same
generator at the same rate, in turn. The 16 packets of a batch leave together, as boards send them at the full rate of
the experiment: 256 events take 0.15 ms there. Both count from the end of the system call that received the first packet
to the end of the send.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.detectors.rich_bare_loop import compile_command
from benchmarks.measure import Result
from benchmarks.readout.real_readout import MIB, process
from benchmarks.readout.udp import EVENTS_PER_PACKET, compiled, rich_burst
from benchmarks.service.latency import MS, WHOLE, Counted, ServedNode
from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.daemon.common.vocabulary import MepStage
from hltnode.processing.na62.offline.simulation.events import Conditions
from hltnode.protocol.na62.rich_banks import RICH_SOURCE

BATCH_EVENTS = 256
PACKETS = BATCH_EVENTS // EVENTS_PER_PACKET
BATCHES_PER_SECOND = 100
BURSTS, TURNS = 6, 3
"""Bursts of a turn; one takes a second. One more is not measured."""
END_SECONDS = 10.0
TARGET_P50_RATIO, TARGET_P99_RATIO = 2.0, 4.0
TARGET_P99_MS = 1.0
LOOP, NODE = "bare loop", "node"


@dataclass(frozen=True, slots=True)
class Turn:
    """Latencies of the bare loop in ms, and the times of a node in the same turn."""

    loop: Sequence[float]
    node: dict[str, Counted]

    def ratio(self, percent: float) -> float:
        """The quantile of the node by that of the loop."""
        return self.node[WHOLE].quantile(percent / 100) * MS / float(np.percentile(self.loop, percent))


def run() -> Iterator[Result]:
    """Measure both in turn. Raises RuntimeError if the node or the loop loses a batch."""
    with tempfile.TemporaryDirectory(prefix="hltnode-rich-") as scratch:
        folder = Path(scratch)
        generator = compiled("udp_generator", folder)
        library = folder / "bare_loop.so"
        subprocess.run(compile_command(library), check=True)
        packets = rich_burst(folder / "packets", Conditions(), BATCHES_PER_SECOND * PACKETS)
        data, control, decisions, http, port = free_ports(5)
        with process("serve", "--config", write_config(folder, data, control, decisions, http, port)) as running:
            node = ServedNode(f"tcp://127.0.0.1:{data}", control, http)
            node.wait_for_start(running)
            turns = [
                Turn(
                    loop_latencies(library, generator, packets),
                    node_times(node, generator, packets, port, 1 + turn * (BURSTS + 1)),
                )
                for turn in range(TURNS)
            ]
    yield from results(turns)


def write_config(folder: Path, data: int, control: int, decisions: int, http: int, port: int) -> Path:
    """The configuration of the node."""
    config = folder / "node.toml"
    config.write_text(f"""
[network]
data = "tcp://127.0.0.1:{data}"
control = "tcp://127.0.0.1:{control}"
decisions = "tcp://127.0.0.1:{decisions}"
max_frame_bytes = {MIB}
[udp]
endpoint = "udp://127.0.0.1:{port}"
events_per_packet = {EVENTS_PER_PACKET}
packets_per_mep = {PACKETS}
flush_us = 50000
[[udp.senders]]
address = "127.0.0.1"
sources = [{RICH_SOURCE}]
[builder]
max_mep_bytes = {MIB}
[pipeline]
max_events = {BATCH_EVENTS}
slot_bytes = {2 * MIB}
backend = "cpu"
threads = 1
flush_deadline_us = 200
[latency]
decisions_first = true
serial = true
quiet_collector = true
[trigger]
chain = "na62_rich"
[output]
directory = "{folder / "output"}"
streams = []
[http]
port = {http}
""")
    return config


def send(generator: Path, packets: Path, port: int, bursts: int, first: int = 1) -> None:
    """Send bursts at the rate of the measurement. first: number of the first one; the numbers of a run only rise."""
    rate = BATCHES_PER_SECOND * PACKETS
    numbers = map(str, (port, rate, bursts * rate))
    command = [str(generator), str(packets), "127.0.0.1", *numbers, "127.0.0.1", str(PACKETS), str(first)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def loop_latencies(library: Path, generator: Path, packets: Path) -> list[float]:
    """Latencies of the bare loop in ms."""
    n = (BURSTS + 1) * BATCHES_PER_SECOND
    arguments = (library, "-", str(PACKETS), str(EVENTS_PER_PACKET), str(n))
    command = [sys.executable, "-m", "benchmarks.detectors.rich_bare_loop", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as loop:
        assert loop.stdout is not None
        send(generator, packets, int(loop.stdout.readline()), BURSTS + 1)
        found = json.loads(loop.stdout.read())
    if len(found) < n:
        raise RuntimeError(f"the bare loop computed {len(found)} of {n} batches")
    return [float(each) for each in found[BATCHES_PER_SECOND:]]


def node_times(node: ServedNode, generator: Path, packets: Path, port: int, burst: int) -> dict[str, Counted]:
    """Times of the MEPs of the node. burst: number of the next burst."""
    send(generator, packets, port, 1, burst)
    time.sleep(0.5)
    before, processed = node.times(), node.processed()
    send(generator, packets, port, BURSTS, burst + 1)
    wanted = BURSTS * BATCHES_PER_SECOND * BATCH_EVENTS
    end = time.monotonic() + END_SECONDS
    while (decided := node.processed() - processed) != wanted:
        if time.monotonic() > end:
            raise RuntimeError(f"the node decided {decided} of {wanted} events")
        time.sleep(0.1)
    after = node.times()
    return {stage: after[stage].since(before[stage]) for stage in after}


def results(turns: Sequence[Turn]) -> Iterator[Result]:
    """Quantiles of all turns; ratios are medians over the turns."""
    loop = [each for turn in turns for each in turn.loop]
    node = {stage: _sum([turn.node[stage] for turn in turns]) for stage in turns[0].node}
    n = f"{len(loop)} batches, {BATCHES_PER_SECOND} a second"
    for percent in (50.0, 99.0, 99.9, 100.0):
        yield Result(f"{LOOP}: {_name(percent)}", float(np.percentile(loop, percent)), "ms", n, None)
    for percent in (50.0, 99.0, 99.9, 100.0):
        found = node[WHOLE].quantile(percent / 100) * MS
        target = (f"{TARGET_P99_MS:.0f} ms", TARGET_P99_MS / found, 1.0) if percent == 99.0 else ("", None, None)
        yield Result(f"{NODE}: {_name(percent)}", found, "ms", *target)
    for percent, most in ((50.0, TARGET_P50_RATIO), (99.0, TARGET_P99_RATIO)):
        ratio = statistics.median(turn.ratio(percent) for turn in turns)
        yield Result(f"{NODE}: {_name(percent)}, ratio", ratio, "", LOOP, most / ratio, 1.0)
    for stage in MepStage:
        of = node[stage]
        quantiles = f"p50 {of.quantile(0.5) * MS:.2f}, p99 {of.quantile(0.99) * MS:.2f} ms"
        yield Result(f"{NODE}: {stage}, mean", of.mean * MS, "ms", quantiles, None)


def _name(percent: float) -> str:
    return "greatest" if percent == 100.0 else f"p{percent:g}"


def _sum(of: Sequence[Counted]) -> Counted:
    return Counted(of[0].bounds, np.sum([each.below for each in of], axis=0), sum(each.total for each in of))


def summary(found: Sequence[Result]) -> dict[str, float | None]:
    """The ratios, and the quantiles of both in ms."""
    values = {result.name: result.value for result in found}
    figures: dict[str, float | None] = {f"{each}_ratio": values[f"{NODE}: {each}, ratio"] for each in ("p50", "p99")}
    for of, prefix in ((LOOP, "bare_"), (NODE, "")):
        for percent in (50.0, 99.0, 99.9, 100.0):
            figures[f"{prefix}{_name(percent)}_ms"] = values[f"{of}: {_name(percent)}"]
    return figures
