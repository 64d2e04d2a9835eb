"""MEPs from the messages of a node's tap (no I/O, no clock)."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from hltnode.protocol.buffers import Buffer, byte_view
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.mep import Mep, encode_mep
from hltnode.protocol.transport.frame_header import HEADER_SIZE
from hltnode.protocol.transport.tap_message import BEGIN, FRAGMENT, decode_tap_header

# Fragments of MEPs that are not closed yet. A MEP whose end does not come, because it was revoked or its message was
# dropped, is given up when there are more.
MAX_OPEN_BYTES = 1 << 30


@dataclass(slots=True)
class RecordingCounts:
    """What was recorded, and what not."""

    meps: int = 0
    events: int = 0
    bytes: int = 0
    missed_messages: int = 0
    """Messages of the tap that did not come: this recorder was too slow for the node, which did not wait."""
    cut_meps: int = 0
    """MEPs that are not recorded because a fragment of them did not come, or came before the recording began."""
    without_odin: int = 0
    """MEPs that are not recorded because the fragment of the ODIN source is missing, which a Run-3 MEP needs."""


@dataclass(frozen=True, slots=True)
class RecordedMep:
    """A MEP as it was built, encoded."""

    run: int
    mep: int
    n_events: int
    content: bytes


class MepAssembly:
    """Takes the messages one by one, and gives each MEP when it is closed."""

    def __init__(self, max_open_bytes: int = MAX_OPEN_BYTES) -> None:
        self.counts = RecordingCounts()
        self._max_open_bytes = max_open_bytes
        self._open: OrderedDict[tuple[int, int], list[Buffer]] = OrderedDict()
        self._open_bytes = 0
        self._next: int | None = None

    def take(self, parts: Sequence[Buffer]) -> RecordedMep | None:
        """Take one message; the MEP that it completes, if it does. Raises MessageError for what is no such message."""
        header = decode_tap_header(parts[0])
        if header.kind == BEGIN:
            # It has the number of the next message, and comes for each recorder.
            return None
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
            # The fragments are those of one MEP and sound: the node has checked them.
            counts.without_odin += 1
            return None
        n_events = Mep.parse(content).n_events
        counts.meps += 1
        counts.events += n_events
        counts.bytes += len(content)
        return RecordedMep(header.run, header.mep, n_events, content)

    def end(self) -> None:
        """Nothing more comes: what is open is not recorded."""
        while self._open:
            self._give_up()

    def _give_up(self) -> None:
        _, frames = self._open.popitem(last=False)
        self._open_bytes -= sum(map(len, frames))
        self.counts.cut_meps += 1
