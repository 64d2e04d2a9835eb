"""The clock of deadlines on feeders: it does not count time without reading."""

from hypothesis import given
from hypothesis import strategies as st

from hltnode.daemon.readout.reading_clock import (
    ALLOWANCE_NS,
    CATCH_UP_NS,
    LONGEST_STEP_NS,
    STANDING_TICK_NS,
    ReadingClock,
)

MS = 1_000_000
SECOND = 1_000_000_000
TICK = 5 * MS


class Loop:
    """An event loop that ticks and can be blocked."""

    def __init__(self) -> None:
        self.true_ns = 100 * SECOND
        self.clock = ReadingClock(lambda: self.true_ns)

    def tick(self, seconds: float = 0.005, *, drained: bool = True) -> int:
        self.true_ns += int(seconds * SECOND)
        self.clock.read()
        return self.clock.tick(drained=drained)

    def sleep(self, seconds: float, stopped: float = 0.0) -> int:
        """Sleep, and wake later by the time for which the process was stopped."""
        delay_ns = self.clock.sleep(self.clock.now_ns + int(seconds * SECOND), 3600 * SECOND)
        return self.tick(delay_ns / SECOND + stopped)

    def passes(self, seconds: float, *, drained: bool = True) -> float:
        """Seconds that the clock counts while the loop ticks for this time."""
        before = self.clock.now_ns
        for _ in range(round(seconds / 0.005)):
            self.tick(drained=drained)
        return (self.clock.now_ns - before) / SECOND


def test_the_clock_follows_the_true_clock_while_sockets_are_read() -> None:
    loop = Loop()
    assert loop.passes(3.0) == 3.0
    assert loop.clock.now_ns == loop.true_ns


def test_a_stop_of_any_length_is_not_counted_and_its_input_has_time_to_arrive() -> None:
    for seconds in (0.1, 1.0, 30.0, 3600.0):
        loop = Loop()
        loop.passes(3.0)
        before = loop.clock.now_ns
        assert loop.tick(seconds) == before
        catching_up = min(seconds, CATCH_UP_NS / SECOND)
        assert loop.passes(catching_up) <= 0.005
        assert loop.passes(1.0) >= 0.99


def test_input_that_waits_after_a_stop_is_read_before_time_passes() -> None:
    loop = Loop()
    loop.passes(3.0)
    before = loop.clock.now_ns
    loop.tick(10.0, drained=False)
    assert loop.passes(1.0, drained=False) == 0.0
    loop.tick()
    assert loop.passes(0.5) >= 0.49
    assert loop.clock.now_ns - before < 0.6 * SECOND


def test_a_socket_that_is_never_empty_cannot_postpone_a_deadline_forever() -> None:
    loop = Loop()
    loop.passes(10.0)
    assert loop.passes(ALLOWANCE_NS / SECOND, drained=False) <= 0.005
    assert loop.passes(10.0, drained=False) >= 4.9


def test_a_loop_of_slow_turns_still_reaches_its_deadlines() -> None:
    loop = Loop()
    before = loop.clock.now_ns
    for _ in range(200):
        loop.tick(0.4)
    assert loop.clock.now_ns - before >= 200 * LONGEST_STEP_NS // 2 - ALLOWANCE_NS


def test_the_sleep_of_the_loop_is_counted() -> None:
    loop = Loop()
    for seconds in (0.001, 0.04, 0.5, 5.0):
        before = loop.clock.now_ns
        assert loop.sleep(seconds) - before == int(seconds * SECOND)
    assert loop.clock.now_ns == loop.true_ns


def test_a_stop_of_a_sleeping_loop_is_not_counted() -> None:
    for seconds in (0.1, 30.0):
        loop = Loop()
        loop.passes(3.0)
        before = loop.clock.now_ns
        assert loop.sleep(0.025, stopped=seconds) - before <= 0.025 * SECOND
        assert loop.passes(min(seconds, CATCH_UP_NS / SECOND)) <= 0.005


def test_no_sleep_is_longer_than_a_tick_while_the_clock_stands_still() -> None:
    loop = Loop()
    loop.tick(30.0)
    assert loop.clock.sleep(loop.clock.now_ns + SECOND, SECOND) <= STANDING_TICK_NS
    for _ in range(CATCH_UP_NS // STANDING_TICK_NS + 1):
        loop.sleep(10.0)
    before = loop.clock.now_ns
    assert loop.sleep(1.0) - before == SECOND


def test_times_of_the_clock_are_converted_to_true_times() -> None:
    loop = Loop()
    loop.passes(1.0)
    assert loop.clock.true_time_of(loop.clock.now_ns) == loop.true_ns
    loop.tick(30.0)
    assert loop.clock.true_time_of(loop.clock.now_ns - 5) == loop.true_ns - 5


@given(st.lists(st.tuples(st.integers(0, 100), st.sampled_from((1, 1, 1, 300)), st.booleans()), max_size=200))
def test_the_clock_never_goes_back_and_is_never_ahead(steps: list[tuple[int, int, bool]]) -> None:
    loop = Loop()
    for milliseconds, times, drained in steps:
        before = loop.clock.now_ns
        after = loop.tick(milliseconds * times / 1000, drained=drained)
        assert before <= after <= loop.true_ns
        assert after - before <= 2 * LONGEST_STEP_NS
