"""Frames in shared memory that change between check and copy in compiled code: the copy in the slot is checked."""

import struct
from collections.abc import Callable

import pytest

from hltnode.daemon._native import FragmentIntake
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.stimuli_and_effects import Reject, StartRun
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.frame_header import HEADER_SIZE, encode_frame
from hltnode.protocol.transport.shared_memory import FRAME_ALIGNMENT
from tests.daemon.readout.test_fragment_intake import (
    EVENTS,
    MAX_FRAME_BYTES,
    NEVER_NS,
    RUN,
    SLOT_BYTES,
    SOURCES,
    Readout,
    in_python,
)

OPENING, CARRYING, CHANGING, *_ = SOURCES
TYPES_AT, SIZES_AT = 20, 20 + EVENTS


def mfp_of(source: int, payload: bytes = b"before", first_event: int = 0) -> bytes:
    return encode_mfp(
        source_id=source, event_id=first_event, version=1, types=[1] * EVENTS, fragments=[payload] * EVENTS
    )


def with_field(offset: int, layout: str, value: int) -> bytes:
    mfp = bytearray(mfp_of(CHANGING))
    struct.pack_into(layout, mfp, offset, value)
    return bytes(mfp)


class Changed:
    """Compiled code took a fragment whose MFP became `then` after its check and before its copy.

    Two fragments are checked, then copied in this order. The slot overlaps the range, so that the copy of the first one
    replaces the frame of the second one by another frame, which is its payload. The second frame announces the CRC of
    `then` from the start: only the check of its copy can refuse it.
    """

    def __init__(self, then: bytes, announced: bytes) -> None:
        before = mfp_of(CHANGING)
        assert len(then) == len(before)
        self.readout = readout = Readout()
        readout.stimulate(StartRun(RUN, SOURCES, 0, EVENTS))
        in_python(readout, [encode_frame(mfp_of(OPENING), run=RUN, mep_id=0, source_id=OPENING)])
        for source in (CARRYING, CHANGING):
            # Without it compiled code would leave the frames to the check of permissions.
            readout.senders.permit(source, 0)
        cursor = readout.builder.pool.meps.cursor(readout.builder.open[0].slot)
        header = encode_frame(announced, run=RUN, mep_id=0, source_id=CHANGING)[:HEADER_SIZE]
        payload = (header + then).ljust(_aligned(HEADER_SIZE + len(then)), b"\0")
        carrier = encode_mfp(
            source_id=CARRYING, event_id=0, version=1, types=[1] * EVENTS, fragments=[payload, *[b""] * (EVENTS - 1)]
        )
        first = encode_frame(carrier, run=RUN, mep_id=0, source_id=CARRYING)
        second_at = _aligned(len(first))
        end = second_at + HEADER_SIZE + len(before)
        payload_at = len(carrier) - len(payload)
        slot_at = second_at - payload_at - cursor
        # Neither copy overlaps the bytes that it reads.
        assert len(first) <= second_at - payload_at
        assert end <= second_at + len(payload)
        assert slot_at >= 0
        memory = bytearray(slot_at + SLOT_BYTES)
        memory[:end] = first.ljust(second_at, b"\0") + header + before
        self.slot = memoryview(memory)[slot_at:]
        # Two threads: the intake checks several frames before it copies. It copies this few bytes in one thread.
        readout.handler.intake = FragmentIntake(
            readout.builder.pool.meps,
            readout.senders,
            readout.counters.sources,
            [self.slot, memoryview(readout.memory[1])[64:-64]],
            MAX_FRAME_BYTES - HEADER_SIZE,
            n_threads=2,
        )
        readout.handler.begin_turn()
        frames = memoryview(memory)[:end].toreadonly()
        at = readout.handler.shared_frames_arrived(frames, 0, NEVER_NS)
        assert at == end
        assert frames[second_at:] == header + then
        assert closes(accounting(readout.counters, readout.builder))

    @property
    def sources(self) -> list[int]:
        """Those with an accepted fragment."""
        return [source for source, _, _ in self.readout.builder.open[0].fragments.tolist()]


def _aligned(size: int) -> int:
    return -(-size // FRAME_ALIGNMENT) * FRAME_ALIGNMENT


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        (lambda: with_field(SIZES_AT, "<H", 0xFFFF), RejectReason.BAD_SIZE),
        (lambda: with_field(SIZES_AT, "<H", 0), RejectReason.BAD_SIZE),
        (lambda: with_field(2, "<H", EVENTS + 1), RejectReason.BAD_SIZE),
        (lambda: with_field(2, "<H", 0), RejectReason.BAD_SIZE),
        (lambda: with_field(4, "<I", 1), RejectReason.BAD_SIZE),
        (lambda: with_field(0, "<H", 0), RejectReason.BAD_MAGIC),
        (lambda: with_field(18, "<B", 9), RejectReason.MALFORMED),
        (lambda: with_field(TYPES_AT, "<B", 48), RejectReason.RESERVED_TYPE),
        (lambda: with_field(TYPES_AT, "<B", 255), RejectReason.MALFORMED),
        (lambda: mfp_of(OPENING), RejectReason.MALFORMED),
        (lambda: mfp_of(CHANGING, first_event=EVENTS), RejectReason.MISMATCH),
    ],
    ids=[
        "size too large",
        "size too small",
        "more events",
        "no event",
        "packet size",
        "magic",
        "packing",
        "reserved type",
        "absent bank with a size",
        "other source",
        "other events",
    ],
)
def test_a_frame_that_changes_in_compiled_code_is_refused_and_leaves_no_trace(
    then: Callable[[], bytes], reason: RejectReason
) -> None:
    changed = Changed(then(), announced=then())
    assert changed.sources == [OPENING, CARRYING]
    readout = changed.readout
    rejected = [effect for effect in readout.effects if isinstance(effect, Reject)]
    assert [(effect.reason, effect.source, effect.mep) for effect in rejected] == [(reason, CHANGING, 0)]
    assert {each: n for each, n in readout.counters.fragments_rejected.items() if n} == {reason: 1}
    assert readout.counters.fragments_received == 3
    in_python(readout, [encode_frame(mfp_of(CHANGING), run=RUN, mep_id=0, source_id=CHANGING)])
    assert changed.sources == [OPENING, CARRYING, CHANGING]


def test_a_frame_that_changes_in_compiled_code_after_its_crc_was_read_is_refused() -> None:
    changed = Changed(mfp_of(CHANGING, b"after!"), announced=mfp_of(CHANGING))
    assert changed.sources == [OPENING, CARRYING]
    assert changed.readout.counters.fragments_rejected[RejectReason.BAD_CRC] == 1


def test_a_frame_replaced_by_another_valid_one_in_compiled_code_is_taken_as_copied() -> None:
    then = mfp_of(CHANGING, b"after!")
    changed = Changed(then, announced=then)
    *_, (source, offset, size) = changed.readout.builder.open[0].fragments.tolist()
    assert (source, size) == (CHANGING, len(then))
    assert bytes(changed.slot[offset : offset + size]) == then
    assert not any(changed.readout.counters.fragments_rejected.values())
