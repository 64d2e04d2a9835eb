"""Frames in shared memory that their feeder changes during the copy: the copy in the slot is checked."""

import struct
import threading
import time
from collections.abc import Callable

import pytest

from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.stimuli_and_effects import CloseMep, Effect, Place, Reject
from hltnode.protocol.errors import ProtocolError, RejectReason
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.transport.frame_header import HEADER_SIZE, encode_frame
from tests.daemon.readout.test_frame_handler import EVENTS, GUARD, RUN, SLOT_BYTES, SOURCES, Bench, frame_of, mfp_of

SIZES_AT = HEADER_SIZE + 20 + EVENTS


def resealed(mfp: bytes, source: int = SOURCES[0], mep: int = 0) -> bytes:
    """A frame with a right CRC, whatever the MFP."""
    return encode_frame(mfp, run=RUN, mep_id=mep, source_id=source)


def with_sizes(first: int) -> bytes:
    """A frame that differs only in the size of its first fragment."""
    mfp = bytearray(mfp_of(0, SOURCES[0]))
    struct.pack_into("<H", mfp, SIZES_AT - HEADER_SIZE, first)
    return resealed(bytes(mfp))


def with_events(n: int) -> bytes:
    mfp = bytearray(mfp_of(0, SOURCES[0]))
    struct.pack_into("<H", mfp, 2, n)
    return resealed(bytes(mfp))


def of_other_source() -> bytes:
    return resealed(mfp_of(0, SOURCES[1]), source=SOURCES[0])


def take(bench: Bench, memory: bytearray, change: Callable[[], None]) -> list[Effect]:
    """Handle a frame that changes between check and copy."""
    place_for = bench.builder.place_for

    def changed_meanwhile(*arguments: int) -> Place | RejectReason:
        found = place_for(*arguments)
        change()
        return found

    bench.effects = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench.builder, "place_for", changed_meanwhile)
        bench.handler.frame_arrived(memoryview(memory).toreadonly(), is_shared=True)
    assert closes(accounting(bench.counters, bench.builder))
    return bench.effects


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        (with_sizes(0xFFFF), RejectReason.BAD_SIZE),
        (with_sizes(0), RejectReason.BAD_SIZE),
        (with_events(EVENTS + 1), RejectReason.BAD_SIZE),
        (with_events(0xFFFF), RejectReason.BAD_SIZE),
        (with_events(0), RejectReason.BAD_SIZE),
        (of_other_source(), RejectReason.MALFORMED),
        (frame_of(1, SOURCES[0]), RejectReason.MALFORMED),
        (frame_of(0, SOURCES[0])[:-1] + b"\xff", RejectReason.BAD_CRC),
        (bytes(len(frame_of(0, SOURCES[0]))), RejectReason.BAD_CRC),
        (frame_of(0, SOURCES[0], size=1000)[: len(frame_of(0, SOURCES[0]))], RejectReason.BAD_CRC),
    ],
)
def test_a_frame_that_changes_between_check_and_copy_is_refused_and_leaves_no_trace(
    then: bytes, reason: RejectReason
) -> None:
    bench = Bench()
    memory = bytearray(frame_of(0, SOURCES[0]))
    assert len(then) == len(memory)
    before = bench.state()

    def change() -> None:
        memory[:] = then

    effects = take(bench, memory, change)
    assert effects == [Reject(RUN, reason, SOURCES[0], 0, resend=reason is RejectReason.BAD_CRC)]
    assert bench.state() == before
    assert bench.counters.fragments_rejected[reason] == 1
    memory[:] = frame_of(0, SOURCES[0])
    assert take(bench, memory, lambda: None) == []
    assert bench.counters.fragments_received == 2
    assert bench.builder.open[0].n_fragments == 1


def test_a_frame_replaced_by_another_valid_one_is_taken_as_it_was_when_copied() -> None:
    bench = Bench()
    memory = bytearray(frame_of(0, SOURCES[0]))
    mfp = bytearray(mfp_of(0, SOURCES[0]))
    mfp[-1] ^= 0xFF

    def change() -> None:
        memory[:] = resealed(bytes(mfp))

    assert take(bench, memory, change) == []
    assert bytes(bench.slots[0][: len(mfp)]) == mfp


def test_every_fragment_in_a_slot_is_valid_while_its_feeder_changes_all_bytes() -> None:
    frame = frame_of(0, SOURCES[0])
    memory = bytearray(frame)
    versions = [with_sizes(0xFFFF), with_events(0xFFFF), frame, of_other_source(), with_sizes(0), frame]
    ends = threading.Event()

    def keep_changing() -> None:
        while not ends.is_set():
            for version in versions:
                memory[:] = version

    thread = threading.Thread(target=keep_changing)
    thread.start()
    bench = Bench()
    taken = 0
    try:
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            bench.effects = []
            bench.handler.frame_arrived(memoryview(memory).toreadonly(), is_shared=True)
            if not any(isinstance(effect, Reject) for effect in bench.effects):
                taken += 1
                assert not any(isinstance(effect, CloseMep) for effect in bench.effects)
                found = bench.builder.open.get(0)
                if found is not None:
                    for source, offset, size in found.fragments:
                        mfp = Mfp.parse(bytes(bench.slots[found.slot][offset : offset + size]))
                        assert (mfp.source_id, mfp.n_fragments) == (source, EVENTS)
                    bench = Bench()
    except ProtocolError as error:
        pytest.fail(f"an invalid fragment is in a slot: {error}")
    finally:
        ends.set()
        thread.join()
    assert taken
    assert all(slot.count(GUARD) <= SLOT_BYTES for slot in bench.slots)
