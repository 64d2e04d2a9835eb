"""A source is silent when others deliver and it does not."""

from hltnode.daemon._native import SourceCounters
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import BuilderLimits, EndRun, FragmentArrived, StartRun
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.silent_sources import SilentSourceMonitor, SilentSources

SECOND = 1_000_000_000


def sources(**seen: int | None) -> dict[int, SourceCounters]:
    """Sources 1, 2, ... with the second of their last fragment."""
    seconds = (None if at is None else at * SECOND for at in seen.values())
    return {number: SourceCounters(last_seen_ns=at) for number, at in enumerate(seconds, 1)}


def test_a_source_that_stops_while_another_goes_on_falls_silent_and_comes_back() -> None:
    watch = SilentSources(5 * SECOND)
    watch.start_run(0)
    assert watch.look(4 * SECOND, sources(a=4, b=1), None) == (frozenset(), frozenset())
    assert watch.look(6 * SECOND, sources(a=6, b=1), None) == (frozenset({2}), frozenset())
    assert watch.look(7 * SECOND, sources(a=7, b=1), None) == (frozenset(), frozenset())
    assert watch.silent == {2}
    assert watch.look(8 * SECOND, sources(a=8, b=8), None) == (frozenset(), frozenset({2}))


def test_the_time_of_a_source_that_never_delivered_counts_from_the_start_of_the_run() -> None:
    watch = SilentSources(5 * SECOND)
    watch.start_run(100 * SECOND)
    assert watch.look(104 * SECOND, sources(a=104, b=None), None)[0] == frozenset()
    assert watch.look(105 * SECOND, sources(a=105, b=None), None)[0] == {2}


def test_no_source_is_silent_when_none_delivers() -> None:
    watch = SilentSources(5 * SECOND)
    watch.start_run(0)
    watch.look(3 * SECOND, sources(a=3, b=2), None)
    assert watch.look(60 * SECOND, sources(a=3, b=2), None) == (frozenset(), frozenset())


def test_a_silence_lasts_while_no_source_delivers() -> None:
    watch = SilentSources(5 * SECOND)
    watch.start_run(0)
    watch.look(9 * SECOND, sources(a=9, b=1), None)
    watch.look(60 * SECOND, sources(a=9, b=1), None)
    assert watch.silent == {2}


def test_later_sources_of_a_mep_are_not_silent_after_a_common_pause() -> None:
    watch = SilentSources(5 * SECOND)
    watch.start_run(0)
    watch.look(6 * SECOND, sources(a=6, b=6, c=0), None)
    assert watch.silent == {3}
    # Without credit for the next MEP.
    watch.look(14 * SECOND, sources(a=6, b=6, c=0), None)
    assert watch.look(15 * SECOND, sources(a=15, b=6, c=0), None) == (frozenset(), frozenset())
    assert watch.silent == {3}
    assert watch.look(19 * SECOND, sources(a=19, b=6, c=0), None)[0] == frozenset()
    assert watch.look(20 * SECOND, sources(a=20, b=6, c=0), None)[0] == {2}


def test_a_source_that_waits_for_a_slow_one_is_not_silent() -> None:
    watch = SilentSources(5 * SECOND)
    watch.start_run(0)
    # b and c have delivered all that they may, and a is behind in the open MEPs.
    for second in range(2, 60):
        assert watch.look(second * SECOND, sources(a=second, b=1, c=1), {1}) == (frozenset(), frozenset())
    # The next MEP may come: b is the first to deliver it, and c does not.
    for second in range(60, 64):
        assert watch.look(second * SECOND, sources(a=second, b=second, c=1), {1, 3})[0] == frozenset()
    assert watch.look(64 * SECOND, sources(a=64, b=64, c=1), {1, 3})[0] == {3}


def test_a_missing_source_of_the_youngest_mep_is_silent_beside_any_slow_source() -> None:
    watch = SilentSources(5 * SECOND)
    watch.start_run(0)
    for second in range(2, 6):
        watch.look(second * SECOND, sources(a=second, b=1, c=1), {1, 3})
    assert watch.look(6 * SECOND, sources(a=6, b=1, c=1), {1, 3})[0] == {3}


def test_in_a_restarted_run_the_time_of_each_source_counts_again() -> None:
    limits = SlotLimits(input_bytes=4096, events=40, meps=64, fragments=64, mep_bytes=1024)
    times = BuilderLimits(
        mep_timeout_ns=1, feeder_timeout_ns=1, overtaken_ns=1, evict_ns=1, flush_deadline_ns=1, closed_ring=64
    )
    counters = Counters()
    builder = EventBuilder(SlotPool(3, limits), times, counters)
    monitor = SilentSourceMonitor(builder, counters, silent_ns=5 * SECOND, clock_ns=lambda: 0)
    start = StartRun(7, (1, 2), 0, 10)
    builder.handle(0, start)
    for source in (1, 2):
        counters.sources[source].last_seen_ns = SECOND
    monitor.look(SECOND)
    builder.handle(60 * SECOND, EndRun())
    builder.handle(60 * SECOND, start)
    counters.sources[1].last_seen_ns = 60 * SECOND
    monitor.look(60 * SECOND)
    assert monitor.silent == frozenset()
    counters.sources[1].last_seen_ns = 66 * SECOND
    monitor.look(66 * SECOND)
    assert monitor.silent == {2}
    builder.handle(66 * SECOND, EndRun())
    monitor.look(67 * SECOND)
    assert monitor.silent == frozenset(), "nothing is expected of a run that is over"


def test_the_monitor_finds_waiting_sources_from_the_open_meps() -> None:
    limits = SlotLimits(input_bytes=4096, events=40, meps=64, fragments=64, mep_bytes=1024)
    times = BuilderLimits(
        mep_timeout_ns=3600 * SECOND,
        feeder_timeout_ns=3600 * SECOND,
        overtaken_ns=3600 * SECOND,
        evict_ns=3600 * SECOND,
        flush_deadline_ns=1,
        closed_ring=64,
    )
    counters = Counters()
    builder = EventBuilder(SlotPool(3, limits), times, counters)
    monitor = SilentSourceMonitor(builder, counters, silent_ns=5 * SECOND, clock_ns=lambda: 0)
    builder.handle(0, StartRun(7, (1, 2, 3), 0, 10))
    for mep in (0, 1):
        builder.handle(0, FragmentArrived(7, 2, mep, 100, mep * 10, 10))
    builder.handle(0, FragmentArrived(7, 3, 0, 100, 0, 10))
    for second in range(12):
        counters.sources[1].last_seen_ns = second * SECOND
        monitor.look(second * SECOND)
    assert monitor.silent == {3}, "2 has delivered the youngest MEP, 3 has not"
