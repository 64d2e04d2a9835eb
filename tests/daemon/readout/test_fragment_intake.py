"""Compiled code and Python handle any frames in the same way.

The rules of the event builder in Python are the oracle. Two readouts get the same frames, hostile ones among them: one
takes all in Python, the other what it can in compiled code, from shared memory as a feeder would name it, with one
thread that copies and with several.
"""

import asyncio
import gc
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from random import Random

import pytest
import zmq
from psutil import Process

from hltnode.daemon._native import FragmentIntake, Outcome, SenderAnswers
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import (
    AcknowledgedBelow,
    Batch,
    BuilderLimits,
    CloseMep,
    CloseOpen,
    Effect,
    MepsAcknowledged,
    Reject,
    ReturnMeps,
    RevokeMeps,
    SealSlot,
    SlotFreed,
    StartRun,
    Stimulus,
    Tick,
)
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.frame_handler import FrameHandler
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.readout.receiver import Receiver
from hltnode.daemon.security.received_input import ReceivedInput
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.frame_header import HEADER_SIZE, TOKEN_AT, encode_frame
from hltnode.protocol.transport.shared_memory import FRAME_ALIGNMENT
from tests.daemon.readout.mutations import FrameSource, mutate_frame

RUN = 7
SOURCES = (1, 2, 70, 4096, 65_535)
EVENTS = 4
MEP_BYTES = 1024
SLOT_BYTES = 4 * MEP_BYTES
MAX_FRAME_BYTES = 400
GUARD = 0xA5
NEVER_NS = 1 << 62
ERROR_TYPES = {2: "MISSING", 254: "THROTTLED", 77: "NEVER_SENT"}
"""Two of the types of `FrameSource`, and another one."""
NO_BANK = 255
STEPS = 400
COVERING = range(6)
"""Seeds that complete many MEPs in compiled code. Some of the others refuse most frames."""
SEEDS = [*COVERING, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(len(COVERING), 600))]
# A frame has several pieces, and a group several frames.
PIECE_BYTES = 64
THREADS = (1, 3)


Refusal = Callable[[int, int, int], RejectReason | None]


OF_COPIES = (RejectReason.DUPLICATE, RejectReason.LATE, RejectReason.BAD_CRC)
STRANGER = 9
"""A token that no feeder has. The feeders have 0."""


def permits_all(_token: int, _run: int, _source: int) -> None:
    """The rule of a node that accepts every token."""


def refuses_strangers(token: int, _run: int, _source: int) -> RejectReason | None:
    """The rule of a node with one feeder."""
    return RejectReason.UNKNOWN_TOKEN if token else None


RULES = (permits_all, refuses_strangers)


class Readout:
    """A handler, its builder and its slots, with an alignment of bytes on both sides that nothing may touch."""

    def __init__(self, copy_threads: int = 1, refusal: Refusal = permits_all) -> None:
        self.copy_threads = copy_threads
        self.refusal = refusal
        self.now = 0
        self.counters = Counters()
        self.counters.set_error_types(ERROR_TYPES)
        limits = SlotLimits(input_bytes=SLOT_BYTES, events=64, meps=8, fragments=100, mep_bytes=MEP_BYTES)
        times = BuilderLimits(
            mep_timeout_ns=100,
            feeder_timeout_ns=1000,
            overtaken_ns=30,
            evict_ns=10,
            flush_deadline_ns=20,
            closed_ring=64,
        )
        self.builder = EventBuilder(SlotPool(2, limits), times, self.counters)
        self.memory = [bytearray([GUARD]) * (SLOT_BYTES + 128) for _ in range(2)]
        self.effects: list[Effect] = []
        self.clock = ReadingClock(lambda: self.now)
        self.senders = SenderAnswers()
        self.senders.hold(0)
        if refusal is refuses_strangers:
            self.senders.refuse_unheld()
        buffers = [memoryview(memory)[64:-64] for memory in self.memory]
        self.handler = FrameHandler(
            self.builder,
            buffers,
            self.counters,
            self.effects.extend,
            refusal,
            self.senders,
            max_frame_bytes=MAX_FRAME_BYTES,
            clock=self.clock,
        )
        if copy_threads > 1:
            self.handler.intake = FragmentIntake(
                self.builder.pool.meps,
                self.senders,
                self.counters.sources,
                buffers,
                MAX_FRAME_BYTES - HEADER_SIZE,
                copy_threads,
                PIECE_BYTES,
            )

    def stimulate(self, stimulus: Stimulus) -> None:
        self.effects += self.builder.handle(self.clock.current_ns(), stimulus)

    def state(self) -> tuple[object, ...]:
        """Its whole visible state, without the bytes of slots outside fragments."""
        builder, counters = self.builder, self.counters
        cursors = [builder.pool.meps.cursor(slot.index) for slot in builder.pool.slots]
        slots = [(slot.state, slot.committed, slot.open_meps, slot.deadline_ns) for slot in builder.pool.slots]
        meps = [
            (repr(mep), mep.sources, mep.last_ns, mep.arrived.bytes, mep.fragments.tolist())
            for mep in builder.open.values()
        ]
        sources = [
            (source, of.fragments, of.bytes, of.missing, of.last_seen_ns, of.error_banks)
            for source, of in counters.sources.items()
        ]
        counted = [
            counters.fragments_received,
            counters.fragment_bytes_received,
            dict(counters.fragments_rejected),
            counters.fragments_built,
            counters.meps_opened,
            dict(counters.meps_closed),
        ]
        placed = [
            self.memory[slot.index][64 + offset : 64 + offset + size]
            for slot in builder.pool.slots
            for mep in slot.meps
            for _, offset, size in mep.fragments.tolist()
        ]
        return cursors, slots, meps, sources, counted, builder.wake_ns, builder.window.limit, placed


Arrive = Callable[[Readout, Sequence[bytes]], None]


def in_python(readout: Readout, frames: Sequence[bytes]) -> None:
    """Frames of a socket, taken by the rules in Python."""
    readout.handler.begin_turn()
    for frame in frames:
        readout.handler.frame_arrived(frame)


def from_memory(readout: Readout, frames: Sequence[bytes], *, is_on: bool = True) -> None:
    """Adjacent frames in a range of shared memory, located by their own length fields."""
    padded = b"".join(frame.ljust(-(-len(frame) // FRAME_ALIGNMENT) * FRAME_ALIGNMENT, b"\0") for frame in frames)
    readout.handler.begin_turn()
    readout.handler.intake.is_on = is_on
    at = 0
    while at < len(padded):
        at = readout.handler.shared_frames_arrived(memoryview(padded), at, NEVER_NS)


def from_memory_in_python(readout: Readout, frames: Sequence[bytes]) -> None:
    """The same range, taken by the rules in Python."""
    from_memory(readout, frames, is_on=False)


def seen(effects: Sequence[Effect]) -> list[object]:
    """Effects, with the places of the fragments of closed MEPs.

    Compiled code refuses further copies of a fragment that is in its MEP, or too late for it, without an effect: the
    first sound copy is answered, and a damaged one needs no answer.
    """
    answered: set[Effect] = set()
    found: list[object] = []
    for effect in effects:
        if isinstance(effect, CloseMep):
            found.append((repr(effect), effect.record.fragments.tolist(), effect.record.missing))
        elif isinstance(effect, Reject) and effect.reason in OF_COPIES and not effect.resend:
            if effect.reason is not RejectReason.BAD_CRC and effect not in answered:
                found.append(repr(effect))
            answered.add(effect)
        else:
            found.append(repr(effect))
    return found


class Input:
    """Frames and stimuli for two readouts; all follows from the seed."""

    def __init__(self, seed: int, builder: EventBuilder, *, has_strangers: bool) -> None:
        self.builder = builder
        self.has_strangers = has_strangers
        self.rng = Random(seed)
        self.source = FrameSource(EVENTS, 12)
        self.sent: deque[bytes] = deque(maxlen=64)
        self.queue: deque[tuple[int, int]] = deque()
        self.run = RUN
        self.next_mep = 0
        self.sealed: deque[Batch] = deque()

    def frames(self) -> list[bytes]:
        return [self._of_anyone(self._frame()) for _ in range(self.rng.randrange(1, 12))]

    def _of_anyone(self, frame: bytes) -> bytes:
        if not self.has_strangers or self.rng.randrange(4):
            return frame
        changed = bytearray(frame)
        changed[TOKEN_AT : TOKEN_AT + 8] = STRANGER.to_bytes(8, "little")
        return bytes(changed)

    def _frame(self) -> bytes:
        rng = self.rng
        if rng.randrange(4) and (self.queue or self.builder.window.outstanding > 1):
            if not self.queue:
                # Two MEPs with interleaved fragments.
                meps = self.next_mep, self.next_mep + 1
                fragments = [(mep, source) for mep in meps for source in SOURCES]
                rng.shuffle(fragments)
                # Some never come.
                self.queue.extend(fragments[rng.choice((0, 0, 0, 1, 3)) :])
                self.next_mep += 2
            frame = self.source.frame(rng, self.run, *self.queue.popleft())
        elif self.sent and rng.randrange(3) == 0:
            frame = bytearray(rng.choice(self.sent) if rng.randrange(2) else self.sent[-1])
            if frame and not rng.randrange(4):
                frame[-1] ^= 1
        else:
            mep = max(
                0, self.next_mep + rng.choice((-40, -3, -2, -1, 0, 1, 63, 64, 1 << 40, (1 << 63) - self.next_mep))
            )
            run = self.run if rng.randrange(6) else rng.choice((0, self.run + 1, (1 << 32) - 1))
            events = None if rng.randrange(4) else rng.choice((1, EVENTS - 1, EVENTS + 1, 30))
            frame = self.source.frame(rng, run, mep, rng.choice((*SOURCES, 0, 3, 65_534)), events=events)
            if rng.randrange(2):
                mutate_frame(rng, frame)
        self.sent.append(bytes(frame))
        return bytes(frame)

    def stimulus(self) -> Stimulus | None:
        rng = self.rng
        kind = rng.randrange(20)
        if self.sealed and kind < 10:
            return SlotFreed(self.sealed[0].slot)
        if kind < 13:
            return Tick()
        if kind < 16:
            return AcknowledgedBelow(max(0, self.next_mep - rng.randrange(2, 8)))
        if kind == 16:
            first = max(0, self.next_mep - rng.randrange(4))
            return RevokeMeps(((first, first + 1),))
        if kind == 17:
            return ReturnMeps(((0, self.next_mep),))
        if kind == 18:
            return CloseOpen()
        return None


def drive(seed: int, steps: int, arrive: Arrive, oracle: Arrive, compiled: Readout, python: Readout) -> None:
    """Both readouts get the same; AssertionError names seed and step after which they differ."""
    given = Input(seed, compiled.builder, has_strangers=compiled.refusal is refuses_strangers)
    both = (compiled, arrive), (python, oracle)
    for readout, _ in both:
        readout.stimulate(StartRun(RUN, SOURCES, 0, EVENTS))
    for step in range(steps):
        where = f"seed {seed}, step {step}"
        if given.rng.randrange(3):
            frames = given.frames()
            for readout, take in both:
                take(readout, frames)
        else:
            passed_ns = given.rng.choice((0, 1, 5, 25, 60))
            stimulus = given.stimulus()
            for readout, _ in both:
                readout.now += passed_ns
                if stimulus is not None:
                    readout.stimulate(stimulus)
            if isinstance(stimulus, SlotFreed):
                batch = given.sealed.popleft()
                for readout, _ in both:
                    readout.stimulate(MepsAcknowledged(tuple(mep.mep for mep in batch.meps)))
        assert seen(compiled.effects) == seen(python.effects), where
        assert compiled.state() == python.state(), where
        # Frames behind a damaged one are copied twice when they are copied together with it.
        assert compiled.copy_threads > 1 or compiled.memory == python.memory, where
        assert closes(accounting(compiled.counters, compiled.builder)), where
        given.sealed += [effect.batch for effect in compiled.effects if isinstance(effect, SealSlot)]
        for readout, _ in both:
            readout.effects.clear()
            for memory in readout.memory:
                assert memory[:64] == memory[-64:] == bytes([GUARD]) * 64, where


def counted_in_compiled_code(monkeypatch: pytest.MonkeyPatch, readout: Readout) -> list[int]:
    """A list that gets the MEPs that are completed without a last fragment in Python."""
    complete: list[int] = []
    taken = readout.handler.taken

    def noted(outcome: Outcome) -> None:
        if outcome is Outcome.COMPLETE:
            complete.append(readout.handler.intake.last_mep)
        taken(outcome)

    monkeypatch.setattr(readout.handler, "taken", noted)
    return complete


@pytest.mark.parametrize(
    "seed", [*COVERING, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(len(COVERING), 600))]
)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("refusal", RULES)
def test_frames_of_shared_memory_are_handled_as_in_python(
    monkeypatch: pytest.MonkeyPatch, seed: int, threads: int, refusal: Refusal
) -> None:
    compiled = Readout(threads, refusal)
    complete = counted_in_compiled_code(monkeypatch, compiled)
    drive(seed, STEPS, from_memory, from_memory_in_python, compiled, Readout(refusal=refusal))
    assert seed not in COVERING or len(complete) > STEPS // 40, complete


@pytest.mark.loopback
@pytest.mark.parametrize(
    "seed", [*COVERING, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(len(COVERING), 600))]
)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("refusal", RULES)
async def test_frames_of_the_socket_are_handled_as_in_python(
    monkeypatch: pytest.MonkeyPatch, seed: int, threads: int, refusal: Refusal
) -> None:
    compiled = Readout(threads, refusal)
    complete = counted_in_compiled_code(monkeypatch, compiled)
    with zmq.Context() as context, context.socket(zmq.PUSH) as feeder:
        receiver = Receiver(
            context, "inproc://data", compiled.handler, max_frame_bytes=MAX_FRAME_BYTES, received=ReceivedInput()
        )
        receiver.start(asyncio.get_running_loop())
        feeder.connect("inproc://data")

        def through_the_socket(_readout: Readout, frames: Sequence[bytes]) -> None:
            for frame in frames:
                feeder.send(frame)
            while not receiver.read():
                pass

        drive(seed, STEPS, through_the_socket, in_python, compiled, Readout(refusal=refusal))
        receiver.close()
    assert seed not in COVERING or len(complete) > STEPS // 40, complete


def frame_of_size(source: int, size: int) -> bytes:
    """A frame of MEP 0 whose MFP has this size."""
    types, rest = [1] * EVENTS, [b""] * (EVENTS - 1)
    empty = len(encode_mfp(source_id=source, event_id=0, version=1, types=types, fragments=[b"", *rest], align=2))
    fragments = [bytes(size - empty), *rest]
    mfp = encode_mfp(source_id=source, event_id=0, version=1, types=types, fragments=fragments, align=2)
    assert len(mfp) == size
    return encode_frame(mfp, run=RUN, mep_id=0, source_id=source)


@pytest.mark.parametrize("excess", [-4, 0, 4, 64])
@pytest.mark.parametrize("arrive", [from_memory, from_memory_in_python, in_python])
def test_an_open_mep_is_filled_to_its_bound_and_no_further(
    monkeypatch: pytest.MonkeyPatch, arrive: Arrive, excess: int
) -> None:
    """The sizes of MFPs are multiples of 4 bytes."""
    readout = Readout()
    readout.stimulate(StartRun(RUN, SOURCES, 0, EVENTS))
    *before, last = SOURCES[:4]
    sizes = (320, 320, 128)
    arrive(readout, [frame_of_size(source, size) for source, size in zip(before, sizes, strict=True)])
    assert readout.builder.open[0].arrived.bytes == sum(sizes)
    # Without it compiled code would leave the frame to the check of permissions.
    readout.senders.permit(last, 0)
    left_to_python: list[bytes] = []
    taken = readout.handler.frame_arrived

    def noted(frame: bytes, *, is_shared: bool = False) -> bool:
        left_to_python.append(bytes(frame))
        return taken(frame, is_shared=is_shared)

    monkeypatch.setattr(readout.handler, "frame_arrived", noted)
    arrive(readout, [frame_of_size(last, MEP_BYTES - sum(sizes) + excess)])
    fits = excess <= 0
    assert readout.builder.open[0].n_fragments == 3 + fits
    rejected = {reason: n for reason, n in readout.counters.fragments_rejected.items() if n}
    assert rejected == ({} if fits else {RejectReason.OVERSIZED: 1})
    assert len(left_to_python) == (0 if arrive is from_memory and fits else 1)


def test_frames_for_a_recorder_are_left_to_python() -> None:
    readout = Readout()
    readout.stimulate(StartRun(RUN, SOURCES, 0, EVENTS))
    source = FrameSource(EVENTS, 12)
    from_memory(readout, [bytes(source.frame(Random(1), RUN, 0, SOURCES[0]))], is_on=False)
    assert readout.handler.intake.take_counts() == (0, 0)
    assert readout.builder.open[0].n_fragments == 1


def test_a_range_is_paused_when_its_time_is_over_and_continued_later() -> None:
    readout = Readout()
    readout.stimulate(StartRun(RUN, SOURCES, 0, EVENTS))
    frame = bytes(FrameSource(EVENTS, 12).frame(Random(1), RUN, 0, SOURCES[0]))
    readout.handler.begin_turn()
    assert readout.handler.shared_frames_arrived(memoryview(frame), 0, time.monotonic_ns()) == 0
    assert readout.counters.fragments_received == 0
    assert readout.handler.shared_frames_arrived(memoryview(frame), 0, NEVER_NS) == len(frame)
    assert readout.counters.fragments_received == 1


def test_finished_fragments_and_meps_leave_no_objects_behind() -> None:
    readout = Readout()
    readout.stimulate(StartRun(RUN, SOURCES, 0, EVENTS))
    source = FrameSource(EVENTS, 12)
    rng = Random(1)

    def take(meps: range) -> None:
        for mep in meps:
            from_memory(readout, [bytes(source.frame(rng, RUN, mep, each)) for each in SOURCES])
            readout.now += 50
            readout.stimulate(Tick())
            batches = [effect.batch for effect in readout.effects if isinstance(effect, SealSlot)]
            readout.effects.clear()
            for batch in batches:
                readout.stimulate(SlotFreed(batch.slot))
                readout.stimulate(MepsAcknowledged(tuple(each.mep for each in batch.meps)))
            readout.stimulate(AcknowledgedBelow(mep))

    take(range(1000))
    gc.collect()
    blocks, resident = sys.getallocatedblocks(), Process().memory_info().rss
    take(range(1000, 3000))
    gc.collect()
    assert readout.counters.fragments_built >= 2990 * len(SOURCES)
    assert sys.getallocatedblocks() - blocks < 2000
    assert Process().memory_info().rss - resident < 4 << 20


@pytest.mark.parametrize("take", [in_python, from_memory])
def test_error_banks_of_accepted_fragments_are_counted_by_type_and_source(take: Callable[..., None]) -> None:
    readout = Readout()
    readout.stimulate(StartRun(RUN, SOURCES, 0, EVENTS))
    types = dict(
        zip(SOURCES, ((1, 1, 1, 1), (2, 1, 2, 254), (254,) * 4, (1, 1, 1, 2), (255, 2, 255, 255)), strict=True)
    )

    def frames(mep: int) -> list[bytes]:
        mfps = {
            source: encode_mfp(
                source_id=source,
                event_id=mep * EVENTS,
                version=1,
                types=of_source,
                fragments=[b"" if each == NO_BANK else b"x" for each in of_source],
            )
            for source, of_source in types.items()
        }
        return [encode_frame(mfp, run=RUN, mep_id=mep, source_id=source) for source, mfp in mfps.items()]

    damaged = bytearray(frames(1)[1])
    damaged[-1] ^= 1
    # A second copy and a damaged frame are refused and not counted.
    take(readout, [*frames(0), frames(0)[1], *frames(1)[:1], bytes(damaged), *frames(1)[1:]])
    assert dict(readout.counters.error_banks()) == {
        ("MISSING", 2): 4,
        ("THROTTLED", 2): 2,
        ("THROTTLED", 70): 8,
        ("MISSING", 4096): 2,
        ("MISSING", 65_535): 2,
    }


def test_without_error_types_no_error_bank_is_counted() -> None:
    readout = Readout()
    readout.counters.set_error_types({})
    readout.stimulate(StartRun(RUN, SOURCES, 0, EVENTS))
    source, rng = FrameSource(EVENTS, 12), Random(1)
    from_memory(readout, [bytes(source.frame(rng, RUN, 0, each)) for each in SOURCES])
    assert readout.counters.fragments_built == len(SOURCES)
    assert dict(readout.counters.error_banks()) == {}
