"""When held slices leave: answered and old enough, after their time, or because their memory is needed."""

from __future__ import annotations

from hltnode.daemon.combiner.held_slices import HeldSlices, Leaving
from hltnode.daemon.common.vocabulary import HeldEnd

Slices = HeldSlices[str, int]


def ends(found: list[Leaving[str, int]]) -> list[tuple[str, HeldEnd | None, dict[tuple[int, int], int]]]:
    return [(each.item, each.end, each.windows) for each in found]


def test_a_batch_leaves_when_all_its_slices_are_answered_and_it_was_held_long_enough() -> None:
    held = Slices(hold_ns=100, timeout_ns=1000)
    held.put(0, "batch", 10, [(1, 1), (1, 2)])
    assert held.answer((1, 1), 7)
    assert not held.answer((1, 1), 8)
    assert not held.answer((1, 3), 8)
    assert held.due(500) == []
    assert held.next_ns() == 1000
    assert held.answer((1, 2), 9)
    assert held.next_ns() == 100
    assert held.due(99) == []
    assert ends(held.due(100)) == [("batch", HeldEnd.JOINED, {(1, 1): 7, (1, 2): 9})]
    assert (held.nbytes, len(held), held.next_ns()) == (0, 0, None)


def test_a_silent_combiner_costs_the_timeout() -> None:
    held = Slices(hold_ns=0, timeout_ns=1000)
    held.put(5, "batch", 10, [(1, 1), (1, 2)])
    held.answer((1, 2), 3)
    assert held.due(1004) == []
    assert ends(held.due(1005)) == [("batch", HeldEnd.TIMEOUT, {(1, 2): 3})]
    assert not held.answer((1, 1), 4)


def test_the_timeout_is_never_shorter_than_the_time_to_hold() -> None:
    held = Slices(hold_ns=50, timeout_ns=10)
    held.put(0, "batch", 10, [(1, 1)])
    assert held.due(49) == []
    assert ends(held.due(50)) == [("batch", HeldEnd.TIMEOUT, {})]


def test_batches_and_requests_keep_their_order() -> None:
    held = Slices(hold_ns=0, timeout_ns=1000)
    held.put(0, "first", 10, [(1, 1)])
    held.put(1, "request")
    held.put(2, "second", 20, [(1, 2)])
    held.answer((1, 2), 0)
    assert held.due(3) == []
    assert (held.nbytes, held.n_slices) == (30, 2)
    held.answer((1, 1), 0)
    assert [each.item for each in held.due(4)] == ["first", "request", "second"]


def test_the_oldest_batch_leaves_first_if_memory_is_needed() -> None:
    held = Slices(hold_ns=0, timeout_ns=1000)
    assert held.evict() is None
    held.put(0, "first", 10, [(1, 1)])
    held.put(0, "request")
    held.put(0, "second", 20, [(1, 2)])
    assert ends([each for each in [held.evict()] if each]) == [("first", HeldEnd.NO_ROOM, {})]
    assert ends([each for each in [held.evict()] if each]) == [("request", None, {})]
    assert (held.nbytes, held.n_slices) == (20, 1)


def test_an_answered_batch_that_leaves_for_its_memory_lacks_nothing() -> None:
    held = Slices(hold_ns=100, timeout_ns=1000)
    held.put(0, "batch", 10, [(1, 1)])
    held.answer((1, 1), 7)
    assert ends([each for each in [held.evict()] if each]) == [("batch", HeldEnd.JOINED, {(1, 1): 7})]


def test_the_oldest_slices_are_those_of_the_batch_that_leaves_next() -> None:
    held = Slices(hold_ns=0, timeout_ns=1000)
    assert not held.is_oldest((1, 1))
    held.put(0, "first", 10, [(1, 1), (1, 2)])
    held.put(0, "second", 10, [(1, 3)])
    assert [held.is_oldest((1, number)) for number in (1, 2, 3, 4)] == [True, True, False, False]


def test_seeds_without_an_answer_are_sent_again_after_their_time() -> None:
    held = Slices(hold_ns=0, timeout_ns=10_000)
    held.put(0, "first", 10, [(1, 1)])
    held.put(50, "second", 10, [(1, 2)])
    held.put(60, "third", 10, [(1, 3)])
    held.answer((1, 3), 0)

    def send(now_ns: int) -> list[str]:
        found = []
        for each in held.unanswered(now_ns, 100):
            each.sent_ns = now_ns
            found.append(each.item)
        return found

    assert send(99) == []
    assert send(100) == ["first"]
    assert send(150) == ["second"]
    assert send(200) == ["first"]


def test_a_slice_that_is_computed_again_waits_for_itself() -> None:
    held = Slices(hold_ns=0, timeout_ns=10)
    held.put(0, "old", 1, [(1, 1)])
    held.put(5, "new", 1, [(1, 1)])
    assert [each.item for each in held.due(10)] == ["old"]
    assert held.answer((1, 1), 4)
    assert ends(held.due(10)) == [("new", HeldEnd.JOINED, {(1, 1): 4})]


def test_abandoned_batches_are_forgotten_and_requests_are_not() -> None:
    held = Slices(hold_ns=0, timeout_ns=10)
    held.put(0, "batch", 1, [(1, 1)])
    held.put(0, "request")
    assert held.abandon() == ["request"]
    assert (held.nbytes, held.n_slices, held.due(100)) == (0, 0, [])
    assert not held.answer((1, 1), 0)
