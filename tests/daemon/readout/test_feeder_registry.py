"""Who feeds a run: hellos, refusals, silence and ends."""

import pytest

from hltnode.daemon.readout.feeder_registry import SILENT_NS, FeederRegistry, HelloRefusedError, RunStart
from hltnode.protocol.transport.feeder_messages import EndOfRun, Hello


def hello(
    name: str = "a",
    *,
    session: str = "s",
    run: int = 7,
    sources: tuple[int, ...] = (1, 2),
    first_mep: int = 0,
    events: int = 10,
) -> Hello:
    return Hello(name, session, run, sources, first_mep, events, 1000, False)


def registry(*, feeders: int = 2, run: int = 0, sources: tuple[int, ...] | None = None) -> FeederRegistry:
    return FeederRegistry(run=run, feeders=feeders, sources=sources, max_events_per_mep=100)


def refusal(registry: FeederRegistry, message: Hello, now: int = 0) -> str:
    with pytest.raises(HelloRefusedError) as error:
        registry.hello(now, b"x", message)
    return error.value.reason


def test_the_run_starts_with_the_union_of_all_announcements() -> None:
    r = registry()
    assert r.hello(0, b"a", hello("a", first_mep=4, events=5)) is None
    start = r.hello(0, b"b", hello("b", sources=(9,), first_mep=3, events=10))
    assert start == RunStart(run=7, sources=(1, 2, 9), first_mep=3, events_per_mep=10)
    assert r.hello(0, b"b", hello("b", sources=(9,))) is None


def test_configured_sources_win_over_announcements() -> None:
    start = registry(feeders=1, sources=(5, 6)).hello(0, b"a", hello())
    assert start is not None
    assert start.sources == (5, 6)


def test_the_run_of_the_first_hello_or_of_the_configuration_is_the_only_one() -> None:
    r = registry()
    r.hello(0, b"a", hello("a"))
    assert refusal(r, hello("b", run=8, sources=(9,))) == "foreign_run"
    assert refusal(registry(run=5), hello()) == "foreign_run"


def test_a_living_feeder_keeps_its_place_and_its_sources() -> None:
    r = registry()
    r.hello(0, b"a", hello("a"))
    assert refusal(r, hello("b", sources=(2, 3))) == "source_taken"
    r.hello(0, b"b", hello("b", sources=(3,)))
    assert refusal(r, hello("c", sources=(4,))) == "too_many_feeders"


def test_a_silent_feeder_can_be_replaced_by_one_of_another_name() -> None:
    r = registry(feeders=1)
    r.hello(0, b"a", hello("a"))
    r.hello(SILENT_NS + 1, b"b", hello("b"))
    assert r.owner_of(1) == b"b"
    assert r.identities() == [b"b"]


def test_a_restarted_feeder_takes_over_its_own_place() -> None:
    r = registry()
    r.hello(0, b"a", hello("a"))
    feeder = r.message_came(0, b"a")
    assert feeder is not None
    r.end_of_run(feeder, EndOfRun(7, 3))
    r.hello(0, b"a2", hello("a", session="t"))
    assert r.message_came(0, b"a") is None
    assert r.owner_of(2) == b"a2"
    assert not r.feeders()[0].ended


def test_a_process_of_the_same_name_is_a_rival_while_the_first_one_was_heard_lately() -> None:
    r = registry()
    second = hello("a", session="t")
    assert r.rival(0, second) is None
    r.hello(0, b"a", hello("a"))
    first = r.message_came(0, b"a")
    assert first is not None
    assert r.rival(SILENT_NS, second) is first
    assert r.rival(SILENT_NS, hello("a")) is None
    assert r.rival(SILENT_NS, hello("b", session="t")) is None
    assert r.rival(SILENT_NS + 1, second) is None


def test_a_feeder_that_said_goodbye_is_no_rival_of_its_successor() -> None:
    r = registry()
    r.hello(0, b"a", hello("a"))
    first = r.message_came(0, b"a")
    assert first is not None
    r.goodbye(first)
    assert r.rival(0, hello("a", session="t")) is None


def test_a_run_is_over_when_each_feeder_has_ended_or_died_after_another_ended() -> None:
    r = registry()
    r.hello(0, b"a", hello("a"))
    r.hello(0, b"b", hello("b", sources=(9,)))
    a = r.message_came(0, b"a")
    assert a is not None
    assert not r.all_ended(0)
    r.end_of_run(a, EndOfRun(7, 3))
    assert not r.all_ended(0)
    assert r.all_ended(SILENT_NS + 1)
    assert r.is_deserted(SILENT_NS + 1)


def test_feeders_that_died_without_a_word_do_not_end_a_run() -> None:
    r = registry(feeders=1)
    r.hello(0, b"a", hello("a"))
    assert not r.all_ended(10 * SILENT_NS)


def test_after_a_finished_run_another_one_can_start() -> None:
    r = registry(feeders=1)
    r.hello(0, b"a", hello("a"))
    r.finish_run()
    start = r.hello(0, b"a", hello("a", run=8))
    assert start is not None
    assert start.run == 8


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (hello(sources=()), "no_sources"),
        (hello(events=0), "events_per_mep"),
        (hello(events=101), "events_per_mep"),
    ],
)
def test_a_hello_that_makes_no_sense_is_refused(message: Hello, reason: str) -> None:
    assert refusal(registry(), message) == reason
