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
    assert run.start(0, None) is None
    join(run, hello("b", sources=(9,), first_mep=3, events=10))
    assert run.start(0, None) == RunStart(run=7, sources=(1, 2, 9), first_mep=3, events_per_mep=10)
    join(run, hello("b", sources=(9,)))
    assert run.start(0, None) is None


def test_configured_sources_take_precedence_over_announcements() -> None:
    run = RunFeeders(RUN, 1, 1)
    join(run, hello())
    start = run.start(0, (5, 6))
    assert start is not None
    assert start.sources == (5, 6)


def test_the_run_waits_for_as_many_feeders_as_one_of_them_announces() -> None:
    run = RunFeeders(RUN, 1, 3)
    join(run, hello("a", sources=(1,), feeders=3))
    join(run, hello("b", sources=(2,), feeders=3))
    assert run.start(0, None) is None
    join(run, hello("c", sources=(3,), feeders=3))
    start = run.start(0, None)
    assert start is not None
    assert start.sources == (1, 2, 3)


def test_an_announced_number_above_the_limit_delays_no_run() -> None:
    run = RunFeeders(RUN, 1, 2)
    join(run, hello("a", sources=(1,), feeders=65535))
    assert run.start(0, None) is None
    join(run, hello("b", sources=(2,)))
    assert run.start(0, None) is not None


def test_a_feeder_that_comes_after_the_start_needs_sources_of_the_run() -> None:
    run = RunFeeders(RUN, 1, 4)
    join(run, hello("a", sources=(1,)))
    assert run.start(0, (1, 2)) is not None
    assert refusal(run, hello("b", sources=(2, 3))) == "sources_fixed"
    join(run, hello("c", sources=(2,)))
    assert run.connected(0) == 2


def test_a_silent_feeder_loses_its_place_to_another_feeder_with_its_sources() -> None:
    run = RunFeeders(RUN, 1, 4)
    join(run, hello("a"))
    join(run, hello("b", first_mep=4), SILENT_NS + 1)
    assert run.identities() == [b"b"]
    assert run.raise_floor(0)


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
    assert run.start(0, None) is not None
    b = join(run, hello("b", first_mep=4), SILENT_NS + 1)
    assert run.owner_of(1) == b"b"
    assert run.identities() == [b"b"]
    assert run.raise_floor(0)
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
    assert not run.raise_floor(0)
    join(run, hello("b", sources=(9,), first_mep=4))
    assert run.raise_floor(0)
    assert run.floor == 4
    join(run, hello("b", session="t", sources=(9,), first_mep=0))
    assert not run.raise_floor(0)
    assert run.floor == 4


def test_a_run_starts_at_its_floor_also_when_the_successor_of_a_feeder_says_a_lower_mep() -> None:
    run = RunFeeders(RUN, 2, 2)
    join(run, hello("a", first_mep=9))
    join(run, hello("b", sources=(9,), first_mep=4))
    assert run.raise_floor(0)
    for name, sources in (("a", (1, 2)), ("b", (9,))):
        join(run, hello(name, session="t", sources=sources, first_mep=0), RETURN_NS + 1)
    start = run.start(RETURN_NS + 1, None)
    assert start is not None
    assert start.first_mep == 4


def test_a_resumed_run_starts_when_its_feeders_are_back_or_have_confirmed() -> None:
    run = RunFeeders(RUN, 2, 2)
    a = join(run, hello("a", first_mep=4))
    run.end_of_run(a, EndOfRun(RUN, 3))
    join(run, hello("b", sources=(9,)))
    assert run.start(0, None) is not None
    run.begin_epoch(1)
    assert run.start(0, None) is None
    join(run, hello("b", sources=(9,)))
    assert run.start(0, None) is not None


def test_a_feeder_killed_before_the_start_does_not_hold_a_run_whose_sources_others_have_taken() -> None:
    # One of three parts is killed, and the input is fed again in two parts.
    run = RunFeeders(RUN, 1, 8)
    join(run, hello("1of3", sources=(1, 2), feeders=3))
    late = SILENT_NS + 1
    join(run, hello("1of2", sources=(1, 2, 3), feeders=2), late)
    assert run.waits_for(late) == "run 7 waits for feeders: 1 of 2 are connected; feeder 1of2 announces 2"
    second = join(run, hello("2of2", sources=(4, 5, 6), feeders=2), late)
    start = run.start(late, None)
    assert start is not None
    assert start.sources == (1, 2, 3, 4, 5, 6)
    assert run.waits_for(late) is None
    first = join(run, hello("1of2", sources=(1, 2, 3), feeders=2, first_mep=9), late)
    join(run, hello("2of2", sources=(4, 5, 6), feeders=2, first_mep=7), late)
    assert run.raise_floor(late)
    assert run.floor == 7
    for feeder in (first, second):
        run.end_of_run(feeder, EndOfRun(RUN, 8))
        feeder.gone = True
    join(run, hello("2of2", sources=(4, 5, 6), feeders=2, first_mep=9), late).gone = True
    assert run.is_over(late)


def test_sources_that_two_feeders_share_out_release_their_silent_feeder_only_together() -> None:
    run = RunFeeders(RUN, 1, 8)
    join(run, hello("whole", sources=(1, 2)))
    assert run.start(0, None) is not None
    late = SILENT_NS + 1
    join(run, hello("left", sources=(1,), first_mep=5), late)
    assert b"whole" not in run.identities()
    assert run.owner_of(2) == b"whole"
    join(run, hello("right", sources=(2,), first_mep=6), late)
    assert run.identities() == [b"left", b"right"]
    assert run.raise_floor(late)
    assert run.floor == 5


def test_one_hello_of_a_stranger_that_goes_away_delays_neither_start_nor_floor() -> None:
    run = RunFeeders(RUN, 1, 8)
    join(run, hello("stranger", sources=(9,), feeders=5))
    assert run.start(0, None) is None
    late = SILENT_NS + 1
    honest = join(run, hello("honest"), late)
    assert run.waits_for(late) is None
    start = run.start(late, None)
    assert start is not None
    assert start.sources == (1, 2)
    join(run, hello("honest", first_mep=3), late)
    assert run.raise_floor(late)
    run.end_of_run(honest, EndOfRun(RUN, 2))
    honest.gone = True
    assert run.is_over(late)


def test_the_floor_does_not_wait_for_a_silent_feeder_that_the_run_does_not_need() -> None:
    run = RunFeeders(RUN, 1, 8)
    join(run, hello("a", sources=(1,)))
    join(run, hello("b", sources=(2,)))
    assert run.start(0, None) is not None
    late = SILENT_NS + 1
    join(run, hello("a", sources=(1,), first_mep=4), late)
    assert run.waits_for(late) is None
    assert run.raise_floor(late)
    assert run.floor == 4
    assert not run.is_over(100 * RETURN_NS), "the silent feeder has not confirmed its MEPs"


def test_in_a_supervised_run_every_feeder_holds_the_floor() -> None:
    # A MEP that one feeder has confirmed may belong to another node.
    run = RunFeeders(RUN, 1, 8)
    run.supervised = True
    join(run, hello("a", sources=(1,)))
    join(run, hello("b", sources=(2,)))
    late = SILENT_NS + 1
    assert run.start(0, None) is not None
    join(run, hello("a", sources=(1,), first_mep=4), late)
    assert not run.raise_floor(late)
    waits = run.waits_for(late)
    assert waits == "run 7 waits for feeders: 1 of 1 are connected; missing: b (silent for 5 s)"


def test_the_feeders_that_a_run_needs_and_lacks_are_named_with_their_silence() -> None:
    run = RunFeeders(RUN, 2, 8)
    assert run.waits_for(0) is None
    join(run, hello("a", sources=(1,)))
    assert run.waits_for(0) == "run 7 waits for feeders: 1 of 2 are connected"
    join(run, hello("b", sources=(2,)))
    assert run.start(0, None) is not None
    assert run.waits_for(0) is None
    later = 2 * SILENT_NS
    join(run, hello("a", sources=(1,), first_mep=4), later)
    assert run.waits_for(later) == "run 7 waits for feeders: 1 of 2 are connected; missing: b (silent for 10 s)"
    assert not run.raise_floor(later)


def test_of_a_run_that_the_node_resumes_every_feeder_must_confirm() -> None:
    run = RunFeeders(RUN, 1, 8, resumed=True)
    join(run, hello("a", sources=(1,), feeders=2))
    late = 100 * RETURN_NS
    b = join(run, hello("b", sources=(2,), feeders=2, first_mep=3), late)
    run.end_of_run(b, EndOfRun(RUN, 2))
    b.gone = True
    assert not run.is_over(late)
    assert run.reason_to_keep(late).startswith("feeder a has confirmed below MEP 0, not ended; silent")
