"""The conversation with feeders, without sockets: messages in, answers and effects out."""

from collections import Counter

import pytest
import structlog

from hltnode.daemon.output.requests import RevokeEvents
from hltnode.daemon.readout.feeder_protocol import MAX_ACKS_OF_A_HELLO
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.control_messages import ControlMessage
from hltnode.protocol.transport.feeder_messages import (
    Ack,
    Credit,
    EndOfRun,
    Error,
    Goodbye,
    Hello,
    Missed,
    Nack,
    Returned,
    Revoked,
    Welcome,
)
from hltnode.protocol.transport.messages import MAX_RANGES
from hltnode.protocol.transport.refusals import HelloRefusal
from hltnode.protocol.transport.run_control_messages import RunState
from tests.daemon.readout.bench import EVENTS, MS, RUN, SECOND, Bench, acked, errors, nacks


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_first_hello_starts_the_run_and_is_answered_with_welcome_and_credit(bench: Bench) -> None:
    sent = bench.hello()
    assert Welcome("n", "s", RUN, 1000, bench.token()) in sent
    assert sent[-1] == Credit(RUN, bench.builder.window.limit)
    assert bench.builder.run == RUN


def test_a_node_that_is_not_running_answers_a_hello_with_goodbye(bench: Bench) -> None:
    bench.state = RunState.READY
    assert bench.hello() == [Goodbye("node is ready")]
    assert bench.builder.run is None


def test_a_message_of_an_unknown_feeder_is_an_error(bench: Bench) -> None:
    [error] = bench.arrive(b"x", EndOfRun(RUN, 3))
    assert isinstance(error, Error)
    assert error.reason == "unknown_feeder"


def test_a_second_process_is_refused_while_the_first_is_connected(bench: Bench) -> None:
    bench.hello()
    bench.connections.alive = {b"a"}
    assert errors(bench.hello(session="f2", identity=b"b")) == ["name_taken"]
    bench.connections.alive = set()
    bench.pass_time(SECOND)
    assert not errors(bench.hello(session="f2", identity=b"b"))


def test_a_flood_of_hellos_under_its_name_sends_a_feeder_two_messages_a_second_at_most(bench: Bench) -> None:
    bench.hello()
    bench.connections.alive = {b"a"}
    bench.connections.sent.clear()
    for number in range(2000):
        bench.now += MS
        bench.protocol.message_arrived(b"b", Hello("a", f"thief{number}", RUN, (1,), 0, EVENTS, 1000, False))
    receivers = Counter(identity for identities, _ in bench.connections.sent for identity in identities)
    assert receivers == {b"a": 4, b"b": 2000}
    assert bench.counters.hellos_refused[HelloRefusal.NAME_TAKEN] == 2000


def test_a_run_ends_when_its_feeders_have_confirmed_everything_and_left(bench: Bench) -> None:
    bench.hello()
    bench.send_mep(0)
    bench.end(last_mep=0)
    bench.pass_time(20 * MS)
    bench.finish_batches()
    bench.hello(first_mep=1)
    bench.pass_time(10 * SECOND)
    assert not bench.summaries
    bench.leave()
    bench.pass_time(MS)
    [(summary, over)] = bench.summaries
    assert over
    assert summary["ended"] == "confirmed"
    assert summary["accounting_closes"]
    assert "history" not in summary


def test_revoked_meps_are_dropped_and_the_outputs_learn_which_are_still_in_slots(bench: Bench) -> None:
    bench.hello(supervises=True)
    bench.send_mep(0)
    bench.pass_time(20 * MS)
    bench.finish_batches()
    bench.send_mep(1)
    message = Revoked(RUN, ((0, 1), (5, 9)))
    assert bench.arrive(b"a", message) == []
    assert bench.revoked == [RevokeEvents(RUN, ((0, 1),), frozenset({1}), (b"a", message))]
    bench.pass_time(20 * MS)
    bench.connections.take()
    bench.finish_batches()
    assert not acked(bench.connections.take())
    assert not acked(bench.hello(supervises=True))
    bench.protocol.events_revoked((b"a", message))
    assert bench.connections.take() == [message]


def test_a_revocation_of_unknown_meps_is_confirmed_at_once_unless_another_is_in_progress(
    bench: Bench,
) -> None:
    bench.hello(supervises=True)
    assert bench.revoke("a", (3, 4)) == [Revoked(RUN, ((3, 4),))]
    assert not bench.revoked
    bench.send_mep(0)
    bench.work()
    assert bench.revoke("a", (0, 0)) == []
    assert bench.revoke("a", (0, 0)) == []
    for request in bench.revoked:
        bench.protocol.events_revoked(request.receipt)
    assert bench.connections.take() == [Revoked(RUN, ((0, 0),))] * 2
    assert bench.revoke("a", (0, 0)) == [Revoked(RUN, ((0, 0),))]


def test_the_meps_that_all_feeders_have_confirmed_are_reported(bench: Bench) -> None:
    bench.hello(first_mep=0)
    bench.hello(first_mep=4)
    bench.hello(first_mep=4)
    bench.hello(first_mep=2)
    assert bench.confirmed == [(RUN, 4)]
    assert bench.supervised == []
    assert acked(bench.hello(first_mep=1)) == ((1, 3),)


def test_a_supervised_run_is_announced_once_before_its_feeder_is_welcomed(bench: Bench) -> None:
    bench.hello(supervises=True)
    bench.hello(supervises=True)
    assert bench.supervised == [RUN]


def refusal(messages: list[ControlMessage]) -> str | None:
    return next((message.reason for message in messages if isinstance(message, Error)), None)


def test_another_input_for_an_unfinished_run_is_refused_until_the_run_is_over(bench: Bench) -> None:
    bench.hello(input_name="one")
    assert bench.inputs == [(RUN, "one")]
    bench.send_mep(0)
    bench.work()
    bench.leave()
    bench.now += 100 * 10**9
    assert refusal(bench.hello(input_name="two", session="f2")) == HelloRefusal.FOREIGN_INPUT
    assert refusal(bench.hello(input_name="one", session="f3")) is None
    bench.confirm_and_leave(last_mep=0, session="f3")
    assert refusal(bench.hello(input_name="two", session="f4")) is None
    assert bench.inputs == [(RUN, "one"), (RUN, "two")]


def test_a_feeder_beside_others_must_have_their_input_or_none() -> None:
    bench = Bench(feeders=2)
    bench.hello("a", input_name="one")
    assert refusal(bench.hello("b", input_name="two")) == HelloRefusal.FOREIGN_INPUT
    assert refusal(bench.hello("b")) is None


def test_an_input_of_which_nothing_came_does_not_bind_the_run(bench: Bench) -> None:
    bench.hello(input_name="one")
    bench.leave()
    assert refusal(bench.hello(input_name="two", session="f2")) is None
    assert bench.inputs == [(RUN, "one"), (RUN, "two")]


def test_the_input_of_a_run_of_an_earlier_session_is_known() -> None:
    bench = Bench(journal={RUN: ((0, 3),)}, inputs={RUN: "one"})
    assert refusal(bench.hello(input_name="two")) == HelloRefusal.FOREIGN_INPUT
    assert refusal(bench.hello(input_name="one")) is None


def test_any_number_of_acknowledged_ranges_is_split_into_valid_messages() -> None:
    disjoint = tuple((2 * i, 2 * i) for i in range(MAX_RANGES * (MAX_ACKS_OF_A_HELLO + 1)))
    bench = Bench(journal={RUN: disjoint})
    acks = [message for message in bench.hello() if isinstance(message, Ack)]
    assert len(acks) == MAX_ACKS_OF_A_HELLO
    assert acked(list(acks)) == disjoint[: MAX_RANGES * MAX_ACKS_OF_A_HELLO]
    rest = bench.hello(first_mep=disjoint[MAX_RANGES * MAX_ACKS_OF_A_HELLO][0])
    assert acked(rest) == disjoint[MAX_RANGES * MAX_ACKS_OF_A_HELLO :]


def test_the_repeated_end_of_a_run_is_logged_once(bench: Bench) -> None:
    bench.hello()
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            bench.end(last_mep=3)
            bench.pass_time(20 * SECOND)
    assert [line["event"] for line in lines].count("feeder_ended_run") == 1


def test_a_refusal_that_did_not_reach_its_feeder_is_sent_with_a_later_hello() -> None:
    bench = Bench(feeders=2)
    bench.hello("b")
    bench.hello("a", identity=b"new")
    # The node reads a hello of the connection before, which has ended: its identity is the last one.
    bench.hello("a", identity=b"old")
    bench.connections.ended = {b"old"}
    bench.send_mep(0, "a")
    assert not bench.send_mep(0, "a")
    assert not nacks(bench.hello("a", identity=b"old"))
    duplicate = Nack(RUN, 1, 0, RejectReason.DUPLICATE, False)
    assert nacks(bench.hello("a", identity=b"new")) == [duplicate]
    assert not nacks(bench.hello("a", identity=b"new"))
    # Another process of this name has sent nothing yet.
    bench.connections.ended = {b"new"}
    bench.send_mep(0, "a")
    bench.pass_time(10 * SECOND)
    assert not nacks(bench.hello("a", identity=b"a", session="f2"))


def test_of_too_many_refusals_for_a_feeder_that_is_away_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hltnode.daemon.readout.run_feeders.MAX_UNSENT", 3)
    bench = Bench(feeders=2)
    bench.hello("b")
    bench.hello("a")
    bench.connections.ended = {b"a"}
    for mep in range(5):
        bench.send_mep(mep, "a")
        bench.send_mep(mep, "a")
    bench.connections.ended = set()
    assert [nack.mep for nack in nacks(bench.hello("a"))] == [2, 3, 4]


def without_b(*meps: int) -> Bench:
    """A bench of two feeders that has acknowledged some MEPs without the fragments of feeder b."""
    bench = Bench(feeders=2)
    bench.hello("a")
    bench.hello("b")
    for mep in meps:
        bench.send_mep(mep, "a")
    for _ in range(12):
        bench.pass_time(100 * MS)
    bench.connections.sent.clear()
    return bench


def missed(messages: list[ControlMessage]) -> list[Missed]:
    return [message for message in messages if isinstance(message, Missed)]


def test_a_feeder_is_told_of_a_mep_closed_without_its_fragments_before_the_acknowledgement() -> None:
    bench = Bench(feeders=2)
    bench.hello("a")
    bench.hello("b")
    bench.send_mep(0, "a")
    for _ in range(12):
        bench.pass_time(100 * MS)
        bench.finish_batches()
    to_b = [m for m in bench.connections.take(b"b") if isinstance(m, Missed | Ack)]
    assert to_b == [Missed(RUN, 2, ((0, 0),)), Ack(RUN, ((0, 0),))]
    assert not missed(bench.connections.take(b"a"))


def test_meps_closed_without_a_feeder_are_told_before_the_acknowledgements_of_its_next_hello() -> None:
    bench = without_b(0, 1, 2)
    bench.finish_batches()
    answer = [m for m in bench.hello("b") if isinstance(m, Missed | Ack)]
    assert answer == [Missed(RUN, 2, ((0, 2),)), Ack(RUN, ((0, 2),))]
    assert missed(bench.hello("b", first_mep=2)) == [Missed(RUN, 2, ((2, 2),))]
    assert not missed(bench.hello("b", first_mep=3))


def test_a_restarted_feeder_is_told_which_meps_its_predecessor_missed() -> None:
    bench = without_b(0)
    bench.connections.alive = set()
    assert missed(bench.hello("b", session="f2")) == [Missed(RUN, 2, ((0, 0),))]


def test_a_feeder_that_has_ended_misses_no_mep() -> None:
    bench = Bench(feeders=2)
    bench.hello("a")
    bench.hello("b")
    bench.end("b", last_mep=3)
    bench.connections.sent.clear()
    bench.send_mep(4, "a")
    bench.work()
    assert bench.written == [(RUN, 4)]
    assert not missed(bench.hello("b"))


def test_a_feeder_that_said_goodbye_is_told_when_it_comes_back() -> None:
    bench = Bench(feeders=2)
    bench.hello("a")
    bench.hello("b")
    bench.leave("b")
    bench.connections.sent.clear()
    bench.send_mep(0, "a")
    bench.work()
    assert not missed(bench.connections.take(b"b"))
    assert missed(bench.hello("b")) == [Missed(RUN, 2, ((0, 0),))]


def test_a_mep_that_came_back_before_the_run_started_is_built() -> None:
    bench = Bench(feeders=2)
    bench.hello("a", supervises=True)
    assert bench.revoke("a", (0, 1)) == [Revoked(RUN, ((0, 1),))]
    returned = Returned(RUN, ((0, 0),))
    assert bench.arrive(b"a", returned) == [returned]
    bench.hello("b")
    for mep in (0, 1, 2):
        bench.send_mep(mep, "a", "b")
    bench.work()
    assert bench.written == [(RUN, 0), (RUN, 2)]
