"""A slow consumer of decisions, in a thread; it records received and missed numbers."""

import random
import threading
import time
from dataclasses import dataclass, field

import zmq

from hltnode.protocol.transport.decisions import MepDecision, decode_decision

# Queued decisions for this consumer: few, so that its pauses cause drops.
HIGH_WATER_MARK = 4


@dataclass(slots=True)
class Numbers:
    """The numbers of the decisions of one session of the node, which start at 0."""

    seen: list[int] = field(default_factory=list)

    @property
    def missed(self) -> int:
        """Missing numbers between the first and the last one."""
        return self.seen[-1] - self.seen[0] + 1 - len(self.seen)


class SlowConsumer:
    """Receives decisions from `start` to `stop`, with random pauses."""

    def __init__(self, endpoint: str, seed: int) -> None:
        self.sessions: list[Numbers] = []
        self.problems: list[str] = []
        self.pauses = 0
        self._last: tuple[int, int] | None = None
        """Run and MEP of the last decision."""
        self._endpoint = endpoint
        self._random = random.Random(seed)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slow-consumer")

    def start(self) -> None:
        """Subscribe and read."""
        self._thread.start()

    def stop(self) -> None:
        """Read queued messages, then end."""
        self._ending.set()
        self._thread.join()

    @property
    def taken(self) -> int:
        """Number of received decisions."""
        return sum(len(session.seen) for session in self.sessions)

    @property
    def missed(self) -> int:
        """Number of missing decisions between the first and the last received one of each session."""
        return sum(session.missed for session in self.sessions)

    def _run(self) -> None:
        with zmq.Context() as context, context.socket(zmq.SUB) as socket:
            socket.setsockopt(zmq.RCVHWM, HIGH_WATER_MARK)
            # ... and small buffers of the kernel.
            socket.setsockopt(zmq.RCVBUF, 4096)
            socket.setsockopt(zmq.LINGER, 0)
            socket.subscribe(b"")
            socket.connect(self._endpoint)
            while True:
                if socket.poll(300):
                    self.take(decode_decision(socket.recv()))
                elif self._ending.is_set():
                    return
                if self._random.random() < 0.01 and not self._ending.is_set():
                    self.pauses += 1
                    time.sleep(self._random.uniform(0.0, 1.0))

    def take(self, decision: MepDecision) -> None:
        """Note a decision. One session may end, and the next one begin, with the number 0."""
        of, before = (decision.run, decision.mep), self._last
        self._last = of
        seen = self.sessions[-1].seen if self.sessions else []
        if seen and decision.seq == seen[-1] and of == before:
            self.problems.append(f"decision {decision.seq} of {decision.node} came twice in one session")
        elif not seen or decision.seq <= seen[-1]:
            self.sessions.append(Numbers())
        self.sessions[-1].seen.append(decision.seq)
