"""What the node has taken from the connections of one socket, written by the thread that receives."""

import queue
from collections.abc import Callable

import zmq

# ZMTP writes the length of a frame in one byte, or in eight.
_SHORT_FRAME = 255
_SHORT_HEADER, _LONG_HEADER = 2, 9
# A message that CURVE has encrypted: name of the command, nonce, MAC and flags.
_CURVE_OVERHEAD = 33


class ReceivedInput:
    """Messages and bytes (as they were on the wire) by descriptor of the connection.

    One thread writes, `InputWatch` reads them in another: all changes are single operations on dictionaries and
    integers.
    """

    def __init__(self, *, encrypted: bool = False) -> None:
        self._overhead = _CURVE_OVERHEAD if encrypted else 0
        self.messages: dict[int, int] = {}
        self.wire_bytes: dict[int, int] = {}
        self.total = 0
        """Messages of all connections."""
        self.times_empty = 0
        """How often there was nothing to receive."""
        self._refused: frozenset[int] = frozenset()
        self._reported: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.ask: Callable[[], None] | None = None
        """Has the receiving thread look whether there is something to receive; callable from any thread."""

    def take(self, frame: zmq.Frame, nbytes: int, parts: int = 1) -> bool:
        """Note a received message: its last frame, the bytes and the number of all; False if its connection has been
        refused, and the message is to be dropped."""
        descriptor = _descriptor(frame)
        if descriptor is None:
            # A peer that speaks ZMTP 1 or 2. Its connection ends as one that delivers nothing.
            return True
        header = _SHORT_HEADER if nbytes // parts + self._overhead <= _SHORT_FRAME else _LONG_HEADER
        nbytes += parts * (self._overhead + header)
        self.wire_bytes[descriptor] = self.wire_bytes.get(descriptor, 0) + nbytes
        self.messages[descriptor] = self.messages.get(descriptor, 0) + 1
        self.total += 1
        return descriptor not in self._refused

    def empty(self) -> None:
        """Note that there is nothing to receive at the moment."""
        self.times_empty += 1

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

    def refuse(self, descriptor: int) -> None:
        """Drop what is still queued of this connection; from the thread of the limiter."""
        self._refused = self._refused | {descriptor}

    def admit(self, descriptor: int) -> None:
        """A new connection has this descriptor; from the thread of the limiter."""
        if descriptor in self._refused:
            self._refused = self._refused - {descriptor}


def _descriptor(frame: zmq.Frame) -> int | None:
    """Descriptor of the connection that a frame came from; None if it has no properties."""
    try:
        descriptor = frame.get(zmq.SRCFD)
    except zmq.ZMQError:
        return None
    return descriptor if type(descriptor) is int else None
