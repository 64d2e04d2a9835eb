"""What the node has taken from the connections of one socket, written by the thread that receives."""

import queue
from collections.abc import Callable

import zmq

from hltnode.daemon._native import ConnectionTally

# A message that CURVE has encrypted: name of the command, nonce, MAC and flags.
_CURVE_OVERHEAD = 33


class ReceivedInput:
    """Messages and bytes (as they were on the wire) by descriptor of the connection.

    One thread writes, `InputWatch` reads in another.
    """

    def __init__(self, *, encrypted: bool = False) -> None:
        self.tally = ConnectionTally(_CURVE_OVERHEAD if encrypted else 0)
        self._reported: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.ask: Callable[[], None] | None = None
        """Has the receiving thread look whether there is something to receive; callable from any thread."""

    def take(self, frame: zmq.Frame, nbytes: int, parts: int) -> bool:
        """Note a received message: its last frame, the bytes and the number of all; False if its connection has been
        refused, and the message is to be dropped."""
        descriptor = _descriptor(frame)
        # None: a peer that speaks ZMTP 1 or 2. Its connection ends as one that delivers nothing.
        return descriptor is None or self.tally.take(descriptor, nbytes, parts)

    def report(self, frame: zmq.Frame) -> None:
        """Have the connection of a frame ended, because no feeder and no operator would send it."""
        if (descriptor := _descriptor(frame)) is not None:
            self._reported.put(descriptor)

    def reported(self) -> set[int]:
        """Descriptors that have been reported since the last call; from the thread of the limiter."""
        descriptors = set()
        while not self._reported.empty():
            descriptors.add(self._reported.get())
        return descriptors


def _descriptor(frame: zmq.Frame) -> int | None:
    """Descriptor of the connection that a frame came from; None if it has no properties."""
    try:
        descriptor = frame.get(zmq.SRCFD)
    except zmq.ZMQError:
        return None
    return descriptor if type(descriptor) is int else None
