"""A source is silent when others deliver and it does not."""

from hltnode.daemon.monitoring.counters import SourceCounters
from hltnode.daemon.readout.silent_sources import SilentSources

SECOND = 1_000_000_000


def sources(**seen: int | None) -> dict[int, SourceCounters]:
    """Sources 1, 2, ... with the second of their last fragment."""
    seconds = (None if at is None else at * SECOND for at in seen.values())
    return {number: SourceCounters(last_seen_ns=at) for number, at in enumerate(seconds, 1)}


def test_a_source_that_stops_while_another_goes_on_falls_silent_and_comes_back() -> None:
    watch = SilentSources(5 * SECOND)
    watch.start_run(0)
    assert watch.look(4 * SECOND, sources(a=4, b=1)) == (frozenset(), frozenset())
    assert watch.look(6 * SECOND, sources(a=6, b=1)) == (frozenset({2}), frozenset())
    assert watch.look(7 * SECOND, sources(a=7, b=1)) == (frozenset(), frozenset())
    assert watch.silent == {2}
    assert watch.look(8 * SECOND, sources(a=8, b=8)) == (frozenset(), frozenset({2}))


def test_a_source_that_never_delivered_has_its_time_from_the_start_of_the_run() -> None:
    watch = SilentSources(5 * SECOND)
    watch.start_run(100 * SECOND)
    assert watch.look(104 * SECOND, sources(a=104, b=None))[0] == frozenset()
    assert watch.look(105 * SECOND, sources(a=105, b=None))[0] == {2}


def test_no_source_is_silent_when_none_delivers() -> None:
    watch = SilentSources(5 * SECOND)
    watch.start_run(0)
    watch.look(3 * SECOND, sources(a=3, b=2))
    assert watch.look(60 * SECOND, sources(a=3, b=2)) == (frozenset(), frozenset())


def test_a_silence_lasts_while_no_source_delivers() -> None:
    watch = SilentSources(5 * SECOND)
    watch.start_run(0)
    watch.look(9 * SECOND, sources(a=9, b=1))
    watch.look(60 * SECOND, sources(a=9, b=1))
    assert watch.silent == {2}
