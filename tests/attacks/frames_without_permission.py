"""Well-formed fragments of MEPs to come, sent to the open data port by a peer that is no feeder.

Without tokens 40 of them in a second took the places of MEPs of an honest feeder, and displaced its fragments.
"""

import itertools
import threading
import time
from dataclasses import dataclass

import zmq

from hltnode.protocol.transport.frame_header import encode_frame
from tests.attacks.attacked_node import AttackedNode
from tests.attacks.honest_feeder import HonestFeeder
from tests.daemon.fakes import RUN, SOURCES, synthetic_meps

RATE = 40.0
"""Frames a second."""
AHEAD = 400
"""How far the ids are ahead of the acknowledged MEPs, at most: the next two seconds of the honest feeder."""
ADDRESS = "127.4.0.1"
"""Not that of the feeder: the node refuses it after a while."""


@dataclass(frozen=True, slots=True)
class Displacement:
    """What the frames have cost."""

    sent: int
    received: float
    """Frames of the peer that the node has refused for their token."""
    displaced: float
    """Fragments of the honest feeder that found their place taken, and MEPs that were not complete."""
    honest: float
    """Rate of the honest feeder during the attack, in parts of its rate before."""
    is_alive: bool

    def broken(self) -> list[str]:
        """The promises that do not hold."""
        kept = {
            "no displaced fragment": self.displaced == 0,
            "honest feeder": self.honest >= 0.5,
            "alive": self.is_alive,
        }
        return [promise for promise, holds in kept.items() if not holds]


class Sender:
    """Sends the frames from a thread until `stop`."""

    def __init__(self, port: int, honest: HonestFeeder) -> None:
        self.sent = 0
        self._port, self._honest = port, honest
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """End the connection."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.IMMEDIATE, 1)
            socket.connect(f"tcp://{ADDRESS}:0;127.0.0.1:{self._port}")
            start = time.monotonic()
            for number in itertools.count():
                if self._ending.wait(max(0.0, start + number / RATE - time.monotonic())):
                    return
                self._send(socket, self._honest.acknowledged + number * 7 % AHEAD)

    def _send(self, socket: "zmq.Socket[bytes]", mep: int) -> None:
        source = SOURCES[mep % len(SOURCES)]
        mfp = next(iter(synthetic_meps(1, first=mep, seed=666))).mfps[source]
        try:
            socket.send(encode_frame(mfp, run=RUN, mep_id=mep, source_id=source), zmq.NOBLOCK)
        except zmq.Again:
            return  # the node refuses the address now
        self.sent += 1


def judge_frames_without_permission(attacked: AttackedNode, seconds: float) -> Displacement:
    """Send the frames beside an honest feeder."""
    honest = HonestFeeder(attacked)
    try:
        honest.wait_until_served()
        usual = honest.rate_for(min(3.0, seconds))
        before = _refused(attacked, "unknown_token")
        sender = Sender(attacked.data, honest)
        try:
            rate = honest.rate_for(seconds)
        finally:
            sender.stop()
        displaced = sum(_refused(attacked, reason) for reason in ("duplicate", "mismatch", "late", "no_credit"))
        incomplete = sum(
            attacked.metric(f'hltnode_meps_closed_total{{reason="{reason}"}}')
            for reason in ("timeout", "overtaken", "evicted")
        )
        refused = _refused(attacked, "unknown_token") - before
        return Displacement(sender.sent, refused, displaced + incomplete, rate / usual, attacked.is_alive)
    finally:
        honest.stop()


def _refused(attacked: AttackedNode, reason: str) -> float:
    return attacked.metric(f'hltnode_fragments_rejected_total{{reason="{reason}"}}')
