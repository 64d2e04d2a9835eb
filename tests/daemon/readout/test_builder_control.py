"""Control of the builder by the pipeline, the clock and the run control."""

import pytest

from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.event_building.stimuli_and_effects import SlotAdvanced
from hltnode.protocol.transport.feeder_messages import Ack, Credit
from tests.daemon.readout.bench import MS, RUN, Bench


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


def test_a_finished_batch_is_acknowledged_after_the_credits_of_its_slot(bench: Bench) -> None:
    bench.hello()
    bench.send_mep(0)
    bench.pass_time(20 * MS)
    bench.connections.take()
    bench.finish_batches()
    # The slot can fill again before its MEP is acknowledged; with the acknowledgement the limit falls.
    assert bench.connections.take() == [Credit(RUN, 9), Credit(RUN, 8), Ack(RUN, ((0, 0),))]
    assert bench.counters.meps_acknowledged == 1


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
