"""Each reason to refuse a frame, and each bound from both sides, on every path into a slot.

Each frame of the table has one fault at most. Python handles it as a frame of the socket and as one of shared memory,
and compiled code the same, with one thread that copies and with several. All leave the same state, counts and answers.
"""

import asyncio
import struct
from collections.abc import Callable
from typing import NamedTuple

import pytest
import zmq
from crc32c import crc32c

from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.stimuli_and_effects import Reject, StartRun, Tick
from hltnode.daemon.readout.receiver import Receiver
from hltnode.daemon.security.received_input import ReceivedInput
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.fragment_frame import inspect_frame
from hltnode.protocol.raw_data.bank_types import NO_BANK, BankType
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.frame_header import HEADER_SIZE, MAGIC, VERSION, encode_frame
from tests.daemon.readout import test_fragment_intake as intake
from tests.daemon.readout.test_fragment_intake import (
    EVENTS,
    MAX_FRAME_BYTES,
    RUN,
    SOURCES,
    Arrive,
    Readout,
    from_memory,
    from_memory_in_python,
    in_python,
    seen,
)

FIRST, SECOND, THIRD, *_ = SOURCES
UNKNOWN = 3
FLOOR = OPEN = 10
SPAN = 64
FIRST_EVENT = 100
CRC_AT = 36
"""The CRC of a frame covers the header up to here, and the MFP."""
LAST_U64 = (1 << 64) - 1
TOKEN, TOKEN_OF_THIRD = 1 << 63 | 5, 6
TAE_HEADER = 48
MAX_PAYLOAD = 0xFFF7
TYPES_AT, SIZES_AT = 20, 20 + EVENTS


def mfp(
    source: int = SECOND,
    *,
    events: int = EVENTS,
    first_event: int = FIRST_EVENT,
    fragment: bytes = b"8 bytes.",
    only_first: bool = False,
    bank_type: int = 1,
) -> bytes:
    """The MFP of a source, with packing 2. `only_first`: the other fragments are empty."""
    fragments = [fragment, *[b"" if only_first else fragment] * (events - 1)]
    types = [bank_type, *[1] * (events - 1)]
    return encode_mfp(source_id=source, event_id=first_event, version=1, types=types, fragments=fragments, align=2)


def of_size(size: int) -> bytes:
    """A MFP of this size in bytes, a multiple of 4."""
    found = mfp(fragment=bytes(size - len(mfp(fragment=b""))), only_first=True)
    assert len(found) == size
    return found


def changed(before: bytes, *fields: tuple[int, str, int]) -> bytes:
    """The bytes with other fields: offset, layout, value."""
    after = bytearray(before)
    for offset, layout, value in fields:
        struct.pack_into(layout, after, offset, value)
    return bytes(after)


def framed(
    content: bytes | None = None, *, mep: int = OPEN, source: int = SECOND, run: int = RUN, token: int = TOKEN
) -> bytes:
    """A frame with the right CRC, whatever its content."""
    return encode_frame(mfp(source) if content is None else content, run=run, mep_id=mep, source_id=source, token=token)


def refusal(token: int, _run: int, source: int) -> RejectReason | None:
    """Two feeders: one may send any source, of any run; the other one only the third source."""
    if token == TOKEN or (token == TOKEN_OF_THIRD and source == THIRD):
        return None
    return RejectReason.FOREIGN_SOURCE if token == TOKEN_OF_THIRD else RejectReason.UNKNOWN_TOKEN


def with_header(offset: int, layout: str, value: int) -> bytes:
    """A frame with one other field of its header, and the right CRC."""
    frame = changed(framed(), (offset, layout, value))
    return changed(frame, (CRC_AT, "<I", crc32c(frame[HEADER_SIZE:], crc32c(frame[:CRC_AT]))))


def nothing(_: Readout) -> None:
    """The open MEP is all that a frame needs."""


def open_last_events(readout: Readout) -> None:
    """Open MEP 11, whose events have the last ids."""
    content = mfp(FIRST, first_event=LAST_U64 - (EVENTS - 1))
    in_python(readout, [framed(content, mep=OPEN + 1, source=FIRST)])


def close_all(readout: Readout) -> None:
    """Close the open MEP: its time is over."""
    readout.now = 2000
    readout.stimulate(Tick())
    assert not readout.builder.open


def use_credits(n_left: int) -> Callable[[Readout], None]:
    """Open MEPs until this number of credits is left."""

    def opened(readout: Readout) -> None:
        for mep in range(40, 60):
            if readout.builder.window.outstanding > n_left:
                in_python(readout, [framed(mfp(FIRST), mep=mep, source=FIRST)])
        assert readout.builder.window.outstanding == n_left

    return opened


class Case(NamedTuple):
    """A frame and the reason to refuse it, None if it is accepted.

    opens: it is the first fragment of its MEP, which Python takes. in_memory: false for a wrong length of the frame,
    because in memory the length field is the length. runs: false for a node without a run. large: with MEPs for banks
    of any size.
    """

    frame: bytes
    reason: RejectReason | None = None
    prepare: Callable[[Readout], None] = nothing
    opens: bool = False
    in_memory: bool = True
    runs: bool = True
    large: bool = False


MFP_BYTES = len(mfp())
FRAME_BYTES = HEADER_SIZE + MFP_BYTES
MAX_MFP_BYTES = MAX_FRAME_BYTES - HEADER_SIZE
R = RejectReason

CASES = {
    "sound": Case(framed()),
    # Header of the frame
    "magic": Case(with_header(0, "<I", MAGIC + 1), R.BAD_MAGIC),
    "version -1": Case(with_header(4, "<H", VERSION - 1), R.BAD_VERSION),
    "version +1": Case(with_header(4, "<H", VERSION + 1), R.BAD_VERSION),
    "reserved field": Case(with_header(34, "<H", 1), R.MALFORMED),
    "MEP id at the largest": Case(with_header(16, "<Q", LAST_U64 - 1), R.NO_CREDIT),
    "MEP id above the largest": Case(with_header(16, "<Q", LAST_U64), R.MALFORMED),
    "header -1": Case(framed()[: HEADER_SIZE - 1], R.TRUNCATED, in_memory=False),
    "header without MFP": Case(framed(b""), R.TRUNCATED),
    "length -1": Case(with_header(12, "<I", MFP_BYTES - 1), R.BAD_SIZE, in_memory=False),
    "length +1": Case(with_header(12, "<I", MFP_BYTES + 1), R.TRUNCATED, in_memory=False),
    "length of the frame": Case(with_header(12, "<I", FRAME_BYTES), R.TRUNCATED, in_memory=False),
    "length of the frame +1": Case(with_header(12, "<I", FRAME_BYTES + 1), R.OVERSIZED, in_memory=False),
    "largest MFP -4": Case(framed(of_size(MAX_MFP_BYTES - 4))),
    "largest MFP": Case(framed(of_size(MAX_MFP_BYTES))),
    "largest MFP +4": Case(framed(of_size(MAX_MFP_BYTES + 4)), R.OVERSIZED),
    "CRC of the MFP": Case(changed(framed(), (FRAME_BYTES - 1, "<B", 0xFF)), R.BAD_CRC),
    "CRC of the header": Case(changed(framed(), (24, "<Q", 1)), R.BAD_CRC),
    # Token
    **{
        f"{name}{where}": Case(framed(mep=mep, token=token), reason)
        for where, mep in (("", OPEN), (", new MEP", OPEN + 1))
        for name, token, reason in (
            ("token -1", TOKEN - 1, R.UNKNOWN_TOKEN),
            ("token +1", TOKEN + 1, R.UNKNOWN_TOKEN),
            ("lower half of the token", TOKEN & 0xFFFFFFFF, R.UNKNOWN_TOKEN),
            ("no token", 0, R.UNKNOWN_TOKEN),
            ("token of another source", TOKEN_OF_THIRD, R.FOREIGN_SOURCE),
        )
    },
    "token of this source": Case(framed(source=THIRD, token=TOKEN_OF_THIRD)),
    # Header of the MFP
    "MFP header -1": Case(framed(mfp()[:19]), R.TRUNCATED),
    "MFP magic": Case(framed(changed(mfp(), (0, "<H", 0x40CF))), R.BAD_MAGIC),
    "packet size -1": Case(framed(changed(mfp(), (4, "<I", MFP_BYTES - 1))), R.BAD_SIZE),
    "packet size +1": Case(framed(changed(mfp(), (4, "<I", MFP_BYTES + 1))), R.TRUNCATED),
    "no event": Case(framed(changed(mfp()[:20], (2, "<H", 0), (4, "<I", 20))), R.BAD_SIZE),
    "arrays at the end of the packet": Case(framed(mfp(fragment=b""))),
    "arrays beyond the packet": Case(framed(changed(mfp(fragment=b"")[:28], (4, "<I", 28))), R.BAD_SIZE),
    **{
        f"packing {packing}": Case(framed(changed(mfp(fragment=b""), (18, "<B", packing))), reason)
        for packing, reason in ((0, R.MALFORMED), (1, R.MALFORMED), (2, None), (8, None), (9, R.MALFORMED))
    },
    "last event id": Case(framed(mfp(first_event=LAST_U64 - 3), mep=OPEN + 1), prepare=open_last_events),
    "last event id +1": Case(
        framed(mfp(first_event=LAST_U64 - 2), mep=OPEN + 1), R.MALFORMED, prepare=open_last_events
    ),
    "other source": Case(framed(mfp(THIRD)), R.MALFORMED),
    # Banks
    "absent bank": Case(framed(mfp(fragment=b"", bank_type=NO_BANK))),
    "absent bank +1": Case(framed(changed(mfp(fragment=b"x"), (TYPES_AT, "<B", NO_BANK))), R.MALFORMED),
    **{
        f"size {size} of a bank of 8": Case(framed(changed(mfp(), (SIZES_AT, "<H", size))), reason)
        for size, reason in ((4, R.BAD_SIZE), (5, None), (8, None), (9, R.BAD_SIZE))
    },
    "type of TAE headers": Case(framed(mfp(bank_type=TAE_HEADER)), R.RESERVED_TYPE),
    "type of decision reports": Case(framed(mfp(bank_type=BankType.HLT_DEC_REPORTS)), R.RESERVED_TYPE),
    "type 254": Case(framed(mfp(bank_type=254))),
    **{
        f"largest bank {excess:+}": Case(
            framed(mfp(fragment=bytes(MAX_PAYLOAD + excess), only_first=True)), reason, large=True
        )
        for excess, reason in ((-1, None), (0, None), (1, R.BANK_TOO_LARGE))
    },
    # The run and the open MEP
    "run -1": Case(framed(run=RUN - 1), R.FOREIGN_RUN),
    "run +1": Case(framed(run=RUN + 1), R.FOREIGN_RUN),
    "no run": Case(framed(), R.NO_CREDIT, runs=False),
    "unknown source": Case(framed(source=UNKNOWN), R.UNKNOWN_SOURCE),
    "same source": Case(framed(source=FIRST), R.DUPLICATE),
    "events -1": Case(framed(mfp(events=EVENTS - 1)), R.MISMATCH),
    "events +1": Case(framed(mfp(events=EVENTS + 1)), R.MISMATCH),
    "first event -1": Case(framed(mfp(first_event=FIRST_EVENT - 1)), R.MISMATCH),
    "first event +1": Case(framed(mfp(first_event=FIRST_EVENT + 1)), R.MISMATCH),
    # MEPs that are not open
    "floor -1": Case(framed(mep=FLOOR - 1), R.LATE),
    "floor +1": Case(framed(mep=FLOOR + 1), opens=True),
    "last id": Case(framed(mep=FLOOR + SPAN - 1), opens=True),
    "last id +1": Case(framed(mep=FLOOR + SPAN), R.NO_CREDIT),
    **{
        f"{name} range {place}": Case(framed(mep=mep), reason, opens=reason is None)
        for name, first, inside in (("done", 20, R.DUPLICATE), ("revoked", 30, R.REVOKED))
        for place, mep, reason in (
            ("-1", first - 1, None),
            ("begin", first, inside),
            ("end", first + 1, inside),
            ("+1", first + 2, None),
        )
    },
    "new MEP of fewer events": Case(framed(mfp(events=EVENTS - 1), mep=OPEN + 1), opens=True),
    "new MEP of most events": Case(framed(mfp(events=EVENTS), mep=OPEN + 1), opens=True),
    "new MEP of more events": Case(framed(mfp(events=EVENTS + 1), mep=OPEN + 1), R.OVERSIZED),
    "closed MEP": Case(framed(), R.LATE, prepare=close_all),
    "closed MEP with this source": Case(framed(source=FIRST), R.DUPLICATE, prepare=close_all),
    "last credit": Case(framed(mep=60), prepare=use_credits(1), opens=True),
    "no credit": Case(framed(mep=60), R.NO_CREDIT, prepare=use_credits(0)),
}


def prepared(case: Case, patch: pytest.MonkeyPatch, threads: int = 1) -> Readout:
    """A readout with an open MEP, which has a fragment of the first source."""
    if case.large:
        for name, value in (("MAX_FRAME_BYTES", 1 << 17), ("MEP_BYTES", 1 << 18), ("SLOT_BYTES", 1 << 20)):
            patch.setattr(intake, name, value)
    readout = Readout(threads, refusal)
    # As after an earlier frame of each source: compiled code takes the next one.
    for source in (*SOURCES, UNKNOWN):
        readout.senders.permit(source, TOKEN_OF_THIRD if source == THIRD else TOKEN)
    if case.runs:
        readout.stimulate(StartRun(RUN, SOURCES, FLOOR, EVENTS, done=((20, 21),), revoked=((30, 31),)))
        in_python(readout, [framed(mfp(FIRST), source=FIRST)])
        assert list(readout.builder.open) == [OPEN]
    case.prepare(readout)
    assert not any(readout.counters.fragments_rejected.values())
    readout.effects.clear()
    return readout


def left_to_python(readout: Readout, patch: pytest.MonkeyPatch) -> list[bytes]:
    """A list that gets the frames that compiled code does not handle."""
    left: list[bytes] = []
    taken = readout.handler.frame_arrived

    def noted(frame: bytes, *, is_shared: bool = False) -> bool:
        left.append(bytes(frame))
        return taken(frame, is_shared=is_shared)

    patch.setattr(readout.handler, "frame_arrived", noted)
    return left


def check(case: Case, readout: Readout, oracle: Readout) -> None:
    """The frame was accepted, or refused for its reason; the state is the one that Python leaves."""
    in_python(oracle, [case.frame])
    rejected = {reason: n for reason, n in readout.counters.fragments_rejected.items() if n}
    assert rejected == ({} if case.reason is None else {case.reason: 1})
    assert {effect.reason for effect in readout.effects if isinstance(effect, Reject)} <= {case.reason}
    assert seen(readout.effects) == seen(oracle.effects)
    assert readout.state() == oracle.state()
    assert closes(accounting(readout.counters, readout.builder))


def is_compiled(case: Case) -> bool:
    """Whether compiled code handles the frame: it has no readable header, or is accepted for an open MEP."""
    is_readable, *_ = inspect_frame(case.frame)
    return not is_readable or (case.reason is None and not case.opens)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("arrive", "threads"),
    [(in_python, 1), (from_memory_in_python, 1), (from_memory, 1), (from_memory, 3)],
    ids=["socket in Python", "memory in Python", "memory compiled", "memory compiled, 3 threads"],
)
def test_a_frame_is_refused_for_its_reason_only(
    monkeypatch: pytest.MonkeyPatch, arrive: Arrive, threads: int, name: str
) -> None:
    case = CASES[name]
    if arrive is not in_python and not case.in_memory:
        arrive = in_python
    readout, oracle = prepared(case, monkeypatch, threads), prepared(case, monkeypatch)
    left = left_to_python(readout, monkeypatch)
    arrive(readout, [case.frame])
    check(case, readout, oracle)
    assert len(left) == (0 if arrive is from_memory and is_compiled(case) else 1)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("threads", [1, 3])
async def test_a_frame_of_a_socket_is_refused_for_its_reason_only(
    monkeypatch: pytest.MonkeyPatch, threads: int, name: str
) -> None:
    case = CASES[name]
    readout, oracle = prepared(case, monkeypatch, threads), prepared(case, monkeypatch)
    left = left_to_python(readout, monkeypatch)
    with zmq.Context() as context, context.socket(zmq.PUSH) as feeder:
        receiver = Receiver(
            context, "inproc://data", readout.handler, max_frame_bytes=1 << 17, received=ReceivedInput()
        )
        receiver.start(asyncio.get_running_loop())
        feeder.connect("inproc://data")
        feeder.send(case.frame)
        while not receiver.read():
            pass
        receiver.close()
    check(case, readout, oracle)
    assert len(left) == (0 if is_compiled(case) else 1)


def test_the_table_has_every_reason_of_a_frame() -> None:
    """A checksum is that of a record in a file."""
    assert {case.reason for case in CASES.values()} == {None, *RejectReason} - {RejectReason.BAD_CHECKSUM}
