"""Account of the messages that the node has received on each connection of one socket."""

import queue
from collections.abc import Callable

import zmq

from hltnode.daemon._native import ConnectionTally

# Bytes that CURVE adds to a message: name of the command, nonce, MAC and flags.
_CURVE_OVERHEAD = 33


class ReceivedInput:
    """Messages and wire bytes, by descriptor of the connection.

    The receiving thread writes; `InputWatch` reads in the thread of the limiter.
    """

    def __init__(self, *, encrypted: bool = False) -> None:
        self.tally = ConnectionTally(_CURVE_OVERHEAD if encrypted else 0)
        self._reported: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.ask: Callable[[], None] | None = None
        """Has the receiving thread check for input. It may be called from any thread."""

    def take(self, frame: zmq.Frame, nbytes: int, parts: int) -> bool:
        """Count a received message: its last frame, the number of its bytes and of its parts.

        False if its connection was refused: then the caller must drop the message.
        """
        descriptor = _descriptor(frame)
        # None: a peer with ZMTP 1 or 2. The limiter ends its connection as an idle one.
        return descriptor is None or self.tally.take(descriptor, nbytes, parts)

    def report(self, frame: zmq.Frame) -> None:
        """Report a frame that no feeder and no operator sends; the limiter ends its connection."""
        if (descriptor := _descriptor(frame)) is not None:
            self._reported.put(descriptor)

    def reported(self) -> set[int]:
        """Descriptors reported since the last call. The thread of the limiter calls it."""
        descriptors = set()
        while not self._reported.empty():
            descriptors.add(self._reported.get())
        return descriptors


def _descriptor(frame: zmq.Frame) -> int | None:
    """Descriptor of the connection of a frame; None if the frame has no properties."""
    try:
        descriptor = frame.get(zmq.SRCFD)
    except zmq.ZMQError:
        return None
    return descriptor if type(descriptor) is int else None
