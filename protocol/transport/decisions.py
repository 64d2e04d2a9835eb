"""The decision message, which the node publishes for each MEP, in msgpack (docs/formats/decision-message.md).

One message holds the decisions of a whole MEP, with any number of lines: `max_events_of_decision` is the largest number
of events; a node refuses MEPs with more events. A `DecisionGroup` has those of several small MEPs.
"""

from __future__ import annotations

from collections.abc import Collection
from struct import unpack
from typing import TYPE_CHECKING

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import MessageVersionError
from hltnode.protocol.transport.messages import U16, U32, U64, Message, MessageCodec, Name
from hltnode.protocol.value_lists import ValueList, decode_blocks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DECISION_VERSION = 2
# Messages on time slices, which have windows.
SLICE_VERSION = 3
# The largest MEP, 65,535 events, fits with up to 1984 lines. With 16,378 lines, the maximum of a decision report, 8,152
# events fit.
MAX_DECISION_SIZE = 16 << 20
# Bytes reserved for all fields except `accepted`, `lines` and `flags`: two texts of 4096 bytes, a name, a list of 4096
# sources at 3 bytes each, and the names of the fields take 21 kB.
_ENVELOPE_SIZE = 32 << 10
_MAX_EVENTS = 0xFFFF
# First part of the decision messages of a shadow node: this, and its name.
SHADOW_TOPIC = b"shadow/"
# Most MEPs of a group. Each takes 18 bytes beside its events.
MAX_MEPS_OF_GROUP = 4096
_BYTES_OF_MEP = 18
# The close reason of all MEPs of a group, daemon.common.vocabulary.CloseReason.
COMPLETE = "complete"


class MepDecision(Message, frozen=True, tag="decision", omit_defaults=True):
    """The decisions on the events of one MEP.

    `seq` counts the messages of a node's session; `first_event` is the id of event 0; `close_reason` is the reason why
    the event builder closed the MEP; `missing_sources` (u16) are the sources without a fragment in it. `accepted` is a
    bitmap (event i is bit i % 8 of byte i // 8). `lines` holds ceil(n_lines / 32) words (u32, little-endian) per event,
    one event after the other: the decision of line i is bit i % 32 of word i // 32, and bits from n_lines on are
    0. `flags` holds a u32 per event, little-endian. `chain` is the name of the deciding chain; it is empty, and omitted
    on the wire, if the node does not give it. `lists` has the output lists of all events; it is omitted without any.
    `late`: the decision missed the deadline of its node; it is omitted if not.
    """

    node: str
    run: U32
    mep: U64
    seq: U64
    first_event: U64
    n_events: U16
    n_lines: U16
    tck: U32
    close_reason: str
    missing_sources: tuple[U16, ...]
    accepted: bytes
    lines: bytes
    flags: bytes
    chain: Name = ""
    lists: bytes = b""
    late: bool = False

    def __repr__(self) -> str:
        accepted = int(self.accepted_events().sum())
        return f"<{self.node}: run {self.run}, MEP {self.mep}: {accepted} of {self.n_events} events accepted>"

    def accepted_events(self) -> NDArray[np.bool_]:
        """Whether each event is accepted, bool[n_events]."""
        return accepted_of(self.accepted, self.n_events)

    def fired(self) -> NDArray[np.bool_]:
        """Whether each line selects each event, bool[n_events, n_lines]."""
        return fired_of(self.lines, self.n_events, self.n_lines)

    def event_flags(self) -> NDArray[np.uint32]:
        """The flags of each event, u32[n_events]."""
        return flags_of(self.flags)

    def output_lists(self) -> dict[str, ValueList | None]:
        """The output lists of the events, by name; None for one that did not fit into the message.

        Raises ValueError for lists that cannot be read.
        """
        return decode_blocks(memoryview(self.lists), self.n_events)

    @property
    def nbytes(self) -> int:
        """Size of the decisions in bytes, about that of the message."""
        return len(self.lines) + len(self.flags) + len(self.lists)

    def without(self, meps: Collection[int]) -> list[MepDecision]:
        """The decision itself, or nothing if it is on one of these MEPs."""
        return [] if self.mep in meps else [self]

    def check(self) -> None:
        check_sizes(self.n_events, self.n_lines, self.accepted, self.lines, self.flags)


class SliceDecision(MepDecision, frozen=True, tag="decision", omit_defaults=True):
    """The decisions on the sub-slices of a time slice, and the windows of time that its node keeps.

    `windows` is an output list of the sub-slices: `start_ns` and `end_ns`, u64 in ns since the start of the run,
    `lines` and further values of the chain. A window belongs to the sub-slice of its first hit.
    """

    windows: bytes = b""

    @classmethod
    def of(cls, decision: MepDecision, windows: bytes) -> SliceDecision:
        """A decision with windows."""
        fields = {name: getattr(decision, name) for name in decision.__struct_fields__}
        return cls(**fields, windows=windows)

    def time_windows(self) -> ValueList | None:
        """The windows of each sub-slice; None if they did not fit into the message.

        Raises ValueError for windows that cannot be read.
        """
        [found] = decode_blocks(memoryview(self.windows), self.n_events).values()
        return found

    @property
    def nbytes(self) -> int:
        """Size of the decisions in bytes, about that of the message."""
        return super().nbytes + len(self.windows)

    def check(self) -> None:
        super().check()
        found = decode_blocks(memoryview(self.windows), self.n_events)
        if len(found) != 1:
            raise ValueError(f"one list of windows expected, {len(found)} found - at `$.windows`")
        [windows] = found.values()
        values = {} if windows is None else windows.values
        for name in ("start_ns", "end_ns") if windows is not None else ():
            if name not in values or values[name].dtype.str != "<u8":
                raise ValueError(f"windows without {name} of type u8 - at `$.windows`")
        if windows is not None and (values["start_ns"] > values["end_ns"]).any():
            raise ValueError("a window ends before its start - at `$.windows`")


class DecisionGroup(Message, frozen=True, tag="decisions", omit_defaults=True):
    """The decisions on the events of several complete MEPs of one batch, in one message.

    `meps` and `first_events` are u64, `n_events` u16, one number for each MEP, little-endian. The events of all MEPs
    follow one another in `accepted`, `lines` and `flags`, which are those of `MepDecision`, as are the other fields.
    """

    node: str
    run: U32
    seq: U64
    n_lines: U16
    tck: U32
    meps: bytes
    first_events: bytes
    n_events: bytes
    accepted: bytes
    lines: bytes
    flags: bytes
    chain: Name = ""

    @property
    def late(self) -> bool:
        """No decision of a group is late: late ones have a message each."""
        return False

    def split(self) -> list[MepDecision]:
        """The decision of each MEP, all with the `seq` of the group."""
        import numpy as np  # a feeder needs no NumPy

        sizes = np.frombuffer(self.n_events, "<u2")
        ends = np.cumsum(sizes, dtype=np.int64).tolist()
        accepted = accepted_of(self.accepted, ends[-1])
        words = _line_bytes(self.n_lines)
        found = []
        begin = 0
        meps, first_events = (np.frombuffer(field, "<u8").tolist() for field in (self.meps, self.first_events))
        for mep, first_event, end in zip(meps, first_events, ends, strict=True):
            decision = MepDecision(
                node=self.node,
                run=self.run,
                mep=mep,
                seq=self.seq,
                first_event=first_event,
                n_events=end - begin,
                n_lines=self.n_lines,
                tck=self.tck,
                close_reason=COMPLETE,
                missing_sources=(),
                accepted=np.packbits(accepted[begin:end], bitorder="little").tobytes(),
                lines=self.lines[words * begin : words * end],
                flags=self.flags[4 * begin : 4 * end],
                chain=self.chain,
            )
            found.append(decision)
            begin = end
        return found

    @property
    def nbytes(self) -> int:
        """Size of the decisions in bytes, about that of the message."""
        return len(self.lines) + len(self.flags) + _BYTES_OF_MEP * (len(self.meps) // 8)

    def without(self, meps: Collection[int]) -> list[DecisionGroup | MepDecision]:
        """The group, or, if it has some of these MEPs, the decisions on the others."""
        found = self.split()
        left = [decision for decision in found if decision.mep not in meps]
        return [self] if len(left) == len(found) else [*left]

    def check(self) -> None:
        n = len(self.meps) // 8
        if not 1 <= n <= MAX_MEPS_OF_GROUP:
            raise ValueError(f"1 to {MAX_MEPS_OF_GROUP} MEPs expected, {n} found - at `$.meps`")
        for name, found, size in (
            ("meps", self.meps, 8),
            ("first_events", self.first_events, 8),
            ("n_events", self.n_events, 2),
        ):
            if len(found) != size * n:
                raise ValueError(f"{size * n} bytes expected for {n} MEPs, {len(found)} found - at `$.{name}`")
        n_events = sum(unpack(f"<{n}H", self.n_events))
        check_sizes(n_events, self.n_lines, self.accepted, self.lines, self.flags)


def check_sizes(n_events: int, n_lines: int, accepted: bytes, lines: bytes, flags: bytes) -> None:
    """Raise ValueError unless the decisions have the sizes that this number of events and lines needs."""
    for name, found, size in (
        ("accepted", accepted, (n_events + 7) // 8),
        ("lines", lines, n_events * _line_bytes(n_lines)),
        ("flags", flags, 4 * n_events),
    ):
        if len(found) != size:
            expected = f"{size} bytes expected for {n_events} events and {n_lines} lines"
            raise ValueError(f"{expected}, {len(found)} found - at `$.{name}`")


def accepted_of(bitmap: bytes, n_events: int) -> NDArray[np.bool_]:
    """The bitmap of accepted events as bool[n_events]."""
    import numpy as np  # a feeder needs no NumPy

    return np.unpackbits(np.frombuffer(bitmap, np.uint8), count=n_events, bitorder="little").view(np.bool_)


def fired_of(lines: bytes, n_events: int, n_lines: int) -> NDArray[np.bool_]:
    """The words of line decisions as bool[n_events, n_lines]."""
    import numpy as np  # a feeder needs no NumPy

    of_events = np.frombuffer(lines, np.uint8).reshape(n_events, _line_bytes(n_lines))
    return np.unpackbits(of_events, axis=1, count=n_lines, bitorder="little").view(np.bool_)


def flags_of(flags: bytes) -> NDArray[np.uint32]:
    """The flags of the events as u32[n_events]."""
    import numpy as np  # a feeder needs no NumPy

    return np.frombuffer(flags, "<u4").astype(np.uint32)


def max_events_of_decision(n_lines: int) -> int:
    """Largest number of events of a MEP whose decisions on `n_lines` lines always fit in one message."""
    return _max_events(MAX_DECISION_SIZE - _ENVELOPE_SIZE, n_lines)


def max_events_of_group(n_lines: int) -> int:
    """Largest number of events of a group whose decisions on `n_lines` lines always fit in one message."""
    return _max_events(MAX_DECISION_SIZE - _ENVELOPE_SIZE - _BYTES_OF_MEP * MAX_MEPS_OF_GROUP, n_lines)


def _max_events(nbytes: int, n_lines: int) -> int:
    """Largest number of events whose decisions fit in this number of bytes."""
    bytes_of_eight = 1 + 8 * (_line_bytes(n_lines) + 4)
    return min(_MAX_EVENTS, 8 * (nbytes // bytes_of_eight))


def room_for_lists(n_events: int, n_lines: int) -> int:
    """Bytes of a message on some events that its output lists may fill."""
    of_events = (n_events + 7) // 8 + n_events * (_line_bytes(n_lines) + 4)
    return max(0, MAX_DECISION_SIZE - _ENVELOPE_SIZE - of_events)


def _line_bytes(n_lines: int) -> int:
    """Size of the line decisions of one event in bytes."""
    return 4 * -(-n_lines // 32)


_CHANGE = "since version 2 a message has the field n_lines and ceil(n_lines / 32) words of 32 bits per event in lines"
_CODEC: MessageCodec[MepDecision] = MessageCodec(
    MepDecision,
    what="decision message",
    version=DECISION_VERSION,
    change=_CHANGE,
    max_size=MAX_DECISION_SIZE,
    # Containers: the message and the list of missing sources.
    max_containers=2,
)


_SLICE: MessageCodec[SliceDecision] = MessageCodec(
    SliceDecision,
    what="decision message",
    version=SLICE_VERSION,
    change="version 3 has the field windows; messages without it have version 2",
    max_size=MAX_DECISION_SIZE,
    max_containers=2,
)


_EITHER: MessageCodec[MepDecision | DecisionGroup] = MessageCodec(
    MepDecision,
    DecisionGroup,
    what="decision message",
    version=DECISION_VERSION,
    change=_CHANGE,
    max_size=MAX_DECISION_SIZE,
    max_containers=2,
)


def encode_decision(decision: MepDecision | DecisionGroup) -> bytes:
    """The message as msgpack.  Raises MessageError for one that decode_decisions would refuse."""
    if isinstance(decision, SliceDecision):
        return _SLICE.encode(decision)
    return _EITHER.encode(decision)


def pack_decision(decision: MepDecision | DecisionGroup) -> bytes:
    """The message as msgpack, for fields that are in their ranges: only their sizes are checked.

    Raises MessageError for sizes that decode_decisions would refuse.
    """
    if isinstance(decision, SliceDecision):
        return _SLICE.pack(decision)
    return _EITHER.pack(decision)


def decode_decisions(raw: Buffer) -> list[MepDecision]:
    """The decisions in `raw`: of one MEP, or of each MEP of a group.

    A decision on a time slice is a `SliceDecision`.

    Raises MessageError for anything except a decision message of these versions.
    """
    try:
        message = _EITHER.decode(raw)
    except MessageVersionError as error:
        if error.version != SLICE_VERSION:
            raise
        return [_SLICE.decode(raw)]
    return [message] if isinstance(message, MepDecision) else message.split()


def decode_decision(raw: Buffer) -> MepDecision:
    """The decision in `raw`, of one MEP.  Raises MessageError for anything except a decision of these versions."""
    try:
        return _CODEC.decode(raw)
    except MessageVersionError as error:
        if error.version != SLICE_VERSION:
            raise
        return _SLICE.decode(raw)
