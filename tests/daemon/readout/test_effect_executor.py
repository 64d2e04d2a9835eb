"""The effects of the builder, carried out with their content alone."""

import pytest

from hltnode.daemon.common.vocabulary import MepStage
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
from hltnode.daemon.readout.effect_executor import MOST_ANSWERED, SAME_REFUSAL_NS, EffectExecutor
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
        self.now = 0
        self.batches: list[Batch] = []
        self.executor = EffectExecutor(
            self.registry, self.acknowledgements, self.connections, self.counters, self.batches.append, lambda: self.now
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


def test_a_batch_is_submitted_before_the_times_of_its_meps_are_counted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = MepRecord(mep=4, slot=1, first_event=0, n_events=3, opened_ns=0, n_sources=2)
    build = bench.counters.mep_stages[MepStage.BUILD]
    counted: list[int] = []
    monkeypatch.setattr(bench.executor, "_submit", lambda _batch: counted.append(sum(build.counts)))
    bench.now = 10
    bench.executor.carry_out([CloseMep(record), SealSlot(Batch(1, RUN, (record,)))])
    assert (counted, sum(build.counts)) == ([0], 1)
    assert build.total == pytest.approx(10e-9)


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


def test_a_refusal_that_asks_for_nothing_is_repeated_after_a_while_only(bench: Bench) -> None:
    reject = Reject(RUN, RejectReason.LATE, 2, 4, False)
    bench.acknowledgements.finish(RUN, [4])
    answer = [Nack(RUN, 2, 4, RejectReason.LATE, False), Ack(RUN, ((4, 4),))]
    bench.executor.carry_out([reject] * 1000)
    assert bench.connections.take() == answer
    bench.now = SAME_REFUSAL_NS - 1
    bench.executor.carry_out([reject])
    assert bench.connections.take() == []
    bench.now = SAME_REFUSAL_NS
    bench.executor.carry_out([reject])
    assert bench.connections.take() == answer
    assert bench.counters.nacks_sent == 2


def test_refusals_of_other_fragments_or_for_other_reasons_are_sent(bench: Bench) -> None:
    rejects = [
        Reject(RUN, RejectReason.LATE, 2, 4, False),
        Reject(RUN, RejectReason.LATE, 2, 5, False),
        Reject(RUN, RejectReason.LATE, 1, 4, False),
        Reject(RUN, RejectReason.DUPLICATE, 2, 4, False),
    ]
    bench.executor.carry_out(rejects)
    assert bench.counters.nacks_sent == len(rejects)


def test_each_refusal_that_asks_for_the_fragment_is_sent(bench: Bench) -> None:
    reject = Reject(RUN, RejectReason.BAD_CRC, 2, 4, True)
    bench.executor.carry_out([reject] * 3)
    assert bench.connections.take() == [Nack(RUN, 2, 4, RejectReason.BAD_CRC, True)] * 3


def test_a_damaged_copy_of_a_fragment_has_only_a_missed_acknowledgement_repeated(bench: Bench) -> None:
    reject = Reject(RUN, RejectReason.BAD_CRC, 2, 4, False)
    bench.executor.carry_out([reject])
    assert bench.connections.take() == []
    bench.acknowledgements.finish(RUN, [4])
    bench.now = SAME_REFUSAL_NS
    bench.executor.carry_out([reject])
    assert bench.connections.take() == [Ack(RUN, ((4, 4),))]


def test_refusals_are_remembered_in_bounded_number(bench: Bench) -> None:
    rejects = [Reject(RUN, RejectReason.LATE, 2, mep, False) for mep in range(MOST_ANSWERED + 1)]
    bench.executor.carry_out(rejects)
    bench.executor.carry_out(rejects[-1:])
    assert bench.counters.nacks_sent == len(rejects)
    # The last one took the place of all.
    bench.executor.carry_out(rejects[:1])
    assert bench.counters.nacks_sent == len(rejects) + 1


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
