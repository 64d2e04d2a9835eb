"""The effects of the builder, carried out with their content alone."""

import pytest

from hltnode.daemon.event_building.stimuli_and_effects import (
    Batch,
    CloseMep,
    GrantCredit,
    MepRecord,
    Place,
    Reject,
    SealSlot,
)
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.acknowledgements import Acknowledgements
from hltnode.daemon.readout.effect_executor import EffectExecutor
from hltnode.daemon.readout.feeder_registry import FeederRegistry
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.feeder_messages import Ack, Credit, Hello, Missed, Nack
from hltnode.protocol.transport.mep_ranges import MepRanges
from tests.daemon.readout.connections import RecordedConnections

RUN = 7


class Bench:
    """An executor with two feeders: a sends source 1, b sends source 2."""

    def __init__(self) -> None:
        self.registry = FeederRegistry(
            node="n",
            chain="toy",
            run=0,
            min_feeders=2,
            max_feeders=2,
            sources=None,
            max_events_per_mep=100,
        )
        run = self.registry.begin(RUN)
        for name, source in (("a", 1), ("b", 2)):
            hello = Hello(name, "s", RUN, (source,), 0, 10, 1000, False)
            self.registry.hello(0, name.encode(), run, hello, MepRanges())
        self.acknowledgements = Acknowledgements()
        self.connections = RecordedConnections()
        self.counters = Counters()
        self.batches: list[Batch] = []
        self.executor = EffectExecutor(
            self.registry, self.acknowledgements, self.connections, self.counters, self.batches.append, lambda: 0
        )


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_sealed_slot_goes_to_the_pipeline_as_the_batch_that_the_effect_carries(bench: Bench) -> None:
    record = MepRecord(mep=4, slot=1, first_event=0, n_events=3, opened_ns=0, n_sources=2)
    batch = Batch(1, RUN, (record,), floor=2)
    bench.executor.carry_out([Place(slot=1, offset=0, size=8, source=1, record=record), SealSlot(batch)])
    assert bench.batches == [batch]
    assert not bench.connections.sent


def test_credits_go_to_every_feeder_of_the_run(bench: Bench) -> None:
    bench.executor.carry_out([GrantCredit(RUN, 5)])
    assert bench.connections.sent == [((b"a", b"b"), Credit(RUN, 5))]


def test_a_rejected_fragment_is_refused_to_the_feeder_of_its_source(bench: Bench) -> None:
    bench.executor.carry_out([Reject(RUN, RejectReason.LATE, 2, 4, False)])
    assert bench.connections.sent == [((b"b",), Nack(RUN, 2, 4, RejectReason.LATE, False))]
    assert bench.counters.nacks_sent == 1


def test_the_rejection_of_a_fragment_from_an_unknown_source_is_sent_to_no_feeder(bench: Bench) -> None:
    bench.executor.carry_out([Reject(RUN, RejectReason.UNKNOWN_SOURCE, 99, 4, False)])
    assert not bench.connections.sent
    assert bench.counters.nacks_sent == 0


def test_a_fragment_of_a_kept_run_shall_be_sent_again_and_an_unknown_run_gets_no_answer(
    bench: Bench,
) -> None:
    bench.registry.leave()
    bench.registry.begin(RUN + 1)
    bench.executor.carry_out([Reject(RUN, RejectReason.FOREIGN_RUN, 2, 4, False)])
    assert bench.connections.take() == [Nack(RUN, 2, 4, RejectReason.FOREIGN_RUN, True)]
    bench.executor.carry_out([Reject(RUN + 2, RejectReason.FOREIGN_RUN, 2, 4, False)])
    assert bench.connections.take() == []


def test_a_missed_acknowledgement_is_repeated_with_the_rejection(bench: Bench) -> None:
    bench.acknowledgements.finish(RUN, [4])
    bench.executor.carry_out([Reject(RUN, RejectReason.DUPLICATE, 1, 4, False)])
    assert bench.connections.take() == [Nack(RUN, 1, 4, RejectReason.DUPLICATE, False), Ack(RUN, ((4, 4),))]


def test_a_complete_mep_needs_no_action_when_it_is_closed(bench: Bench) -> None:
    bench.executor.carry_out([CloseMep(MepRecord(mep=4, slot=1, first_event=0, n_events=3, opened_ns=0, n_sources=2))])
    assert not bench.connections.sent
    assert not bench.batches


def test_a_feeder_is_told_once_for_a_mep_that_was_closed_without_its_sources(bench: Bench) -> None:
    run = bench.registry.current
    assert run is not None
    bench.registry.hello(0, b"b", run, Hello("b", "s", RUN, (2, 3), 0, 10, 1000, False), MepRanges())
    record = MepRecord(mep=4, slot=1, first_event=0, n_events=3, opened_ns=0, n_sources=2)
    record.missing = (2, 3, 99)
    bench.executor.carry_out([CloseMep(record)])
    assert bench.connections.sent == [((b"b",), Missed(RUN, 2, ((4, 4),)))]
