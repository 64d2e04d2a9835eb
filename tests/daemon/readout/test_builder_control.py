"""Control of the builder by the pipeline, the clock and the run control."""

import pytest

from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.event_building.stimuli_and_effects import SlotAdvanced
from hltnode.daemon.readout.acknowledgements import Ranges
from hltnode.daemon.readout.run_feeders import SILENT_NS
from hltnode.protocol.transport.feeder_messages import Ack, Credit
from tests.daemon.readout.bench import MS, RUN, SECOND, Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_slots_change_state_only_by_reports_of_the_pipeline(bench: Bench) -> None:
    bench.hello()
    bench.send_mep(0)
    bench.pass_time(20 * MS)
    [batch] = bench.batches
    slots = bench.builder.pool.slots
    assert slots[batch.slot].state is SlotState.SEALED
    bench.control.slot_advanced(SlotAdvanced(batch.slot, SlotState.RUN))
    assert slots[batch.slot].state is SlotState.RUN
    bench.finish_batches()
    assert slots[batch.slot].state is SlotState.FREE
    assert bench.builder.is_idle


def test_a_finished_batch_is_acknowledged_without_a_message_of_credits(bench: Bench) -> None:
    bench.hello()
    bench.send_mep(0)
    bench.pass_time(20 * MS)
    bench.connections.take()
    bench.finish_batches()
    # The free slot gives as many credits as the acknowledgement takes from the limit.
    assert bench.connections.take() == [Ack(RUN, ((0, 0),))]
    assert bench.builder.window.limit == 8
    assert bench.counters.meps_acknowledged == 1


def test_a_limit_that_falls_is_sent_before_the_acknowledgement_that_lowers_it(bench: Bench) -> None:
    bench.hello()
    bench.send_mep(0)
    bench.pass_time(20 * MS)
    bench.control.pause()
    bench.connections.take()
    bench.finish_batches()
    assert bench.connections.take() == [Credit(RUN, 7), Ack(RUN, ((0, 0),))]


def test_a_broken_identity_is_counted_and_explained_by_the_history_in_the_summary(bench: Bench) -> None:
    bench.hello()
    bench.send_mep(0)
    bench.pass_time(20 * MS)
    bench.finish_batches()
    bench.counters.fragments_received += 1
    bench.control.leave_run()
    [(summary, _)] = bench.summaries
    assert not summary["accounting_closes"]
    assert "MEP 0 is complete" in summary["history"]
    assert bench.counters.accounting_broken == 1
    assert not bench.control.check_accounts()
    assert bench.counters.accounting_broken == 2


# Missing feeders


def missing(bench: Bench) -> set[tuple[int, str]]:
    """Run and name of the missing feeders of the current run and of kept runs."""
    current = bench.registry.current
    lost = bench.control.lost_feeders(bench.now)
    found = {(current.run, each.hello.feeder) for each in lost} if current is not None else set()
    return found | {(each.run, each.name) for of in bench.control.deserted_runs(bench.now).values() for each in of}


def taking_data(*names: str, journal: dict[int, Ranges] | None = None) -> Bench:
    """A node with an acknowledged MEP of a run with these feeders."""
    bench = Bench(feeders=len(names), journal=journal)
    for name in names:
        bench.hello(name)
    bench.send_mep(0, *names)
    bench.work()
    return bench


@pytest.mark.parametrize("leaves", [True, False], ids=["goodbye", "killed"])
def test_feeders_are_missing_until_they_are_back_however_long_their_run_is_kept(*, leaves: bool) -> None:
    bench = taking_data("a", "b")
    assert not missing(bench)
    if leaves:
        bench.leave("a")
        bench.leave("b")
    for _ in range(1200):
        bench.pass_time(SECOND)
        if bench.now > SILENT_NS + 2 * SECOND:
            assert missing(bench) == {(RUN, "a"), (RUN, "b")}
    assert RUN in bench.registry.kept
    [feeder, _] = bench.control.deserted_runs(bench.now)[RUN]
    assert feeder.silent_ns is not None
    assert 1198 * SECOND < feeder.silent_ns < 1202 * SECOND
    bench.hello("a", session="f2", identity=b"a2")
    assert missing(bench) == {(RUN, "b")}, "the run cannot start without b"
    bench.hello("b", session="f2", identity=b"b2")
    assert not missing(bench)


def test_missing_feeders_of_a_kept_run_stay_missing_while_another_run_takes_data() -> None:
    bench = taking_data("a")
    bench.pass_time(6 * SECOND)
    bench.hello("b", run=RUN + 1)
    assert missing(bench) == {(RUN, "a")}
    assert not bench.control.lost_feeders(bench.now), "alerts of the new run are not excluded"
    bench.control.close(RUN)
    assert not missing(bench)


def test_feeders_that_have_sent_everything_or_whose_run_is_closed_are_not_missing() -> None:
    bench = taking_data("a", "b")
    bench.end("a", last_mep=0)
    bench.pass_time(6 * SECOND)
    assert missing(bench) == {(RUN, "b")}
    bench.control.close(None)
    assert not missing(bench)


def test_a_run_left_by_an_operator_lacks_no_feeder_while_one_is_connected() -> None:
    bench = taking_data("a")
    bench.control.leave_run()
    assert RUN in bench.registry.kept
    assert not missing(bench)
    bench.pass_time(6 * SECOND)
    assert missing(bench) == {(RUN, "a")}


def test_a_restarted_node_lacks_the_feeders_of_its_runs_until_one_is_back() -> None:
    bench = Bench(feeders=2, journal={RUN: ((0, 4),)})
    assert missing(bench) == {(RUN, "")}
    bench.hello("a")
    assert not missing(bench)
    bench.pass_time(6 * SECOND)
    assert missing(bench) == {(RUN, "a")}


def test_a_feeder_that_vanished_before_the_start_is_not_missing() -> None:
    bench = Bench(feeders=2)
    bench.hello("a")
    bench.pass_time(6 * SECOND)
    bench.hello("b")
    assert not missing(bench)
