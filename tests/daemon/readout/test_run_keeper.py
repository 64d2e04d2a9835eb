"""Current and kept runs and their ends: no acknowledged MEP is built twice or forgotten."""

from collections.abc import Iterator

import pytest

from hltnode.daemon.readout.run_feeders import RETURN_NS
from hltnode.daemon.readout.run_keeper import RunNotClosedError
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.feeder_messages import Credit, Error, Goodbye, Nack, RunClosed, Welcome
from hltnode.protocol.transport.refusals import HelloRefusal
from hltnode.protocol.transport.run_control_messages import RunState
from tests.daemon.readout.bench import MS, RUN, SECOND, Bench, acked, errors, nacks

OTHER = 8


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def pair() -> Bench:
    """A node that needs feeders a and b."""
    return Bench(feeders=2)


def feed(bench: Bench, *meps: int, run: int = RUN, names: tuple[str, ...] = ("a",)) -> None:
    for mep in meps:
        bench.send_mep(mep, *names, run=run)
    bench.work()


def welcomes(messages: object) -> Iterator[str]:
    assert isinstance(messages, list)
    return (message.session for message in messages if isinstance(message, Welcome))


# Silence and restarts


@pytest.mark.parametrize("silence", [9 * SECOND, 20 * 60 * SECOND])
def test_a_feeder_that_was_silent_gets_the_acknowledgements_that_it_missed(bench: Bench, silence: int) -> None:
    bench.hello()
    feed(bench, 0, 1)
    bench.end(last_mep=1)
    bench.pass_time(silence)
    bench.pass_time(silence)
    assert acked(bench.hello()) == ((0, 1),)
    assert not any(over for _, _, over in bench.ends)
    bench.confirm_and_leave(last_mep=1)
    bench.pass_time(2 * SECOND)
    assert bench.ends[-1] == (RUN, "confirmed", True)
    assert bench.written == [(RUN, 0), (RUN, 1)]


def test_a_feeder_killed_at_its_end_and_restarted_after_8_s_can_finish(bench: Bench) -> None:
    bench.hello()
    feed(bench, 0, 1)
    bench.end(last_mep=1)
    bench.pass_time(8 * SECOND)
    assert acked(bench.hello(session="f2", identity=b"a2")) == ((0, 1),)
    bench.end(last_mep=1, identity=b"a2")
    bench.hello(session="f2", identity=b"a2", first_mep=2)
    bench.leave(identity=b"a2")
    bench.pass_time(SECOND)
    assert bench.ends == [(RUN, "confirmed", True)]
    assert len(bench.written) == 2


def test_a_feeder_killed_between_confirmation_and_goodbye_can_finish(bench: Bench) -> None:
    bench.hello()
    feed(bench, 0)
    bench.end(last_mep=0)
    bench.hello(first_mep=1)
    bench.pass_time(30 * SECOND)
    assert acked(bench.hello(session="f2", identity=b"a2")) == ((0, 0),)


def test_a_feeder_that_stays_away_after_its_confirmation_does_not_keep_the_run(bench: Bench) -> None:
    bench.hello()
    feed(bench, 0)
    bench.end(last_mep=0)
    bench.hello(first_mep=1)
    bench.pass_time(RETURN_NS + SECOND)
    assert bench.ends == [(RUN, "confirmed", True)]


def test_a_feeder_restarted_after_all_others_have_left_can_finish(pair: Bench) -> None:
    pair.hello("a")
    pair.hello("b")
    feed(pair, 0, 1, names=("a", "b"))
    pair.confirm_and_leave("a", last_mep=1)
    pair.pass_time(3600 * SECOND)
    assert acked(pair.hello("b", session="f2", identity=b"b2")) == ((0, 1),)
    assert not any(over for _, _, over in pair.ends)
    pair.end("b", last_mep=1, identity=b"b2")
    pair.hello("b", session="f2", identity=b"b2", first_mep=2)
    pair.leave("b", identity=b"b2")
    pair.pass_time(SECOND)
    assert pair.ends[-1] == (RUN, "confirmed", True)


def test_a_restarted_node_answers_a_feeder_of_a_known_run_before_the_others_come() -> None:
    bench = Bench(feeders=2, journal={RUN: ((0, 4), (6, 6))})
    answers = bench.hello("a", first_mep=2)
    assert [type(message).__name__ for message in answers] == ["Ack", "Welcome"]
    assert acked(answers) == ((2, 4), (6, 6))
    bench.confirm_and_leave("a", last_mep=6)
    bench.pass_time(RETURN_NS)
    assert not bench.ends
    assert acked(bench.hello("b")) == ((0, 4), (6, 6))


def test_the_number_of_a_finished_run_may_be_used_again(bench: Bench) -> None:
    for _ in range(2):
        bench.hello()
        feed(bench, 0)
        bench.confirm_and_leave(last_mep=0)
        bench.pass_time(MS)
        assert bench.connections.take() == []
    assert bench.ends == [(RUN, "confirmed", True)] * 2
    assert bench.written == [(RUN, 0)] * 2


# Runs that are left


def test_a_new_run_does_not_start_while_a_feeder_of_the_last_one_is_connected(bench: Bench) -> None:
    bench.hello()
    feed(bench, 0)
    bench.end(last_mep=0)
    assert errors(bench.hello(run=OTHER, session="f2", identity=b"x")) == ["run_active"]


def test_a_run_whose_feeders_are_away_is_kept_when_another_one_starts(bench: Bench) -> None:
    bench.hello()
    feed(bench, 0, 1)
    bench.pass_time(6 * SECOND)
    assert Credit(OTHER, bench.builder.window.limit) in bench.hello(run=OTHER, session="f2", identity=b"x")
    assert bench.ends == [(RUN, "left", False)]
    feed(bench, 0, run=OTHER)
    answers = bench.hello(first_mep=0)
    assert acked(answers) == ((0, 1),)
    assert not [message for message in answers if isinstance(message, Credit)]
    bench.confirm_and_leave(last_mep=1)
    bench.pass_time(2 * SECOND)
    assert bench.ends[-1] == (RUN, "confirmed", True)
    assert bench.builder.run == OTHER
    assert bench.written == [(RUN, 0), (RUN, 1), (OTHER, 0)]


def test_two_runs_that_interleave_lose_and_double_nothing(bench: Bench) -> None:
    """Feeder a feeds run 7, feeder x run 8, both with the ids 0 to 3, and take turns at falling silent."""
    kept = {RUN: {0, 1, 2, 3}, OTHER: {0, 1, 2, 3}}
    identity = {RUN: b"a", OTHER: b"x"}
    sessions: dict[int, str] = {}
    for turn in range(12):
        run = (RUN, OTHER)[turn % 2]
        bench.pass_time(6 * SECOND)
        first = min(kept[run], default=4)
        answers = bench.hello(run=run, identity=identity[run], session=f"of-{run}", first_mep=first)
        assert not errors(answers)
        [session] = welcomes(answers)
        assert session != sessions.get(run), "a feeder starts anew with each turn"
        sessions[run] = session
        for span in acked(answers):
            kept[run] -= set(range(span[0], span[1] + 1))
        if any(isinstance(message, Credit) and message.meps for message in answers) and kept[run]:
            bench.send_mep(min(kept[run]), run=run)
            bench.work()
    assert kept == {RUN: set(), OTHER: set()}
    assert sorted(bench.written) == [(run, mep) for run in (RUN, OTHER) for mep in range(4)]


def test_a_fragment_of_a_kept_run_is_refused_only_to_its_feeder_and_shall_be_sent_again(
    bench: Bench,
) -> None:
    bench.hello()
    feed(bench, 0)
    bench.pass_time(6 * SECOND)
    bench.hello(run=OTHER, session="f2", identity=b"x")
    bench.connections.take()
    bench.send_mep(5)
    assert bench.connections.take(b"x") == []
    bench.connections.sent.clear()
    assert nacks(bench.send_mep(5)) == [Nack(RUN, 1, 5, RejectReason.FOREIGN_RUN, True)]
    assert acked(bench.send_mep(0)) == ((0, 0),)


def test_no_mep_of_a_left_run_is_built_until_the_run_is_resumed(bench: Bench) -> None:
    bench.hello()
    feed(bench, 0)
    bench.leave()
    bench.pass_time(MS)
    assert bench.ends == [(RUN, "left", False)]
    feed(bench, 1)
    assert bench.written == [(RUN, 0)]
    bench.hello(session="f2", identity=b"a2")
    feed(bench, 1)
    assert bench.written == [(RUN, 0), (RUN, 1)]


def test_a_run_continues_only_with_its_trigger_configuration() -> None:
    bench = Bench(journal={RUN: ((0, 3),)}, of_other_tck={RUN: 0x1234ABCD})
    for _ in range(2):
        (refused,) = bench.hello(first_mep=4)
        assert isinstance(refused, Error)
        assert (refused.reason, "TCK 0x1234ABCD" in refused.text) == ("run_cannot_start", True)
    assert errors(bench.hello(run=OTHER, session="f2", identity=b"x")) == []
    assert bench.control.close(RUN) == f"run {RUN} is closed"


def test_the_files_of_a_run_are_finished_when_its_feeders_have_been_away_for_a_minute(bench: Bench) -> None:
    bench.hello()
    feed(bench, 0)
    bench.pass_time(RETURN_NS - SECOND)
    assert not bench.ends
    bench.pass_time(2 * SECOND)
    assert bench.ends == [(RUN, "left", False)]


def test_a_run_without_acknowledged_meps_is_not_kept(bench: Bench) -> None:
    bench.hello()
    bench.pass_time(6 * SECOND)
    bench.hello(run=OTHER, identity=b"x")
    assert bench.builder.run == OTHER
    assert not bench.registry.kept
    assert bench.ends == [(RUN, "left", True)]


def test_a_stopped_run_is_kept_and_its_feeders_start_again(bench: Bench) -> None:
    [before] = welcomes(bench.hello())
    feed(bench, 0)
    bench.connections.take()
    bench.control.leave_run()
    assert bench.connections.take() == [Goodbye("session ends")]
    bench.state = RunState.READY
    assert bench.hello() == [Goodbye("node is ready")]
    bench.state = RunState.RUNNING
    bench.control.open_runs(None)
    answers = bench.hello()
    [after] = welcomes(answers)
    assert after != before
    assert acked(answers) == ((0, 0),)


def test_a_node_that_accepts_one_run_still_answers_the_feeders_of_a_kept_run() -> None:
    bench = Bench(journal={RUN: ((0, 4),)}, run=OTHER)
    assert acked(bench.hello()) == ((0, 4),)
    assert errors(bench.hello(run=9, identity=b"x")) == ["foreign_run"]
    bench.confirm_and_leave(last_mep=4)
    bench.pass_time(2 * SECOND)
    assert bench.ends == [(RUN, "confirmed", True)]


def test_a_paused_node_answers_the_feeders_of_known_runs_and_starts_none() -> None:
    bench = Bench(journal={RUN: ((0, 4),)})
    bench.state = RunState.PAUSED
    assert acked(bench.hello()) == ((0, 4),)
    assert bench.hello(run=OTHER, identity=b"x") == [Goodbye("node is paused")]
    assert bench.builder.run is None


# Runs that an operator closes


def test_open_meps_of_a_closed_run_are_built_incomplete_and_its_feeders_are_told(pair: Bench) -> None:
    pair.hello("a")
    pair.hello("b")
    pair.send_mep(0, "a")
    pair.connections.take()
    assert pair.control.close(None) == "run 7 is closed; 1 MEPs that were open are built with what is there"
    assert pair.control.closing == RUN
    assert not pair.ends
    assert errors(pair.hello("c", run=OTHER)) == ["run_active"]
    pair.finish_batches()
    assert pair.written == [(RUN, 0)]
    pair.connections.sent.clear()
    pair.pass_time(MS)
    assert pair.control.closing is None
    assert pair.connections.sent == [((b"a", b"b"), RunClosed(RUN))]
    assert pair.ends == [(RUN, "closed", True)]
    assert pair.acknowledgements.runs() == []


def test_a_feeder_late_to_a_closed_run_is_told_and_no_mep_is_built_twice(pair: Bench) -> None:
    pair.hello("a")
    pair.hello("b")
    feed(pair, 0, names=("a", "b"))
    pair.control.close(RUN)
    pair.pass_time(MS)
    assert pair.hello("b", session="f2", identity=b"b2") == [RunClosed(RUN)]
    pair.send_mep(1, "a", "b")
    pair.work()
    assert pair.written == [(RUN, 0)]


def test_a_closed_run_may_be_started_again_by_its_number(bench: Bench) -> None:
    bench.hello()
    bench.control.close(RUN)
    bench.control.open_runs(None)
    assert bench.hello(session="f2", identity=b"a2") == [RunClosed(RUN)]
    bench.control.open_runs(RUN)
    assert Credit(RUN, bench.builder.window.limit) in bench.hello(session="f2", identity=b"a2")


def test_a_feeder_of_an_incomplete_run_is_told_that_the_run_is_closed() -> None:
    bench = Bench(feeders=2, journal={RUN: ((0, 4),)})
    bench.hello("a", first_mep=5)
    bench.connections.take()
    assert bench.control.close(RUN) == "run 7 is closed"
    assert bench.connections.take(b"a") == [RunClosed(RUN)]
    assert bench.ends == [(RUN, "closed", True)]
    assert bench.hello("b", run=OTHER)[0] == Welcome("n", "s.1", OTHER, 1000, bench.token("b", OTHER))


def test_a_kept_run_can_be_closed_while_another_one_is_active() -> None:
    bench = Bench(journal={RUN: ((0, 4),), 5: ((1, 1),)})
    bench.hello(run=OTHER)
    feed(bench, 0, run=OTHER)
    assert bench.control.close(RUN) == "run 7 is closed"
    assert bench.ends == [(RUN, "closed", True)]
    assert bench.builder.run == OTHER
    assert acked(bench.hello(run=OTHER)) == ((0, 0),)
    assert list(bench.registry.kept) == [5]


def test_without_a_number_the_current_run_or_else_the_only_kept_run_is_closed() -> None:
    bench = Bench(journal={RUN: ((0, 4),), 5: ((1, 1),)})
    with pytest.raises(RunNotClosedError, match="name the run to close: known are 7, 5"):
        bench.control.close(None)
    with pytest.raises(RunNotClosedError, match="run 6 is not known: known are 7, 5"):
        bench.control.close(6)
    bench.control.close(5)
    assert bench.control.close(None) == "run 7 is closed"
    with pytest.raises(RunNotClosedError, match="no run is known"):
        bench.control.close(None)


# What an operator sees


def test_the_status_shows_the_progress_of_each_feeder_and_why_runs_are_kept() -> None:
    bench = Bench(feeders=2, journal={5: ((1, 1),)})
    bench.hello("a", first_mep=3)
    bench.hello("b")
    feed(bench, 3, names=("a", "b"))
    bench.end("a", last_mep=9)
    bench.pass_time(6 * SECOND)
    a, _ = bench.control.feeders(bench.now)
    assert a["confirmed_below"] == 3
    assert a["last_mep"] == 9
    assert a["silent_seconds"] == 6.0
    bench.hello("c", run=OTHER)
    five, seven = bench.control.kept_runs(bench.now)
    assert (five["run"], five["reason"]) == (5, "0 of 2 feeders have come back")
    assert seven["run"] == RUN
    assert seven["reason"] == "feeder a has confirmed below MEP 3, last MEP 9; silent"


# Conditions


def test_a_run_without_conditions_is_refused_by_name_and_the_run_before_it_stays(bench: Bench) -> None:
    bench.without_conditions.add(OTHER)
    bench.hello()
    feed(bench, 0)
    bench.leave()
    bench.pass_time(20 * SECOND)
    answers = bench.hello(run=OTHER, identity=b"b", session="f2")
    assert answers == [Error("no_conditions", f"run {OTHER} has no conditions")]
    assert bench.counters.hellos_refused[HelloRefusal.NO_CONDITIONS] == 1
    assert bench.registry.find(RUN) is not None
    assert bench.registry.find(OTHER) is None
    bench.without_conditions.clear()
    assert not errors(bench.hello(run=OTHER, identity=b"b", session="f2"))
