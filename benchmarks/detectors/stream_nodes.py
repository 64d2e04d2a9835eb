"""Nodes of the streaming chains against their kernels alone: processor time of all threads for a sub-slice.

The node is a separate process on one thread with the default sequence, lines and output; `hltnode stream`, another
process, feeds it over TCP, each source on a connection of its own. A slot holds one slice, so each batch is one. A
stream of `mu3e` in real time is more than one thread computes, so it falls behind. One of `km3net` falls behind on a
busy machine only. The baseline computes the same slices alone, in this process, before and after the node. The first
and the last quarter of the slices are not measured.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.detectors.stream_growth import km3net_sub_slices, mu3e_sub_slices
from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from benchmarks.readout.real_readout import (
    AFTER_START_SECONDS,
    MIB,
    process,
    seconds_by_kind,
    wait_until_it_runs,
    when_processed,
)
from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_slices
from hltnode.processing.km3net.chain import CHAIN as KM3NET
from hltnode.processing.km3net.offline.simulation import stream as km3net_stream
from hltnode.processing.mu3e.chain import CHAIN as MU3E
from hltnode.processing.mu3e.offline.simulation import stream as mu3e_stream

TARGET = 1.25
"""Most processor time of a node relative to its kernels."""
RUNS = 2
SUB_SLICES = 510
"""Of a slice, without its margins: one on each side for both chains."""
SLICES = 4
"""Simulated slices, which the stream repeats."""
FED = {"km3net": 800, "mu3e": 40}
"""Number of slices for the node."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Processor time for a sub-slice in microseconds: of the kernels alone, and of the node by kind of thread."""

    kernels: float
    node: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """Time of the node / that of the kernels."""
        return sum(self.node.values()) / self.kernels


def run(_: Path) -> Iterator[Result]:
    """A row for each chain: medians over the runs; the ratio is target / measured, and 1 reaches the target."""
    n = SLICES * SUB_SLICES + 2
    for chain, banks in (
        (KM3NET, km3net_sub_slices(km3net_stream.Conditions(), n)),
        (MU3E, mu3e_sub_slices(mu3e_stream.Conditions(), n)),
    ):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            meps = list(encode_slices(chain, banks, SUB_SLICES))
            limits = BatchLimits(events=meps[0].n_events, input_bytes=16 * MIB, rows=64)
            alone = ProfiledSequence(None, None, limits, chain=chain)
            turns = []
            for turn in range(RUNS):
                before = _kernels_us(alone, meps)
                node = _node_us(folder / str(turn), chain.name, meps[0].n_events)
                turns.append(Turn((before + _kernels_us(alone, meps)) / 2, node))
            yield from results(chain.name, turns)


def results(name: str, turns: Sequence[Turn]) -> Iterator[Result]:
    """The rows of one chain."""
    kernels = statistics.median(turn.kernels for turn in turns)
    whole = statistics.median(sum(turn.node.values()) for turn in turns)
    ratio = statistics.median(turn.ratio for turn in turns)
    baseline = f"kernels alone: {kernels:,.1f} us"
    yield Result(f"node, {name}", whole, "us/sub-slice", baseline, TARGET / ratio, 1.0)
    for kind in turns[0].node:
        used = statistics.median(turn.node[kind] for turn in turns)
        yield Result(f"{name}: {kind}", used, "us/sub-slice", baseline, None)


def summary(results: Sequence[Result]) -> dict[str, float]:
    """Time of a node / that of its kernels, by chain."""
    return {
        result.name.removeprefix("node, "): TARGET / result.ratio
        for result in results
        if result.name.startswith("node, ") and result.ratio
    }


def _kernels_us(alone: ProfiledSequence, meps: Sequence[EncodedMep]) -> float:
    return statistics.median(alone.throughput([*meps] * 4).cpu_us for _ in range(3))


def _node_us(folder: Path, chain: str, n_events: int) -> dict[str, float]:
    """Processor time of a node for a sub-slice, by kind of thread (us)."""
    data, control, decisions, http = free_ports(4)
    folder.mkdir()
    config = folder / "node.toml"
    config.write_text(f"""
[network]
data = "tcp://127.0.0.1:{data}"
control = "tcp://127.0.0.1:{control}"
decisions = "tcp://127.0.0.1:{decisions}"
[builder]
mep_timeout_ms = 60000
feeder_timeout_ms = 60000
max_mep_bytes = {16 * MIB}
[pipeline]
slots = 3
slot_bytes = {16 * MIB}
max_events = 1024
backend = "cpu"
threads = 1
[trigger]
chain = "{chain}"
[output]
directory = "{folder / "output"}"
[http]
port = {http}
""")
    to = ("--to", f"tcp://127.0.0.1:{data}", "--control", f"tcp://127.0.0.1:{control}", "--chain", chain)
    fed = FED[chain] * n_events
    with process("serve", "--config", config) as node:
        wait_until_it_runs(node, http)
        time.sleep(AFTER_START_SECONDS)
        with process("stream", *to, "--sub-slices", SUB_SLICES, "--slices", SLICES) as feeder:
            before = when_processed(http, node, feeder, fed // 4)
            after = when_processed(http, node, feeder, fed * 3 // 4)
    used = seconds_by_kind(node.pid, before[1], after[1])
    return {kind: seconds / (after[0] - before[0]) * 1e6 for kind, seconds in used.items()}
