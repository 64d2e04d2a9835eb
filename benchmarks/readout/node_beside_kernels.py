"""A node against its kernels alone: processor time of all threads for an event.

The node is a separate process on one thread; another process feeds it over TCP. The kernels compute the same events in
this process, before and after the node. The first and the last quarter of the events are not measured.
"""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from benchmarks.readout.real_readout import (
    AFTER_START_SECONDS,
    MIB,
    cpu_seconds,
    process,
    seconds_by_kind,
    wait_until_it_runs,
    when_processed,
)
from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.processing.framework.offline_runner import EncodedMep

TARGET = 1.25
"""Most processor time of a node relative to its kernels."""
RUNS = 2
RESTING = 0.05
"""Most part of a processor that a node takes when its start is over: on a busy machine it lasts longer than usual."""
_CONFIG = """
[network]
data = "tcp://127.0.0.1:{data}"
control = "tcp://127.0.0.1:{control}"
decisions = "tcp://127.0.0.1:{decisions}"
[builder]
mep_timeout_ms = 60000
feeder_timeout_ms = 60000
max_mep_bytes = {bytes}
[pipeline]
slots = 3
slot_bytes = {bytes}
max_events = {max_events}
backend = "cpu"
threads = 1
[trigger]
chain = "{chain}"
{trigger}
[output]
directory = "{output}"
[http]
port = {http}
"""


@dataclass(frozen=True, slots=True)
class Turn:
    """Processor time for an event in microseconds: of the kernels alone, and of the node by kind of thread."""

    kernels: float
    node: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """Time of the node / that of the kernels."""
        return sum(self.node.values()) / self.kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredNode:
    """What a node computes, and the arguments of the command that feeds it.

    trigger: line of the section `trigger`, such as the file of the lines. fed: number of events that are fed at least.
    """

    chain: str
    max_events: int
    trigger: str = ""
    feed: tuple[object, ...]
    fed: int

    def turns(self, alone: ProfiledSequence, meps: Sequence[EncodedMep], folder: Path) -> list[Turn]:
        """Measure the node and its kernels in turn, on the same events."""
        found = []
        for turn in range(RUNS):
            before = _kernels_us(alone, meps)
            node = self._node_us(folder / f"turn_{turn}")
            found.append(Turn((before + _kernels_us(alone, meps)) / 2, node))
        return found

    def _node_us(self, folder: Path) -> dict[str, float]:
        """Processor time of a node for an event, by kind of thread (us)."""
        data, control, decisions, http = free_ports(4)
        folder.mkdir(parents=True)
        config = folder / "node.toml"
        config.write_text(
            _CONFIG.format(
                data=data,
                control=control,
                decisions=decisions,
                http=http,
                bytes=16 * MIB,
                max_events=self.max_events,
                chain=self.chain,
                trigger=self.trigger,
                output=folder / "output",
            )
        )
        to = ("--to", f"tcp://127.0.0.1:{data}", "--control", f"tcp://127.0.0.1:{control}", "--chain", self.chain)
        command, *options = self.feed
        with process("serve", "--config", config) as node:
            wait_until_it_runs(node, http)
            time.sleep(AFTER_START_SECONDS)
            _wait_until_it_rests(node.pid)
            with process(command, *to, *options) as feeder:
                before = when_processed(http, node, feeder, self.fed // 4)
                after = when_processed(http, node, feeder, self.fed * 3 // 4)
        if after[0] == before[0]:
            raise RuntimeError("the node processed its input between two readings of its metrics; feed it more")
        used = seconds_by_kind(node.pid, before[1], after[1])
        return {kind: seconds / (after[0] - before[0]) * 1e6 for kind, seconds in used.items()}


def _wait_until_it_rests(pid: int) -> None:
    used = cpu_seconds(pid)
    while True:
        time.sleep(1.0)
        before, used = used, cpu_seconds(pid)
        if used - before <= RESTING:
            return


def _kernels_us(alone: ProfiledSequence, meps: Sequence[EncodedMep]) -> float:
    return statistics.median(alone.throughput([*meps] * 4).cpu_us for _ in range(3))


def node_rows(name: str, unit: str, turns: Sequence[Turn]) -> Iterator[Result]:
    """The node and each kind of its threads: medians over the turns. The ratio is target / measured."""
    kernels = statistics.median(turn.kernels for turn in turns)
    whole = statistics.median(sum(turn.node.values()) for turn in turns)
    ratio = statistics.median(turn.ratio for turn in turns)
    baseline = f"kernels alone: {kernels:,.1f} us"
    yield Result(f"node, {name}", whole, unit, baseline, TARGET / ratio, 1.0)
    for kind in turns[0].node:
        used = statistics.median(turn.node[kind] for turn in turns)
        yield Result(f"  {name}: {kind}", used, unit, baseline, None)


def ratios(found: Sequence[Result]) -> dict[str, float]:
    """Time of the node / that of its kernels, by the name in the row."""
    return {
        row.name.removeprefix("node, "): TARGET / row.ratio
        for row in found
        if row.name.startswith("node, ") and row.ratio
    }
