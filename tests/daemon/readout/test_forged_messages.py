"""Lies that a valid control message can tell: each is refused and counted, or costs only its sender."""

import pytest

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.control_messages import ControlMessage
from hltnode.protocol.transport.feeder_messages import (
    Ack,
    Credit,
    EndOfRun,
    Goodbye,
    Held,
    Hello,
    Missed,
    Nack,
    Returned,
    Revoked,
    RunClosed,
    Welcome,
)
from hltnode.protocol.transport.refusals import HelloRefusal, MessageRefusal
from tests.daemon.readout.bench import RUN, SECOND, Bench, acked, errors


@pytest.fixture
def bench() -> Bench:
    """A node with feeders a and b, a supervises; MEPs 0 to 3 are written, all below 2 is confirmed."""
    bench = Bench(feeders=2)
    bench.hello("a", supervises=True)
    bench.hello("b")
    for mep in range(4):
        bench.send_mep(mep, "a", "b")
    bench.work()
    bench.hello("a", supervises=True, first_mep=2)
    bench.hello("b", first_mep=2)
    bench.connections.alive = {b"a", b"b"}
    return bench


def is_unchanged(bench: Bench) -> bool:
    """The run continues unchanged: everything is acknowledged, nothing revoked, the next MEP is built."""
    bench.send_mep(4, "a", "b")
    bench.work()
    return (
        not bench.revoked
        and not bench.ends
        and acked(bench.hello("b")) == ((0, 4),)
        and bench.written == [(RUN, mep) for mep in range(5)]
    )


@pytest.mark.parametrize(
    "message",
    [
        Revoked(RUN, ((2, 3),)),
        Returned(RUN, ((2, 3),)),
        EndOfRun(RUN, 3),
        Goodbye("feeder ends"),
        Ack(RUN, ((0, 100),)),
        Held("s", RUN, ((0, 100),)),
        Credit(RUN, 1000),
        Nack(RUN, 1, 2, RejectReason.MALFORMED, False),
        Missed(RUN, 1, ((0, 100),)),
        Welcome("n", "s", RUN, 1000, 1),
        RunClosed(RUN),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_stranger_that_says_no_hello_changes_nothing(bench: Bench, message: ControlMessage) -> None:
    assert errors(bench.arrive(b"stranger", message)) == ["unknown_feeder"]
    assert bench.counters.messages_refused[MessageRefusal.UNKNOWN_FEEDER] == 1
    assert is_unchanged(bench)


@pytest.mark.parametrize(
    "message",
    [
        Ack(RUN, ((0, 100),)),
        Held("s", RUN, ((0, 100),)),
        Credit(RUN, 1000),
        Nack(RUN, 1, 2, RejectReason.MALFORMED, False),
        Missed(RUN, 1, ((0, 100),)),
        Welcome("n", "s", RUN, 1000, 1),
        RunClosed(RUN),
        EndOfRun(RUN + 1, 0),
    ],
    ids=lambda message: type(message).__name__,
)
def test_messages_for_others_or_for_another_run_change_nothing(bench: Bench, message: ControlMessage) -> None:
    assert errors(bench.arrive(b"b", message)) == ["unexpected"]
    assert is_unchanged(bench)


@pytest.mark.parametrize(
    ("name", "ranges", "run"),
    [
        ("b", ((2, 3),), RUN),
        ("a", ((2, 3),), RUN + 1),
        ("a", ((1, 3),), RUN),
        ("a", ((3, 3), (0, 0)), RUN),
    ],
    ids=["no supervisor", "another run", "confirmed", "one of several confirmed"],
)
def test_meps_that_are_not_the_senders_to_revoke_stay(
    bench: Bench, name: str, ranges: tuple[tuple[int, int], ...], run: int
) -> None:
    assert errors(bench.revoke(name, *ranges, run=run)) == ["not_permitted"]
    assert bench.counters.messages_refused[MessageRefusal.NOT_PERMITTED] == 1
    assert is_unchanged(bench)


def test_meps_are_returned_only_by_the_supervisor(bench: Bench) -> None:
    assert errors(bench.arrive(b"b", Returned(RUN, ((2, 3),)))) == ["not_permitted"]
    assert is_unchanged(bench)


def test_more_meps_than_the_node_takes_ids_cannot_be_revoked(bench: Bench) -> None:
    span = bench.builder.span
    every_second = [(mep, mep) for mep in range(10, 14 + 2 * span, 2)]
    assert not errors(bench.revoke("a", *every_second[: span - 1]))
    assert not errors(bench.revoke("a", *every_second[: span - 1]))
    assert errors(bench.revoke("a", *every_second[span - 1 : span + 1])) == ["not_permitted"]
    assert is_unchanged(bench)


def test_a_supervisor_cannot_lower_its_confirmation_to_revoke_more(bench: Bench) -> None:
    bench.hello("a", supervises=True, first_mep=0)
    assert errors(bench.revoke("a", (0, 3))) == ["not_permitted"]
    assert is_unchanged(bench)


def test_the_successor_of_a_silent_supervisor_cannot_revoke_earlier_acknowledgements(bench: Bench) -> None:
    bench.pass_time(6 * SECOND)
    bench.hello("a", session="thief", identity=b"thief", supervises=True, first_mep=2)
    bench.hello("b")
    assert errors(bench.arrive(b"thief", Revoked(RUN, ((2, 3),)))) == ["not_permitted"]
    assert is_unchanged(bench)


def test_a_revocation_that_was_recorded_changes_nothing_when_another_connection_sends_it(bench: Bench) -> None:
    recorded = Revoked(RUN, ((2, 3),))
    assert errors(bench.arrive(b"replay", recorded)) == ["unknown_feeder"]
    assert errors(bench.hello("a", session="other", identity=b"replay", supervises=True)) == ["name_taken"]
    assert errors(bench.arrive(b"replay", recorded)) == ["unknown_feeder"]
    assert is_unchanged(bench)


def test_the_session_of_a_feeder_is_sent_to_no_other_peer_and_shown_on_no_page(bench: Bench) -> None:
    token = str(bench.token("a"))
    bench.connections.sent.clear()
    bench.hello("a", session="other", identity=b"x")
    bench.hello("b", session="secret-of-b")
    bench.arrive(b"x", Goodbye(""))
    for secret in ("f1", token):
        assert secret not in repr(bench.connections.sent)
        assert secret not in repr(bench.control.feeders(bench.now))


def test_a_hello_with_the_name_of_a_connected_feeder_is_refused_without_disturbing_it(bench: Bench) -> None:
    answers = bench.hello("b", session="thief", identity=b"thief", first_mep=1000)
    assert errors(answers) == ["name_taken"]
    assert bench.counters.hellos_refused[HelloRefusal.NAME_TAKEN] == 1
    assert is_unchanged(bench)


def test_hellos_with_new_names_find_no_place_and_leave_no_trace(bench: Bench) -> None:
    for i in range(1000):
        hello = Hello(f"n{i}", "s", RUN, (99,), 0, 10, 1000, True)
        assert errors(bench.arrive(b"i%d" % i, hello)) == ["too_many_feeders"]
    current = bench.registry.current
    assert current is not None
    assert len(current.feeders()) == 2
    assert is_unchanged(bench)


def test_hellos_of_other_runs_are_refused_while_feeders_are_there_and_leave_no_trace(bench: Bench) -> None:
    for run in range(100, 1100):
        assert errors(bench.hello("c", run=run, identity=b"%d" % run)) == ["run_active"]
    assert not bench.registry.kept
    assert is_unchanged(bench)


def test_hellos_of_new_runs_after_a_silence_keep_the_run_and_its_acknowledgements(bench: Bench) -> None:
    bench.pass_time(6 * SECOND)
    for run in range(100, 110):
        bench.hello("c", run=run, identity=b"%d" % run)
        bench.pass_time(6 * SECOND)
    assert list(bench.registry.kept) == [RUN]
    assert acked(bench.hello("a")) == ((0, 3),)


def test_a_feeder_with_false_confirmations_cannot_end_the_run_for_others(bench: Bench) -> None:
    bench.hello("b", first_mep=(1 << 64) - 1)
    bench.end("b", last_mep=0)
    bench.leave("b")
    bench.pass_time(SECOND)
    assert not bench.ends
    assert bench.confirmed == [(RUN, 2)]
    assert acked(bench.hello("a")) == ((0, 3),)


def test_an_end_of_run_far_below_what_was_sent_ends_nothing(bench: Bench) -> None:
    bench.end("b", last_mep=0)
    bench.pass_time(10 * SECOND)
    assert not bench.ends


def test_a_connection_that_says_hello_under_two_names_stays_the_first(bench: Bench) -> None:
    bench.leave("b")
    assert errors(bench.hello("c", identity=b"a")) == ["connection_taken"]
    assert is_unchanged(bench)
