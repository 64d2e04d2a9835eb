"""Several threads copy fragments to the same places as one thread."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from hltnode.daemon._native import FragmentIntake, OpenMeps, SenderAnswers, SourceTable
from hltnode.daemon.event_building.stimuli_and_effects import StartRun
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.frame_header import HEADER_SIZE, encode_frame
from tests.daemon.readout.mutations import FrameSource
from tests.daemon.readout.test_fragment_intake import (
    EVENTS,
    NEVER_NS,
    RUN,
    SOURCES,
    STEPS,
    Readout,
    drive,
    from_memory,
    from_memory_in_python,
    in_python,
)

MIB = 1 << 20
EVENT_BYTES = 60_000


def test_consecutive_frames_are_copied_together_and_added_in_order() -> None:
    together, alone = Readout(3), Readout()
    source = FrameSource(EVENTS, 12)
    rng = Random(3)
    frames = [bytes(source.frame(rng, RUN, mep, each)) for mep in range(2) for each in SOURCES]
    for readout in (together, alone):
        readout.stimulate(StartRun(RUN, SOURCES, 0, EVENTS))
        from_memory(readout, frames)
    assert together.counters.fragments_built == len(frames)
    assert together.state() == alone.state()


@pytest.mark.parametrize("damaged", [[1], [2], [1, 2], [1, 3], [3], [4], [1, 2, 3, 4]])
def test_frames_after_a_damaged_one_are_handled_as_one_by_one(damaged: Sequence[int]) -> None:
    together, alone = Readout(3), Readout()
    source = FrameSource(EVENTS, 12)
    rng = Random(4)
    frames = [bytearray(source.frame(rng, RUN, 0, each)) for each in SOURCES]
    for i in damaged:
        frames[i][-1] ^= 1
    for readout, take in ((together, from_memory), (alone, in_python)):
        readout.stimulate(StartRun(RUN, SOURCES, 0, EVENTS))
        take(readout, [bytes(frame) for frame in frames])
        take(readout, [bytes(source.frame(Random(5), RUN, 0, SOURCES[i])) for i in damaged])
    assert together.counters.fragments_rejected[RejectReason.BAD_CRC] == len(damaged)
    assert together.counters.fragments_built == len(SOURCES)
    assert together.state() == alone.state()


@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize("size", [100, 128 << 10, (128 << 10) + 8, MIB + 4])
def test_a_large_fragment_is_copied_in_pieces_and_its_crc_is_that_of_all(threads: int, size: int) -> None:
    n_events = -(-size // EVENT_BYTES)
    meps, sources = OpenMeps(1, 8 * MIB), SourceTable()
    meps.start_run(RUN, [1, 2])
    senders = SenderAnswers()
    senders.permit(1, 0)
    slot = bytearray(8 * MIB)
    intake = FragmentIntake(meps, senders, sources, [memoryview(slot)], 4 * MIB, threads)
    builder = Readout().builder
    builder.handle(0, StartRun(RUN, (1, 2), 0, n_events))
    place = builder.place_for(0, RUN, 1, 5, 8, 0, n_events)
    assert not isinstance(place, RejectReason)
    meps.open(5, 0, 0, n_events, place.record.arrived)
    fragments = [os.urandom(min(EVENT_BYTES, size - at)) for at in range(0, size, EVENT_BYTES)]
    mfp = encode_mfp(source_id=1, event_id=0, version=1, types=bytes(n_events), fragments=fragments)
    frame = bytearray(encode_frame(mfp, run=RUN, mep_id=5, source_id=1))
    assert take(intake, frame) == 1
    assert slot[: len(mfp)] == mfp
    other = bytearray(encode_frame(mfp, run=RUN, mep_id=5, source_id=1))
    for at in (HEADER_SIZE + 100, len(other) - 1, len(other) // 2):
        damaged = bytearray(other)
        damaged[at] ^= 1
        assert take(intake, damaged) == 0


def take(intake: FragmentIntake, frame: bytearray) -> int:
    """Number of handled frames."""
    intake.take_range(memoryview(frame), 0, 0, 0, NEVER_NS)
    return intake.take_counts()[0]


@pytest.mark.alone
def test_the_threads_end_with_their_owner() -> None:
    def copying() -> int:
        return sum(task.joinpath("comm").read_text() == "copy\n" for task in Path("/proc/self/task").iterdir())

    before = copying()
    intake = FragmentIntake(OpenMeps(1, 1), SenderAnswers(), SourceTable(), [], 0, 4)
    end = time.monotonic() + 60
    while copying() != before + 3 and time.monotonic() < end:
        os.sched_yield()
    assert copying() == before + 3
    del intake
    while copying() != before and time.monotonic() < end:
        os.sched_yield()
    assert copying() == before


@pytest.mark.slow
@pytest.mark.parametrize("threads", range(2, 9))
def test_any_number_of_threads_gives_the_result_of_one(threads: int) -> None:
    for seed in range(1000 * threads, 1000 * threads + 40):
        drive(seed, STEPS, from_memory, from_memory_in_python, Readout(threads), Readout())
