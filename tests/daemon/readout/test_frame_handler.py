"""Frames on their way into slots: a damaged frame leaves only its count and its refusal."""

import struct
from collections.abc import Sequence

import pytest

from hltnode.daemon._native import SenderAnswers
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import (
    BuilderLimits,
    CloseMep,
    Effect,
    MepRecord,
    Reject,
    StartRun,
)
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.frame_handler import FrameHandler
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.frame_header import encode_frame

RUN = 7
SOURCES = (10, 20)
EVENTS = 4
MEP_BYTES = 2048
SLOT_BYTES = 4 * MEP_BYTES
MAX_FRAME_BYTES = 1000
GUARD = 0xA5


def mfp_of(mep: int, source: int, *, size: int = 20, events: int = EVENTS) -> bytes:
    fragments = [bytes([mep % 256, source % 256, i]) + bytes(size) for i in range(events)]
    return encode_mfp(source_id=source, event_id=mep * EVENTS, version=1, types=[1] * events, fragments=fragments)


def frame_of(mep: int, source: int, *, run: int = RUN, size: int = 20, events: int = EVENTS) -> bytes:
    return encode_frame(mfp_of(mep, source, size=size, events=events), run=run, mep_id=mep, source_id=source)


def with_wrong_crc(frame: bytes) -> bytes:
    return frame[:-1] + bytes([frame[-1] ^ 1])


class Bench:
    """A handler with slots full of guard bytes."""

    def __init__(self) -> None:
        limits = SlotLimits(input_bytes=SLOT_BYTES, events=100, meps=8, fragments=100, mep_bytes=MEP_BYTES)
        self.counters = Counters()
        self.builder = EventBuilder(
            SlotPool(2, limits),
            BuilderLimits(
                mep_timeout_ns=100,
                feeder_timeout_ns=1000,
                overtaken_ns=30,
                evict_ns=10,
                flush_deadline_ns=20,
                closed_ring=64,
            ),
            self.counters,
        )
        self.builder.handle(0, StartRun(RUN, SOURCES, 0, EVENTS))
        self.slots = [bytearray([GUARD]) * SLOT_BYTES for _ in range(2)]
        self.effects: list[Effect] = []
        self.handler = FrameHandler(
            self.builder,
            [memoryview(slot) for slot in self.slots],
            self.counters,
            self.carry_out,
            lambda _token, _run, _source: None,
            SenderAnswers(),
            max_frame_bytes=MAX_FRAME_BYTES,
            clock=ReadingClock(lambda: 0),
        )

    def carry_out(self, effects: Sequence[Effect]) -> None:
        self.effects += effects

    def send(self, frame: bytes) -> list[Effect]:
        """The effects of one frame."""
        self.effects = []
        self.handler.frame_arrived(frame)
        assert closes(accounting(self.counters, self.builder))
        return self.effects

    def state(self) -> tuple[object, ...]:
        """All state that a fragment could change, without its own counts."""
        builder, counters = self.builder, self.counters
        slots = [
            (slot.state, slot.committed, slot.events, slot.open_meps, slot.deadline_ns, len(slot.meps))
            for slot in builder.pool.slots
        ]
        cursors = [builder.pool.meps.cursor(slot.index) for slot in builder.pool.slots]
        filling = [slot.index for slot in builder.pool.filling]
        meps = [(mep.mep, mep.sources, mep.arrived.bytes, mep.fragments.tolist()) for mep in builder.open.values()]
        window = builder.window.held, builder.window.outstanding
        return (
            slots,
            cursors,
            filling,
            meps,
            window,
            counters.meps_opened,
            dict(counters.meps_closed),
            counters.fragments_built,
        )


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_fragments_lie_at_their_places_and_nothing_beside_them_is_written(bench: Bench) -> None:
    frames = {(mep, source): frame_of(mep, source, size=20 + mep) for mep in range(3) for source in SOURCES}
    meps: dict[int, MepRecord] = {}
    for frame in frames.values():
        meps |= {effect.record.mep: effect.record for effect in bench.send(frame) if isinstance(effect, CloseMep)}
    assert sorted(meps) == [0, 1, 2]
    for mep in meps.values():
        for source, offset, size in mep.fragments:
            assert bench.slots[mep.slot][offset : offset + size] == mfp_of(mep.mep, source, size=20 + mep.mep)
            bench.slots[mep.slot][offset : offset + size] = bytes([GUARD]) * size
    assert all(slot.count(GUARD) == SLOT_BYTES for slot in bench.slots)


@pytest.mark.parametrize("mep", [0, 1], ids=["of an open MEP", "that would open a MEP"])
def test_a_fragment_with_a_wrong_crc_changes_nothing_in_the_builder(bench: Bench, mep: int) -> None:
    bench.send(frame_of(0, SOURCES[0]))
    before = bench.state()
    effects = bench.send(with_wrong_crc(frame_of(mep, SOURCES[1])))
    assert effects == [Reject(RUN, RejectReason.BAD_CRC, SOURCES[1], mep, resend=True)]
    assert bench.state() == before
    assert bench.counters.fragments_rejected[RejectReason.BAD_CRC] == 1


def test_a_fragment_with_a_wrong_crc_leaves_free_slots_free(bench: Bench) -> None:
    before = bench.state()
    bench.send(with_wrong_crc(frame_of(0, SOURCES[0])))
    assert bench.state() == before
    assert bench.builder.is_idle


def test_the_place_of_a_damaged_fragment_goes_to_the_next_one(bench: Bench) -> None:
    bench.send(with_wrong_crc(frame_of(0, SOURCES[0])))
    bench.send(frame_of(0, SOURCES[0]))
    mfp = mfp_of(0, SOURCES[0])
    assert bench.builder.open[0].fragments.tolist() == [[SOURCES[0], 0, len(mfp)]]
    assert bench.slots[0][: len(mfp)] == mfp
    assert bench.slots[0].count(GUARD, len(mfp)) == SLOT_BYTES - len(mfp)


REFUSED = {
    "duplicate": (frame_of(0, SOURCES[0]), RejectReason.DUPLICATE, False),
    "mismatch": (frame_of(0, SOURCES[1], events=EVENTS - 1), RejectReason.MISMATCH, False),
    "foreign run": (frame_of(1, SOURCES[0], run=RUN + 1), RejectReason.FOREIGN_RUN, False),
    "unknown source": (frame_of(1, 99), RejectReason.UNKNOWN_SOURCE, False),
    "no credit": (frame_of(1000, SOURCES[0]), RejectReason.NO_CREDIT, True),
    "too many events": (frame_of(1, SOURCES[0], events=EVENTS + 1), RejectReason.OVERSIZED, False),
    "no MFP": (encode_frame(bytes(30), run=RUN, mep_id=1, source_id=SOURCES[0]), RejectReason.BAD_MAGIC, False),
    "MFP of another source": (
        encode_frame(mfp_of(1, 99), run=RUN, mep_id=1, source_id=SOURCES[0]),
        RejectReason.MALFORMED,
        False,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_fragment_is_not_copied_and_a_wrong_crc_is_the_first_reason(bench: Bench, name: str) -> None:
    frame, reason, resend = REFUSED[name]
    bench.send(frame_of(0, SOURCES[0]))
    before, bytes_before = bench.state(), [bytes(slot) for slot in bench.slots]
    (sound,) = bench.send(frame)
    (damaged,) = bench.send(with_wrong_crc(frame))
    assert isinstance(sound, Reject)
    assert isinstance(damaged, Reject)
    assert (sound.reason, sound.resend) == (reason, resend)
    # A fragment that has arrived need not be sent again.
    assert (damaged.reason, damaged.resend) == (RejectReason.BAD_CRC, reason is not RejectReason.DUPLICATE)
    assert bench.state() == before
    assert [bytes(slot) for slot in bench.slots] == bytes_before


def test_a_frame_above_the_limit_is_refused_whatever_its_crc(bench: Bench) -> None:
    frame = frame_of(0, SOURCES[0], size=300)
    assert len(frame) > MAX_FRAME_BYTES
    for sent in (frame, with_wrong_crc(frame)):
        assert bench.send(sent) == [Reject(RUN, RejectReason.OVERSIZED, SOURCES[0], 0, resend=False)]


@pytest.mark.parametrize("length", [0, 1, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_frame_with_a_wrong_announced_length_is_counted_and_not_copied(bench: Bench, length: int) -> None:
    frame = bytearray(frame_of(0, SOURCES[0]))
    struct.pack_into("<I", frame, 12, length)
    assert bench.send(bytes(frame)) == []
    assert sum(bench.counters.fragments_rejected.values()) == 1
    assert all(slot.count(GUARD) == SLOT_BYTES for slot in bench.slots)
