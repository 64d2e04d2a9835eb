"""The feeders of a run: hellos, refusals, silence, confirmations and ends."""

import pytest

from hltnode.daemon.readout.run_feeders import (
    MAX_REPLACED,
    RETURN_NS,
    SILENT_NS,
    Feeder,
    HelloRefusedError,
    RunFeeders,
    RunStart,
)
from hltnode.protocol.transport.feeder_messages import EndOfRun, Hello
from hltnode.protocol.transport.mep_ranges import MepRanges

RUN = 7
NOTHING = MepRanges()


def hello(
    name: str = "a",
    *,
    session: str = "s",
    sources: tuple[int, ...] = (1, 2),
    first_mep: int = 0,
    events: int = 10,
    supervises: bool = False,
    feeders: int = 1,
) -> Hello:
    return Hello(name, session, RUN, sources, first_mep, events, 1000, supervises, feeders)


def join(run: RunFeeders, message: Hello, now: int = 0, identity: bytes | None = None) -> Feeder:
    return run.join(now, identity or message.feeder.encode(), message, NOTHING)[0]


def refusal(run: RunFeeders, message: Hello, now: int = 0) -> str:
    with pytest.raises(HelloRefusedError) as error:
        run.join(now, b"x", message, NOTHING)
    return error.value.reason


def test_the_run_starts_once_with_the_union_of_all_announcements() -> None:
    run = RunFeeders(RUN, 2, 2)
    join(run, hello("a", first_mep=4, events=5))
    assert run.start(None) is None
    join(run, hello("b", sources=(9,), first_mep=3, events=10))
    assert run.start(None) == RunStart(run=7, sources=(1, 2, 9), first_mep=3, events_per_mep=10)
    join(run, hello("b", sources=(9,)))
    assert run.start(None) is None


def test_configured_sources_take_precedence_over_announcements() -> None:
    run = RunFeeders(RUN, 1, 1)
    join(run, hello())
    start = run.start((5, 6))
    assert start is not None
    assert start.sources == (5, 6)


def test_the_run_waits_for_as_many_feeders_as_one_of_them_announces() -> None:
    run = RunFeeders(RUN, 1, 3)
    join(run, hello("a", sources=(1,), feeders=3))
    join(run, hello("b", sources=(2,), feeders=3))
    assert run.start(None) is None
    join(run, hello("c", sources=(3,), feeders=3))
    start = run.start(None)
    assert start is not None
    assert start.sources == (1, 2, 3)


def test_an_announced_number_above_the_limit_delays_no_run() -> None:
    run = RunFeeders(RUN, 1, 2)
    join(run, hello("a", sources=(1,), feeders=65535))
    assert run.start(None) is None
    join(run, hello("b", sources=(2,)))
    assert run.start(None) is not None


def test_a_feeder_that_comes_after_the_start_needs_sources_of_the_run() -> None:
    run = RunFeeders(RUN, 1, 4)
    join(run, hello("a", sources=(1,)))
    assert run.start((1, 2)) is not None
    assert refusal(run, hello("b", sources=(2, 3))) == "sources_fixed"
    join(run, hello("c", sources=(2,)))
    assert run.connected(0) == 2


def test_a_silent_feeder_loses_its_place_to_another_feeder_with_its_sources() -> None:
    run = RunFeeders(RUN, 1, 4)
    join(run, hello("a"))
    join(run, hello("b", first_mep=4), SILENT_NS + 1)
    assert run.identities() == [b"b"]
    assert run.raise_floor()


def test_a_refused_feeder_is_told_the_key_of_the_limit() -> None:
    run = RunFeeders(RUN, 1, 1)
    join(run, hello("a"))
    with pytest.raises(HelloRefusedError, match=r"builder\.max_feeders of the node is 1"):
        run.join(0, b"x", hello("b", sources=(3,)), NOTHING)


def test_a_living_feeder_keeps_its_place_and_its_sources() -> None:
    run = RunFeeders(RUN, 2, 2)
    join(run, hello("a"))
    assert refusal(run, hello("b", sources=(2, 3))) == "source_taken"
    join(run, hello("b", sources=(3,)))
    assert refusal(run, hello("c", sources=(4,))) == "too_many_feeders"


def test_a_silent_feeder_can_be_replaced_by_another_name_and_must_still_confirm() -> None:
    run = RunFeeders(RUN, 1, 1)
    join(run, hello("a"))
    b = join(run, hello("b", first_mep=4), SILENT_NS + 1)
    assert run.owner_of(1) == b"b"
    assert run.identities() == [b"b"]
    assert run.raise_floor()
    assert run.floor == 4
    run.end_of_run(b, EndOfRun(RUN, 3))
    b.gone = True
    assert not run.is_over(10 * RETURN_NS)
    a = join(run, hello("a", first_mep=4), 10 * RETURN_NS)
    run.end_of_run(a, EndOfRun(RUN, 3))
    a.gone = True
    assert run.is_over(10 * RETURN_NS)


def test_the_number_of_replaced_names_is_limited() -> None:
    run = RunFeeders(RUN, 1, 1)
    for i in range(MAX_REPLACED + 1):
        join(run, hello(f"f{i}"), i * 2 * SILENT_NS)
    assert refusal(run, hello("one-more"), (MAX_REPLACED + 1) * 2 * SILENT_NS) == "too_many_feeders"
    join(run, hello("f0"), (MAX_REPLACED + 1) * 2 * SILENT_NS)


def test_a_restarted_feeder_takes_over_its_own_place_and_has_to_end_again() -> None:
    run = RunFeeders(RUN, 2, 2)
    run.end_of_run(join(run, hello("a")), EndOfRun(RUN, 3))
    feeder, before = run.join(0, b"a2", hello("a", session="t"), MepRanges([(0, 2)]))
    assert before == b"a"
    assert run.owner_of(2) == b"a2"
    assert not feeder.ended
    assert feeder.done_before.ranges() == [(0, 2)]


def test_a_process_of_the_same_name_is_a_rival_while_the_first_one_has_sent_recently() -> None:
    run = RunFeeders(RUN, 2, 2)
    second = hello("a", session="t")
    assert run.rival(0, second) is None
    first = join(run, hello("a"))
    assert run.rival(SILENT_NS, second) is first
    assert run.rival(SILENT_NS, hello("a")) is None
    assert run.rival(SILENT_NS, hello("b", session="t")) is None
    assert run.rival(SILENT_NS + 1, second) is None


def test_a_feeder_that_said_goodbye_is_no_rival_of_its_successor() -> None:
    run = RunFeeders(RUN, 2, 2)
    join(run, hello("a")).gone = True
    assert run.rival(0, hello("a", session="t")) is None


def test_a_run_is_over_when_each_feeder_has_confirmed_its_last_mep_and_left() -> None:
    run = RunFeeders(RUN, 2, 2)
    a = join(run, hello("a"))
    run.end_of_run(a, EndOfRun(RUN, 3))
    join(run, hello("a", first_mep=4))
    a.gone = True
    assert not run.is_over(10 * RETURN_NS), "another feeder may have sent what is not known here"
    b = join(run, hello("b", sources=(9,)))
    assert not run.is_over(10 * RETURN_NS), "silence is no end"
    run.end_of_run(b, EndOfRun(RUN, 5))
    assert not run.is_over(10 * RETURN_NS), "nor is an end without acknowledgements"
    join(run, hello("b", sources=(9,), first_mep=6))
    assert not run.is_over(0)
    b.gone = True
    assert run.is_over(0)


def test_a_feeder_that_confirmed_and_vanished_has_time_to_come_back() -> None:
    run = RunFeeders(RUN, 1, 1)
    feeder = join(run, hello(first_mep=1))
    run.end_of_run(feeder, EndOfRun(RUN, 0))
    assert not run.is_over(RETURN_NS)
    assert run.is_over(RETURN_NS + 1)


def test_a_feeder_that_sent_nothing_has_nothing_to_confirm() -> None:
    run = RunFeeders(RUN, 1, 1)
    feeder = join(run, hello())
    run.end_of_run(feeder, EndOfRun(RUN, None))
    feeder.gone = True
    assert run.is_over(0)


def test_the_floor_follows_the_confirmations_of_all_feeders_and_never_falls() -> None:
    run = RunFeeders(RUN, 2, 2)
    join(run, hello("a", first_mep=9))
    assert not run.raise_floor()
    join(run, hello("b", sources=(9,), first_mep=4))
    assert run.raise_floor()
    assert run.floor == 4
    join(run, hello("b", session="t", sources=(9,), first_mep=0))
    assert not run.raise_floor()
    assert run.floor == 4


def test_a_resumed_run_starts_when_its_feeders_are_back_or_have_confirmed() -> None:
    run = RunFeeders(RUN, 2, 2)
    a = join(run, hello("a", first_mep=4))
    run.end_of_run(a, EndOfRun(RUN, 3))
    join(run, hello("b", sources=(9,)))
    assert run.start(None) is not None
    run.begin_epoch(1)
    assert run.start(None) is None
    join(run, hello("b", sources=(9,)))
    assert run.start(None) is not None
