"""Assembles MEPs from the messages of the input tap of a node (no I/O, no clock)."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from hltnode.protocol.buffers import Buffer, byte_view
from hltnode.protocol.errors import MessageError, ProtocolError, RejectReason
from hltnode.protocol.raw_data.mep import Mep, encode_mep
from hltnode.protocol.transport.frame_header import HEADER_SIZE
from hltnode.protocol.transport.tap_message import BEGIN, FRAGMENT, MEP, decode_tap_header

# Limit on fragments of MEPs that are not closed. Above it, the oldest MEP is given up: it was revoked, or the message
# of its end was dropped.
MAX_OPEN_BYTES = 1 << 30


@dataclass(slots=True)
class RecordingCounts:
    """Number of recorded and lost MEPs."""

    meps: int = 0
    events: int = 0
    bytes: int = 0
    missed_messages: int = 0
    """Lost messages of the tap: the recorder was too slow, and the node does not wait."""
    cut_meps: int = 0
    """MEPs not recorded because a fragment was lost or arrived before the recording started."""
    damaged_meps: int = 0
    """MEPs not recorded because their fragments form no MEP. The node has checked them, so this is a fault."""


@dataclass(frozen=True, slots=True)
class RecordedMep:
    """A complete MEP in its encoded form."""

    run: int
    mep: int
    n_events: int
    content: bytes


class MepAssembly:
    """Takes messages one by one, and returns each MEP when it is closed."""

    def __init__(self, max_open_bytes: int = MAX_OPEN_BYTES) -> None:
        self.counts = RecordingCounts()
        self._max_open_bytes = max_open_bytes
        self._open: OrderedDict[tuple[int, int], list[Buffer]] = OrderedDict()
        self._open_bytes = 0
        self._next: int | None = None

    def take(self, parts: Sequence[Buffer]) -> RecordedMep | None:
        """Take one message; returns the MEP that it completes, if any. Raises MessageError for an invalid message."""
        header = decode_tap_header(parts[0])
        if header.kind == BEGIN:
            # It carries the number of the next message, and is sent to each recorder.
            return None
        if header.kind == MEP:
            raise MessageError(RejectReason.MALFORMED, "this tap publishes whole MEPs (tap.meps_endpoint)")
        counts = self.counts
        if self._next is not None and header.sequence > self._next:
            counts.missed_messages += header.sequence - self._next
        self._next = header.sequence + 1
        key = header.run, header.mep
        if header.kind == FRAGMENT:
            self._open.setdefault(key, []).append(parts[1])
            self._open_bytes += len(parts[1])
            while self._open_bytes > self._max_open_bytes:
                self._give_up()
            return None
        frames = self._open.pop(key, [])
        self._open_bytes -= sum(map(len, frames))
        if len(frames) != header.n_fragments:
            counts.cut_meps += 1
            return None
        try:
            content = encode_mep([byte_view(frame)[HEADER_SIZE:] for frame in frames])
        except ProtocolError:
            counts.damaged_meps += 1
            return None
        n_events = Mep.parse(content).n_events
        counts.meps += 1
        counts.events += n_events
        counts.bytes += len(content)
        return RecordedMep(header.run, header.mep, n_events, content)

    def end(self) -> None:
        """End the recording; open MEPs are not recorded."""
        while self._open:
            self._give_up()

    def _give_up(self) -> None:
        _, frames = self._open.popitem(last=False)
        self._open_bytes -= sum(map(len, frames))
        self.counts.cut_meps += 1
