"""Memory of a feeder that nodes read: places of MEPs, reuse of places, and refused calls."""

import mmap
import os
import random
import threading
import time

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.client.mep import FeedMep
from hltnode.client.shared_memory import LARGEST_PART, SharedMemory, SharedMemoryError
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.shared_memory import FRAME_ALIGNMENT

PAGE = mmap.PAGESIZE


def mep_of(sources: range, size: int = 100) -> FeedMep:
    return FeedMep.of_mfps(
        0,
        0,
        {
            source: encode_mfp(source_id=source, event_id=0, version=1, types=[1], fragments=[bytes(size)])
            for source in sources
        },
    )


def test_what_is_allocated_never_overlaps_and_all_of_it_is_free_again_at_the_end() -> None:
    memory = SharedMemory(64 * PAGE)
    rng = random.Random(1)
    held: list[tuple[int, NDArray[np.uint8]]] = []
    for step in range(3000):
        if held and rng.random() < 0.5:
            mark, array = held.pop(rng.randrange(len(held)))
            assert (array == mark % 256).all()
            del array
        array_or_none = memory.try_allocate(rng.randrange(1, 8 * PAGE))
        if array_or_none is not None:
            array_or_none[:] = step % 256
            offset = memory.offset_of(array_or_none.data)
            assert offset is not None
            assert offset % FRAME_ALIGNMENT == 0
            held.append((step, array_or_none))
            del array_or_none
    assert all((array == mark % 256).all() for mark, array in held)
    held.clear()
    array_or_none = None
    # The largest allowed MEP fits the expected number of times while no MEP is held.
    largest = [memory.try_allocate(memory.nbytes // LARGEST_PART) for _ in range(LARGEST_PART)]
    assert all(array is not None for array in largest)
    assert memory.try_allocate(1) is None


def test_a_view_of_a_fragment_keeps_its_place() -> None:
    memory = SharedMemory(8 * PAGE)
    places = [memory.try_allocate(PAGE) for _ in range(8)]
    first = places[0]
    assert first is not None
    fragment = first.data[10:20]
    del first
    places.clear()
    assert [memory.try_allocate(PAGE) is None for _ in range(1)] == [False]
    again = [memory.try_allocate(PAGE) for _ in range(8)]
    assert sum(array is not None for array in again) == 7
    del fragment
    assert memory.try_allocate(PAGE) is not None


def test_a_thread_that_needs_room_gets_it_when_something_is_acknowledged() -> None:
    memory = SharedMemory(8 * PAGE)
    held = [memory.allocate(PAGE) for _ in range(8)]
    got: list[NDArray[np.uint8]] = []
    thread = threading.Thread(target=lambda: got.append(memory.allocate(PAGE)))
    thread.start()
    time.sleep(0.05)
    assert not got
    assert memory.try_allocate(PAGE) is None
    held.pop(3)
    thread.join(10)
    assert memory.offset_of(got[0].data) == 3 * PAGE


def test_the_end_of_the_memory_wakes_the_thread_that_waits_for_room() -> None:
    memory = SharedMemory(8 * PAGE)
    held = [memory.allocate(PAGE) for _ in range(8)]
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            memory.allocate(PAGE)
        except SharedMemoryError as error:
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.02)
    memory.close()
    thread.join(10)
    assert "is closed" in str(raised[0])
    with pytest.raises(SharedMemoryError, match="is closed"):
        memory.allocate(1)
    assert len(held) == 8


def test_a_mep_too_large_to_always_find_a_place_is_refused_with_advice() -> None:
    memory = SharedMemory(16 * PAGE)
    with pytest.raises(SharedMemoryError, match=r"needs shared memory of .*feed fewer events per MEP.*--segment-mib"):
        memory.allocate(2 * PAGE + 1)
    assert memory.allocate(2 * PAGE) is not None


def test_memory_that_the_system_does_not_have_is_an_error() -> None:
    with pytest.raises(SharedMemoryError, match="are free on this machine"):
        SharedMemory(1 << 62).fileno()


def test_a_mep_is_copied_into_the_memory_once_and_its_frames_follow_one_another() -> None:
    memory = SharedMemory(16 * PAGE)
    mep = mep_of(range(10))
    before = {source: bytes(frame) for source, frame in mep.frames(1, 0).items()}
    assert mep.move_to(memory)
    frames = mep.frames(1, 0)
    assert {source: bytes(frame) for source, frame in frames.items()} == before
    at = memory.offset_of(frames[0])
    assert at is not None
    for frame in frames.values():
        assert memory.offset_of(frame) == at
        at = -(-(at + len(frame)) // FRAME_ALIGNMENT) * FRAME_ALIGNMENT
    place = memory.offset_of(mep.frames(1, 0)[0])
    assert mep.move_to(memory)
    assert memory.offset_of(mep.frames(1, 0)[0]) == place


def test_a_mep_stays_where_it_is_while_the_memory_is_full() -> None:
    memory = SharedMemory(8 * PAGE)
    held = [memory.allocate(PAGE) for _ in range(8)]
    mep = mep_of(range(2))
    assert not mep.move_to(memory)
    assert memory.offset_of(mep.frames(1, 0)[0]) is None
    held.pop()
    assert mep.move_to(memory)


def test_the_memory_cannot_shrink_grow_or_lose_pages_and_readers_cannot_write() -> None:
    memory = SharedMemory(8 * PAGE)
    file = memory.fileno()
    for nbytes in (0, PAGE, 16 * PAGE):
        with pytest.raises(PermissionError):
            os.ftruncate(file, nbytes)
    with pytest.raises(PermissionError):
        os.pwrite(file, b"x", 0)
    with pytest.raises(PermissionError):
        mmap.mmap(file, PAGE, flags=mmap.MAP_SHARED)
    memory.allocate(4)[:] = 7
    assert os.pread(file, 4, 0) == bytes([7]) * 4


def test_adjacent_frames_are_one_range_and_others_are_separate_ranges() -> None:
    memory = SharedMemory(16 * PAGE)
    mep = mep_of(range(10))
    assert mep.move_to(memory)
    frames = list(mep.frames(1, 0).values())
    first, second, last = memory.offset_of(frames[0]), memory.offset_of(frames[1]), memory.offset_of(frames[9])
    assert first is not None
    assert second is not None
    assert last is not None
    whole = first, last + len(frames[9]) - first
    assert memory.ranges_of(list(frames), 10) == ([whole], 10)
    apart = [frames[0], frames[2], frames[3], frames[1]]
    ranges, n = memory.ranges_of(list(apart), 10)
    assert (len(ranges), n) == (3, 4)
    assert ranges[0] == (first, len(frames[0]))
    assert ranges[2] == (second, len(frames[1]))
    assert memory.ranges_of(list(apart), 2)[1] == 3
    elsewhere = bytes(frames[1])
    assert memory.ranges_of([frames[0], elsewhere, frames[2]], 10) == ([(first, len(frames[0]))], 1)
    assert memory.ranges_of([elsewhere], 10) == ([], 0)
    assert memory.ranges_of([], 10) == ([], 0)


def test_a_source_that_a_mep_lacks_is_named() -> None:
    with pytest.raises(ValueError, match="MEP 0 lacks source 9"):
        mep_of(range(3)).frames(1, 0, (0, 1, 9))
