"""Time and missing sources of each decision, from the monitoring sample of each node."""

import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import zmq

from hltnode.protocol.transport.decisions import decode_decision


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision: its time of arrival, and its data about the MEP."""

    time: float
    run: int
    mep: int
    reason: str
    missing: frozenset[int]


@dataclass(slots=True)
class DecisionLog:
    """The decisions of all nodes, by node, in order of arrival."""

    of_node: dict[str, list[Decision]] = field(default_factory=lambda: defaultdict(list))

    def add(self, node: str, decision: Decision) -> None:
        """Record a decision."""
        self.of_node[node].append(decision)

    @property
    def last_time(self) -> float:
        """Time of the last decision; 0 without decisions."""
        return max((decisions[-1].time for decisions in self.of_node.values() if decisions), default=0.0)

    def highest_mep(self, run: int) -> int:
        """The highest decided MEP id of a run; -1 without decisions."""
        # The last hundred of each node suffice: MEPs are decided nearly in order.
        recent = (d.mep for decisions in self.of_node.values() for d in decisions[-100:] if d.run == run)
        return max(recent, default=-1)

    def first_after(self, nodes: tuple[str, ...], begin: float) -> float | None:
        """Time of the first decision of any of the nodes after a time."""
        times = []
        for node in nodes:
            decisions = self.of_node[node]
            at = bisect_left(decisions, begin, key=lambda decision: decision.time)
            if at < len(decisions):
                times.append(decisions[at].time)
        return min(times, default=None)

    def find(self, node: str, run: int, mep: int, begin: float, end: float) -> list[Decision]:
        """The decisions of a MEP in a time span: one, or more if the MEP came back to a node."""
        return [d for d in self.of_node[node] if d.run == run and d.mep == mep and begin <= d.time <= end]

    def nearest_time(self, node: str, run: int, mep: int) -> float | None:
        """The time of the decision of the nearest MEP, for a MEP whose decision was not received."""
        near = [d for d in self.of_node[node] if d.run == run]
        return min(near, key=lambda d: abs(d.mep - mep)).time if near else None

    def times_around(self, node: str, run: int, mep: int, begin: float, end: float) -> tuple[float, float] | None:
        """Times of the decisions of neighbouring MEPs, for a decision that was lost with its node or left out of the
        sample."""
        near = [d for d in self.of_node[node] if d.run == run and begin <= d.time <= end]
        before = max((d for d in near if d.mep < mep), key=lambda d: d.mep, default=None)
        after = min((d for d in near if d.mep > mep), key=lambda d: d.mep, default=None)
        times = [d.time for d in (before, after) if d is not None]
        return (min(times), max(times)) if times else None


class DecisionReader:
    """Reads the samples of some nodes, by name, from `start` to `stop`."""

    def __init__(self, endpoints: Mapping[str, str], log: DecisionLog) -> None:
        self._endpoints = dict(endpoints)
        self._log = log
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="decision-reader")

    def start(self) -> None:
        """Subscribe and read."""
        self._thread.start()

    def stop(self) -> None:
        """Read queued messages, then end."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        with zmq.Context() as context:
            poller = zmq.Poller()
            nodes: dict[zmq.Socket[bytes], str] = {}
            for node, endpoint in self._endpoints.items():
                socket = context.socket(zmq.SUB)
                socket.setsockopt(zmq.LINGER, 0)
                socket.setsockopt(zmq.RCVHWM, 0)
                socket.setsockopt(zmq.RECONNECT_IVL, 20)
                socket.subscribe(b"")
                socket.connect(endpoint)
                poller.register(socket, zmq.POLLIN)
                nodes[socket] = node
            while (ready := poller.poll(200)) or not self._ending.is_set():
                for socket, _ in ready:
                    decision = decode_decision(socket.recv())
                    taken = Decision(
                        time.monotonic(),
                        decision.run,
                        decision.mep,
                        decision.close_reason,
                        frozenset(decision.missing_sources),
                    )
                    self._log.add(nodes[socket], taken)
            for socket in nodes:
                socket.close()
