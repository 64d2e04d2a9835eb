"""The bound on the data between gathering and acknowledgement."""

import threading

from hltnode.daemon.output.output_queue import MAX_BATCHES, OutputQueue


def waits(room: OutputQueue) -> threading.Thread:
    """A thread that waits for room, when it does."""
    thread = threading.Thread(target=room.wait_for_room)
    thread.start()
    while not room.is_full:
        assert thread.is_alive(), "there was room"
    return thread


def test_a_batch_waits_while_the_bytes_of_the_queue_are_used_up() -> None:
    room = OutputQueue(max_bytes=100)
    room.wait_for_room()
    room.put(150)
    waiting = waits(room)
    room.take(150)
    waiting.join(10)
    assert not waiting.is_alive()
    assert (room.nbytes, room.batches, room.is_full) == (0, 0, False)


def test_a_batch_waits_while_many_small_ones_are_not_acknowledged() -> None:
    room = OutputQueue(max_bytes=100)
    for _ in range(MAX_BATCHES):
        room.wait_for_room()
        room.put(0)
    waiting = waits(room)
    room.take(0)
    waiting.join(10)
    assert not waiting.is_alive()


def test_nothing_waits_when_the_node_stops() -> None:
    room = OutputQueue(max_bytes=1)
    room.put(2)
    waiting = waits(room)
    room.lift()
    waiting.join(10)
    assert not waiting.is_alive()
    room.wait_for_room()
