"""Millions of wrong frames and control messages: each is counted in one class, nothing breaks, nothing grows."""

import multiprocessing
import os
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import pytest

from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.readout import frame_handler
from hltnode.daemon.readout.feeder_protocol import FeederProtocol
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.fragment_frame import copy_mfp
from tests.daemon.readout.hostile_input import MAX_GROWTH, Outcome, drive_chunk
from tests.daemon.readout.mutations import MESSAGE_NAMES

# HLTNODE_MUTATIONS=1000000 makes the slow test shorter.
MUTATIONS = int(os.environ.get("HLTNODE_MUTATIONS", 10_000_000))
CHUNK = 50_000
# The wire has no checksum but the CRC, and these frames are shorter than the largest bank.
REASONS = {reason.value for reason in set(RejectReason) - {RejectReason.BAD_CHECKSUM, RejectReason.BANK_TOO_LARGE}}


def test_thousands_of_mutations_are_each_counted_in_one_class_and_break_nothing() -> None:
    outcome = drive_chunk(20261126, 4000)
    assert outcome.frames["built"] > 100
    assert set(outcome.frames) >= REASONS
    assert set(outcome.messages) >= MESSAGE_NAMES


def writes_beyond(frame: bytes, slot: memoryview, offset: int) -> bool:
    right = copy_mfp(frame, slot, offset)
    slot[offset + len(frame) - 40] ^= 1
    return right


def takes_any_crc(frame: bytes, slot: memoryview, offset: int) -> bool:
    copy_mfp(frame, slot, offset)
    return True


def counts_twice(self: EventBuilder, *fragment: object) -> object:
    self.counters.fragments_rejected[RejectReason.LATE] += 1
    return reject(self, *fragment)  # type: ignore[arg-type]


def raises(self: FeederProtocol, identity: bytes, message: object) -> None:
    raise KeyError(identity)


reject = EventBuilder.reject


@pytest.mark.parametrize(
    ("owner", "name", "defect"),
    [
        (frame_handler, "copy_mfp", writes_beyond),
        (frame_handler, "copy_mfp", takes_any_crc),
        (EventBuilder, "reject", counts_twice),
        (FeederProtocol, "message_arrived", raises),
    ],
    ids=lambda it: getattr(it, "__name__", str(it)),
)
def test_a_defect_is_found_and_the_seed_of_its_mutation_named(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, defect: Callable[..., object]
) -> None:
    monkeypatch.setattr(owner, name, defect)
    with pytest.raises(AssertionError, match="seed 7"):
        # With this seed mutation 7712 is the first that shows a CRC that is not checked.
        drive_chunk(7, 10_000)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_ten_million_mutations_are_each_counted_in_one_class_and_break_nothing() -> None:
    first = secrets.randbelow(1 << 40)
    sizes = [min(CHUNK, MUTATIONS - done) for done in range(0, MUTATIONS, CHUNK)]
    frames: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    resident: defaultdict[int, list[int]] = defaultdict(list)
    workers = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        outcomes: list[Outcome] = list(pool.map(drive_chunk, range(first, first + len(sizes)), sizes))
    for outcome in outcomes:
        frames += outcome.frames
        messages += outcome.messages
        resident[outcome.process].append(outcome.resident)
    print(f"seeds from {first}: {dict(frames)}, {dict(messages)}")
    print(f"resident bytes of each worker: {[(of[0], of[-1], max(of)) for of in resident.values()]}")
    assert sum(outcome.mutations for outcome in outcomes) == MUTATIONS
    assert frames["received"] == sum(frames.values()) - frames["received"]
    assert set(frames) >= REASONS
    assert set(messages) >= MESSAGE_NAMES
    assert all(of[-1] - of[0] < MAX_GROWTH for of in resident.values())
