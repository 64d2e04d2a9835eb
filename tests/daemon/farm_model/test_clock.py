"""The clock of the model: calls in the order of their times, and of `call_at` at the same time."""

import gc

import pytest

from hltnode.daemon.farm_model.clock import Clock


def test_calls_come_by_time_and_those_of_one_time_in_their_order() -> None:
    clock, calls = Clock(), list[tuple[int, str]]()
    for time_ns, name in ((20, "c"), (10, "a"), (20, "d"), (10, "b")):
        clock.call_at(time_ns, lambda name: calls.append((clock.now_ns, name)), name)
    clock.run()
    assert calls == [(10, "a"), (10, "b"), (20, "c"), (20, "d")]
    assert clock.calls == 4


def test_a_call_can_ask_for_another_one_at_its_own_time() -> None:
    clock, calls = Clock(), list[int]()

    def again(left: int) -> None:
        calls.append(clock.now_ns)
        if left:
            clock.call_at(clock.now_ns, again, left - 1)

    clock.call_at(5, again, 2)
    clock.run()
    assert calls == [5, 5, 5]


def test_a_run_ends_before_the_calls_of_its_last_time() -> None:
    clock, calls = Clock(), list[int]()
    for time_ns in (9, 10, 11):
        clock.call_at(time_ns, calls.append, time_ns)
    clock.run(10)
    assert (calls, clock.now_ns) == ([9], 10)
    clock.run(30)
    assert (calls, clock.now_ns) == ([9, 10, 11], 30)


def test_a_call_before_the_present_time_is_refused() -> None:
    clock = Clock()
    clock.run(10)
    clock.call_at(10, print)
    with pytest.raises(ValueError, match="a call at 9 ns, but the model is at 10 ns"):
        clock.call_at(9, print)


def test_the_clock_never_goes_back() -> None:
    clock = Clock()
    clock.run(10)
    clock.run(10)
    with pytest.raises(ValueError, match="a run until 9 ns, but the model is at 10 ns"):
        clock.run(9)
    assert clock.now_ns == 10


def test_a_run_that_fails_leaves_the_garbage_collector_on() -> None:
    clock, was_enabled = Clock(), list[bool]()

    def fail(_: object) -> None:
        was_enabled.append(gc.isenabled())
        raise RuntimeError

    clock.call_at(1, fail)
    with pytest.raises(RuntimeError):
        clock.run()
    assert (was_enabled, gc.isenabled()) == ([False], True)
