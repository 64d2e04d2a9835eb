"""Real nodes, and the supervising feeder in this process, with faults at chosen times."""

import asyncio
import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import uvloop
import zmq

from hltnode.client.mep import FeedMep
from hltnode.client.sockets import FeederKeys
from hltnode.daemon.commands.demo import samples_of
from hltnode.daemon.commands.farm.local.nodes import LocalNode, NodeSettings, wait_until_running
from hltnode.daemon.commands.farm.local.processes import HLTNODE, Processes
from hltnode.daemon.event_building.accounting import closes
from hltnode.daemon.farm_model.description import FaultKind
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.daemon.replay.pacing import Pace, Pacer
from hltnode.daemon.replay.replaying import Replay, Replaying
from hltnode.daemon.replay.single_node import FeedReport
from hltnode.daemon.replay.site import Site, make_identities
from hltnode.processing.selection.trigger_chain import installed_chain
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.transport.decisions import decode_decisions
from tests.daemon.fakes import RUN, synthetic_meps
from tests.farm.paced_node import FACTOR, TIMES

EVENTS_PER_MEP = 8
SLOTS = 3
MEPS_OF_A_SLOT = 4
CHAIN = "lhcb"
"""Its readout knows the sources; no kernel of it runs."""
SECTIONS = {
    "network": {"max_frame_bytes": 65_536},
    "builder": {"max_mep_bytes": 65_536, "mep_timeout_ms": 20_000},
    "pipeline": {
        "slots": SLOTS,
        "slot_bytes": 1 << 20,
        "max_events": MEPS_OF_A_SLOT * EVENTS_PER_MEP,
        "max_events_per_mep": EVENTS_PER_MEP,
        "flush_deadline_us": 100_000,
    },
}
"""What nodes and model have in common."""
WAITING = {"decisions": {"policy": "wait", "queue": 1}}
"""Nodes that wait for slow subscribers."""
ROOT = Path(__file__).resolve().parents[2]
SERVE = ("/usr/bin/env", f"PYTHONPATH={ROOT}", HLTNODE[0], "-m", "tests.farm.paced_node")
RETURN_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault of one node: its start after the first MEP, and its duration, in seconds. factor: for a slow node."""

    kind: FaultKind
    node: int
    at: float
    seconds: float
    factor: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A subscriber of decisions does not read: start after the first MEP, and duration, in seconds.

    queue: messages that each node could send meanwhile; known after a run.
    """

    at: float
    seconds: float
    queue: int = 0


@dataclass(slots=True)
class RealRun:
    """What a run was. latencies: seconds from the time of each MEP to the message with its decision, by MEP."""

    report: FeedReport
    latencies: dict[int, float]
    struck: list[Fault]
    """The faults with the times that they really had."""
    service: list[tuple[int, float]]
    """Events and seconds of the batches of all nodes."""
    credits: int
    """MEPs that the nodes allowed, in their last sessions."""
    event_bytes: float
    accounting_closes: bool
    meps_of_node: list[int] = field(default_factory=list)
    paused: Pause | None = None
    """The pause of the second subscriber with the times that it really had."""


class ScheduledPacer(Pacer):
    """Admits MEPs at fixed times, also after a delay: sources do not wait for the farm.

    Args:
        mep_seconds: time from one MEP to the next; 0: as fast as the nodes accept them.
        ready: called before the first MEP, in a thread; the times count from its return.
    """

    def __init__(self, mep_seconds: float, ready: Callable[[], None]) -> None:
        super().__init__(Pace.GREATEST)
        self._mep_seconds, self._ready = mep_seconds, ready
        self.first_s: float | None = None
        """Time of the first MEP."""
        self.begun = threading.Event()

    async def admit(self, mep: FeedMep) -> None:
        """Wait until the time of the MEP."""
        if self.first_s is None:
            await asyncio.to_thread(self._ready)
            self.first_s = time.monotonic()
            self.begun.set()
        while (left := self.time_of(mep.mep) - time.monotonic()) > 0:
            await asyncio.sleep(left)

    def time_of(self, mep: int) -> float:
        """The time of a MEP; MEP 0 is the first one."""
        assert self.first_s is not None
        return self.first_s + mep * self._mep_seconds


class Decided(threading.Thread):
    """Notes the time of the last decision on each MEP."""

    def __init__(self, endpoints: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self.at: dict[int, float] = {}
        self.nodes: dict[int, str] = {}
        self._endpoints = endpoints
        self._ending = threading.Event()

    def run(self) -> None:
        """Read until the end."""
        with zmq.Context() as context, context.socket(zmq.SUB) as socket:
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.RCVHWM, 0)
            socket.subscribe(b"")
            for endpoint in self._endpoints:
                socket.connect(endpoint)
            while not self._ending.is_set():
                if socket.poll(100):
                    for decision in decode_decisions(socket.recv()):
                        self.at[decision.mep] = time.monotonic()
                        self.nodes[decision.mep] = decision.node

    def end(self) -> None:
        """End the thread."""
        self._ending.set()
        self.join()


class PausingSubscriber(threading.Thread):
    """Reads decisions beside `Decided`, with small buffers, and pauses once.

    The number of messages that the nodes send during the pause is the room of their queues and of all buffers on the
    way.
    """

    def __init__(self, nodes: Sequence[LocalNode], pause: Pause) -> None:
        super().__init__(daemon=True)
        self.paused: Pause | None = None
        self._nodes, self._pause = nodes, pause
        self._first_s = math.inf
        self._received = 0
        self._ending = threading.Event()

    def run(self) -> None:
        """Read until the end."""
        with zmq.Context() as context, context.socket(zmq.SUB) as socket:
            for option, value in ((zmq.LINGER, 0), (zmq.RCVHWM, 1), (zmq.RCVBUF, 4096)):
                socket.setsockopt(option, value)
            socket.subscribe(b"")
            for node in self._nodes:
                socket.connect(node.decisions)
            while not self._ending.is_set():
                if socket.poll(20):
                    socket.recv()
                    self._received += 1
                elif self.paused is None and time.monotonic() >= self._first_s + self._pause.at:
                    self.paused = self._paused(self._first_s)

    def _paused(self, first_s: float) -> Pause:
        begin = time.monotonic()
        time.sleep(self._pause.seconds)
        sent = sum(int(metric(node, "hltnode_decisions_published_total")) for node in self._nodes)
        queue = (sent - self._received) // len(self._nodes)
        return Pause(at=begin - first_s, seconds=time.monotonic() - begin, queue=max(1, queue))

    def note_first(self, first_s: float) -> None:
        """The first MEP is fed."""
        self._first_s = first_s

    def end(self) -> None:
        """End the thread."""
        self._ending.set()
        self.join()


@contextlib.contextmanager
def real_nodes(
    folder: Path, n: int, started: Processes, sections: Mapping[str, dict[str, Any]] = MappingProxyType({})
) -> Iterator[list[LocalNode]]:
    """Nodes with a paced back end, running. sections: of their configuration, beside SECTIONS."""
    nodes = [LocalNode(f"node{i}", folder / f"node{i}", started, SERVE) for i in range(n)]
    for node in nodes:
        node.configure(
            NodeSettings(chain=CHAIN, backend="cpu", threads=1, sections={**SECTIONS, **sections}),
            [each.url for each in nodes],
        )
        node.start()
    wait_until_running(nodes)
    yield nodes


def feed(
    nodes: Sequence[LocalNode], folder: Path, meps: int, mep_seconds: float, ready: Callable[[], None] = lambda: None
) -> tuple[FeedReport, ScheduledPacer]:
    """Feed MEPs by the supervising feeder in this process. Returns its report, and the times of MEPs."""
    path = folder / "events.mep"
    path.write_bytes(
        b"".join(encode_mep(list(mep.mfps.values())) for mep in synthetic_meps(meps, events=EVENTS_PER_MEP))
    )
    packing = Packing(events_per_mep=EVENTS_PER_MEP, max_fragment_bytes=65_536, run=RUN)
    stream = meps_of_files([path], installed_chain(CHAIN).readout, packing)
    pacer = ScheduledPacer(mep_seconds, ready)
    memory = folder / "assignments" if len(nodes) > 1 else None
    site = Site.of(
        [node.data for node in nodes], [node.control for node in nodes], None, None, memory, FeederKeys(), [RUN]
    )
    replay = Replay(
        stream,
        make_identities(stream, "farm", 1, None, CHAIN),
        site,
        Pace.GREATEST,
        max_pause_s=0.0,
        faults=None,
        seed=1,
        ends_by_signal=False,
        pacer=pacer,
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        report, _ = runner.run(Replaying(replay, lambda _state: None).run())
    assert report is not None
    return report, pacer


def wait_for(condition: Callable[[], Any], seconds: float = RETURN_SECONDS) -> None:
    """Wait for a condition. Raises TimeoutError."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.02)


def metric(node: LocalNode, name: str) -> float:
    """The value of a metric of a node; 0 while it does not answer."""
    try:
        return samples_of(node.metrics()).get(name, 0.0)
    except OSError:
        return 0.0


def has_credits(node: LocalNode) -> bool:
    """Whether a node has allowed the feeder to send, since it started: it may have used these credits already."""
    return metric(node, "hltnode_credits_granted_total") > 0


def strike(nodes: Sequence[LocalNode], fault: Fault, first_s: float, is_fed: threading.Event) -> Fault:
    """Let a fault happen, and return it with its real times. is_fed: set when the feeder has ended."""
    node = nodes[fault.node]
    time.sleep(max(0.0, first_s + fault.at - time.monotonic()))
    begin = time.monotonic()
    if fault.kind is FaultKind.KILL:
        node.kill()
        time.sleep(fault.seconds)
        node.start()
        wait_for(lambda: has_credits(node) or is_fed.is_set())
    elif fault.kind is FaultKind.STOP:
        assert node.process is not None
        node.process.send_signal(signal.SIGSTOP)
        time.sleep(fault.seconds)
        node.process.send_signal(signal.SIGCONT)
    else:
        assert fault.kind is FaultKind.SLOW
        (node.directory / FACTOR).write_text(str(fault.factor))
        time.sleep(fault.seconds)
        (node.directory / FACTOR).unlink()
    return Fault(
        kind=fault.kind,
        node=fault.node,
        at=begin - first_s,
        seconds=time.monotonic() - begin,
        factor=fault.factor,
    )


def run_real(
    folder: Path,
    n_nodes: int,
    meps: int,
    mep_seconds: float,
    faults: Sequence[Fault],
    started: Processes,
    pause: Pause | None = None,
) -> RealRun:
    """Run a farm once. pause: nodes wait for a second subscriber, which pauses."""
    with real_nodes(folder, n_nodes, started, WAITING if pause else {}) as nodes:
        decided = Decided([node.decisions for node in nodes])
        decided.start()
        pausing = PausingSubscriber(nodes, pause) if pause else None
        if pausing is not None:
            pausing.start()
        struck: list[Fault] = []
        threads: list[threading.Thread] = []
        is_fed, is_over = threading.Event(), threading.Event()

        def strike_and_stay(fault: Fault, first_s: float) -> None:
            struck.append(strike(nodes, fault, first_s, is_fed))
            # The kernel kills the node that this thread has started when the thread ends.
            is_over.wait()

        def ready() -> None:
            wait_for(lambda: all(has_credits(node) for node in nodes))
            first_s = time.monotonic()
            if pausing is not None:
                pausing.note_first(first_s)
            for fault in faults:
                threads.append(threading.Thread(target=strike_and_stay, args=(fault, first_s), daemon=True))
                threads[-1].start()

        report, pacer = feed(nodes, folder, meps, mep_seconds, ready)
        is_fed.set()
        wait_for(lambda: len(struck) == len(faults))
        wait_until_running(nodes)
        wait_for(lambda: len(decided.at) == meps)
        decided.end()
        if pausing is not None:
            wait_for(lambda: pausing.paused is not None)
            pausing.end()
        statuses = [node.status() for node in nodes]
        credits = sum(int(metric(node, "hltnode_credits_granted_total")) for node in nodes)
        service = [
            (int(events), int(ns) * 1e-9)
            for node in nodes
            for events, ns in (line.split() for line in (node.directory / TIMES).read_text().splitlines())
        ]
        for node in nodes:
            node.stop()
        is_over.set()
        for thread in threads:
            thread.join()
    size = (folder / "events.mep").stat().st_size
    return RealRun(
        report=report,
        latencies={mep: at - pacer.time_of(mep) for mep, at in decided.at.items()},
        struck=sorted(struck, key=lambda fault: fault.at),
        service=service,
        credits=credits,
        event_bytes=size / (meps * EVENTS_PER_MEP),
        accounting_closes=all(status is not None and closes(status["accounting"]) for status in statuses),
        meps_of_node=[sum(name == node.name for name in decided.nodes.values()) for node in nodes],
        paused=pausing.paused if pausing else None,
    )


def fitted_service(service: Sequence[tuple[int, float]]) -> dict[str, float]:
    """Overhead, rate and spread of measured times of batches, for the section `service` of a description."""
    events, seconds = np.array(service, np.float64).T
    if len(set(events)) > 1:
        per_event, overhead = np.polyfit(events, seconds, 1)
    else:
        per_event, overhead = seconds.mean() / events[0], 0.0
    per_event, overhead = max(1e-9, float(per_event)), max(0.0, float(overhead))
    expected = overhead + per_event * events
    return {
        "events_per_second": 1.0 / per_event,
        "overhead_seconds": overhead,
        "spread": float((seconds / expected).std()),
    }
