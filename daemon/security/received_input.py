"""Account of the messages that the node has received on each connection of one socket."""

import queue
from collections.abc import Callable

import zmq

from hltnode.daemon._native import ConnectionTally
from hltnode.daemon.common.vocabulary import ConnectionRefusal

# A connection ends after this number of frames without permission in a row, over at least this time. A correct feeder
# sends at most a few before it knows that its token has ended.
UNPERMITTED_FRAMES = 64
UNPERMITTED_NS = 5_000_000_000
# Bytes that CURVE adds to a message: name of the command, nonce, MAC and flags.
_CURVE_OVERHEAD = 33


class ReceivedInput:
    """Messages and wire bytes, by descriptor of the connection.

    The receiving thread writes; `InputWatch` reads in the thread of the limiter.
    """

    def __init__(self, *, encrypted: bool = False) -> None:
        self.tally = ConnectionTally(_CURVE_OVERHEAD if encrypted else 0, UNPERMITTED_FRAMES, UNPERMITTED_NS)
        self._reported: queue.SimpleQueue[tuple[int, ConnectionRefusal]] = queue.SimpleQueue()
        self._addresses: queue.SimpleQueue[tuple[str, ConnectionRefusal]] = queue.SimpleQueue()
        self.ask: Callable[[], None] | None = None
        """Has the receiving thread check for input. It may be called from any thread."""

    def take(self, frame: zmq.Frame, nbytes: int, parts: int) -> bool:
        """Count a received message: its last frame, the number of its bytes and of its parts.

        False if its connection was refused: then the caller must drop the message.
        """
        descriptor = _descriptor(frame)
        # None: a peer with ZMTP 1 or 2. The limiter ends its connection as an idle one.
        return descriptor is None or self.tally.take(descriptor, nbytes, parts)

    def report(self, frame: zmq.Frame, reason: ConnectionRefusal = ConnectionRefusal.MALFORMED) -> None:
        """Report a frame that no feeder and no operator sends; the limiter ends its connection.

        The peer may have closed it: then its address pays.
        """
        if (descriptor := _descriptor(frame)) is not None:
            self._reported.put((descriptor, reason))
        self.report_address(address_of(frame), reason)

    def report_address(self, address: str, reason: ConnectionRefusal) -> None:
        """Report the address of a connection that may belong to another peer by now."""
        self._addresses.put((address, reason))

    def reported_addresses(self) -> list[tuple[str, ConnectionRefusal]]:
        """Addresses reported since the last call, with the reasons. The thread of the limiter calls it."""
        return [self._addresses.get() for _ in range(self._addresses.qsize())]

    def reported(self) -> dict[int, ConnectionRefusal]:
        """Descriptors reported since the last call, with the reasons. The thread of the limiter calls it."""
        found: dict[int, ConnectionRefusal] = {}
        while not self._reported.empty():
            descriptor, reason = self._reported.get()
            found.setdefault(descriptor, reason)
        for descriptor in self.tally.take_reported():
            found.setdefault(descriptor, ConnectionRefusal.UNPERMITTED)
        return found


def address_of(frame: zmq.Frame) -> str:
    """The address of the sender; empty for a local socket or a frame without properties."""
    try:
        return str(frame.get("Peer-Address"))
    except zmq.ZMQError:
        return ""


def key_of(frame: zmq.Frame) -> str:
    """The public key of the sender; empty without CURVE."""
    try:
        return str(frame.get("User-Id"))
    except (zmq.ZMQError, UnicodeDecodeError):
        # Without CURVE a peer may have no user id, or any bytes.
        return ""


def _descriptor(frame: zmq.Frame) -> int | None:
    """Descriptor of the connection of a frame; None if the frame has no properties."""
    try:
        descriptor = frame.get(zmq.SRCFD)
    except zmq.ZMQError:
        return None
    return descriptor if type(descriptor) is int else None
