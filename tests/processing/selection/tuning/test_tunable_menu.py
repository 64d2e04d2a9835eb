"""A menu on the events that some cuts may accept has the rates and efficiencies of all events."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hltnode.processing.selection.studies.sample_truth import SampleKinds
from hltnode.processing.selection.tuning.stored_events import StoredEvents, StoredLine
from hltnode.processing.selection.tuning.tunable_menu import Scales, TunableMenu
from tests.processing.selection.tuning.test_tunable_line import (
    N_EVENTS,
    evaluator_of,
    line_of,
    random_values,
    thresholds,
)

RATE = 1e6


def menu() -> TunableMenu:
    """One tuned line with a scaler on toy events, and a line that is not tuned; events 40 and later are a signal."""
    line, tuned = line_of(thresholds)
    event, values = evaluator_of(3, line).values_of(line.variable, tuned.roots, tuned.condition)
    rng = np.random.default_rng(7)
    passes = rng.random(N_EVENTS) < 0.7
    selected = np.zeros(N_EVENTS, np.bool_)
    selected[event[tuned.selected(values, tuned.base)]] = True
    fired = np.column_stack([selected & passes, rng.random(N_EVENTS) < 0.1])
    stored = StoredLine(event, tuple(values), passes)
    sample = np.repeat([0, 1], [40, N_EVENTS - 40])
    kinds = (SampleKinds(), SampleKinds())
    return TunableMenu([tuned], StoredEvents(sample, rng.uniform(0.5, 3.0, N_EVENTS), fired, (stored,), kinds), RATE)


def test_reachable_events_have_the_decisions_rates_and_efficiencies_of_all_events_for_any_cuts() -> None:
    everything = menu()
    fewer, reachable = everything.reachable()
    assert 5 < np.count_nonzero(reachable) < N_EVENTS - 5
    chosen = np.arange(N_EVENTS) % 3 != 0
    scales = Scales.of(everything, chosen)
    seen = set()
    for point in random_values(everything.lines[0], 5, 30):
        accepted = everything.accepted(point)
        np.testing.assert_array_equal(fewer.accepted(point), accepted[reachable])
        assert not accepted[~reachable].any()
        expected, found = scales.measured(accepted), scales.on(reachable).measured(fewer.accepted(point))
        np.testing.assert_allclose([found.rate, *found.efficiencies], [expected.rate, *expected.efficiencies])
        seen.add(found.rate)
    assert len(seen) > 3, "the cuts must change decisions"


def test_events_that_scalers_remove_and_no_other_line_accepts_are_not_reachable() -> None:
    everything = menu()
    stored = everything.events.lines[0]
    none = replace(stored, passes=np.zeros(N_EVENTS, np.bool_))
    fired = everything.events.fired & [False, True]
    without = TunableMenu(everything.lines, replace(everything.events, lines=(none,), fired=fired), RATE)
    np.testing.assert_array_equal(without.reachable()[1], fired[:, 1])
