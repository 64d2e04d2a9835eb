"""What the node has taken from the connections of one socket, written by the thread that receives."""

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
        self.ask: Callable[[], None] | None = None
        """Has the receiving thread look whether there is something to receive; callable from any thread."""

    def take(self, frame: zmq.Frame, nbytes: int) -> bool:
        """Note a received message, its last frame and the bytes of all; False if its connection has been refused, and
        the message is to be dropped."""
        try:
            descriptor = frame.get(zmq.SRCFD)
        except zmq.ZMQError:
            # A peer that speaks ZMTP 1 or 2 has no properties. Its connection ends as one that delivers nothing.
            return True
        if type(descriptor) is not int:
            return True
        nbytes += self._overhead
        nbytes += _SHORT_HEADER if nbytes <= _SHORT_FRAME else _LONG_HEADER
        self.wire_bytes[descriptor] = self.wire_bytes.get(descriptor, 0) + nbytes
        self.messages[descriptor] = self.messages.get(descriptor, 0) + 1
        self.total += 1
        return descriptor not in self._refused

    def empty(self) -> None:
        """Note that there is nothing to receive at the moment."""
        self.times_empty += 1

    def refuse(self, descriptor: int) -> None:
        """Drop what is still queued of this connection; from the thread of the limiter."""
        self._refused = self._refused | {descriptor}

    def admit(self, descriptor: int) -> None:
        """A new connection has this descriptor; from the thread of the limiter."""
        if descriptor in self._refused:
            self._refused = self._refused - {descriptor}
