"""MEPs that a rule drops: they never reach the back end, and free their slot while others compute."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hltnode.daemon.common.vocabulary import HeadRoomRule
from hltnode.daemon.event_building.stimuli_and_effects import Batch, MepRecord
from hltnode.daemon.output.early_decisions import would_repeat
from hltnode.processing.framework.flags import EventFlag
from tests.daemon.compute.test_pipeline import Bench


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    asked = getattr(request, "param", None)
    made = Bench(serial=True) if asked == "serial" else Bench(asked)
    yield made
    made.engine.behaviour.hang.clear()
    made.engine.behaviour.hanging_slots.clear()
    assert made.pipeline.stop(10.0)
    assert not made.crashes


def submit(bench: Bench, slot: int, meps: dict[int, HeadRoomRule | None], run: int = 1) -> None:
    records = []
    for mep, rule in meps.items():
        record = MepRecord(mep=mep, slot=slot, first_event=4 * mep, n_events=4, opened_ns=0, n_sources=1)
        record.dropped_by = rule
        records.append(record)
    bench.pipeline.submit(Batch(slot, run, tuple(records)))


def test_dropped_meps_are_not_computed_and_say_so(bench: Bench) -> None:
    submit(bench, 0, {5: None, 6: HeadRoomRule.THIN, 7: None})
    computed = bench.take()
    dropped = [EventFlag.DROPPED] * 4
    assert computed.results.flags.tolist() == [0] * 4 + dropped + [0] * 4
    assert computed.results.accepted.tolist() == [0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1]
    assert (computed.error, computed.not_processed) == (None, ())
    assert bench.notes.noted == [("begin", [5, 7]), ("end", [5, 7])]
    assert not would_repeat(computed)


@pytest.mark.parametrize("bench", ["serial", None], indirect=True)
def test_a_dropped_batch_leaves_while_the_back_end_has_others(bench: Bench) -> None:
    bench.engine.behaviour.hanging_slots.add(0)
    submit(bench, 0, {5: None})
    submit(bench, 1, {6: HeadRoomRule.DROP})
    computed = bench.take()
    assert [mep.mep for mep in computed.batch.meps] == [6]
    assert computed.tck == 101
    assert computed.results.flags.tolist() == [EventFlag.DROPPED] * 4
    bench.engine.behaviour.hanging_slots.clear()
    assert [mep.mep for mep in bench.take().batch.meps] == [5]


def test_a_dropped_batch_that_begins_a_run_waits_for_the_run_before(bench: Bench) -> None:
    submit(bench, 0, {5: None})
    submit(bench, 1, {6: HeadRoomRule.DROP}, run=2)
    assert [bench.take().tck for _ in range(2)] == [101, 102]


@pytest.mark.parametrize("bench", [{6: 1, 7: 2}], indirect=True)
def test_a_dropped_mep_that_ended_a_session_is_not_tried_again(bench: Bench) -> None:
    submit(bench, 0, {5: None, 6: HeadRoomRule.DROP, 7: HeadRoomRule.DROP})
    computed = bench.take()
    assert computed.not_processed == ()
    assert bench.notes.noted == [("begin", [5]), ("end", [5])]
    assert computed.results.flags.tolist() == [0] * 4 + [EventFlag.DROPPED] * 8
