"""A menu of two lines on made-up tracks, small enough to try every choice of its cuts."""

from __future__ import annotations

from typing import Any

import numpy as np

from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.evaluation.lines import Evaluator
from hltnode.processing.selection.expressions.units import MeV
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.studies.sample_truth import SampleKinds
from hltnode.processing.selection.tuning.cuts import TunedCut
from hltnode.processing.selection.tuning.stored_events import StoredEvents, StoredLine
from hltnode.processing.selection.tuning.tunable_line import TunableLine, tunable_line
from hltnode.processing.selection.tuning.tunable_menu import TunableMenu
from tests.processing.selection import toy_detector as toy

RATE = 1000.0
N = (600, 300, 300)
"""Events of minimum bias and of two signals."""


def by_pt(t: Any, pt: float = 60.0) -> Any:
    return t.pt > pt * MeV


def by_a(t: Any, a: float = 60.0) -> Any:
    return t.a > a


LINES = (Line("ByPt", toy.tracks, by_pt), Line("ByA", toy.tracks, by_a), Line("Fixed", toy.event, lambda e: e.n > 39))


def small_menu(*, weighted: bool = False) -> TunableMenu:
    """One track an event in most events; signal 1 has a large pt, signal 2 a large a, minimum bias neither."""
    trigger = TriggerConfig(lines=LINES)
    rng = np.random.default_rng(3)
    n = sum(N)
    sample = np.repeat([0, 1, 2], N)
    given = toy.random_events(n, 7, special=0.0)
    given[toy.track_count.name] = np.where(np.arange(n) % 50 == 0, 40, 1)
    spread = np.abs(rng.normal(0, 40.0, (n * toy.MAX_TRACKS, 2)))
    of_track = np.repeat(sample, toy.MAX_TRACKS)
    first = np.arange(n * toy.MAX_TRACKS) % toy.MAX_TRACKS == 0
    pt = np.where(first, spread[:, 0] + 40.0 * (of_track == 1), 0.0)
    a = np.where(first, spread[:, 1] + 40.0 * (of_track == 2), 0.0)
    given[toy.track_pt.name] = pt
    given[toy.track_y.name] = np.stack([a, a], axis=1).ravel()
    columns = {column: given[column.name].astype(column.dtype) for line in LINES for column in line.columns}
    evaluator = Evaluator(columns, n)
    lines: list[TunableLine] = []
    stored = []
    for line, cut in ((LINES[0], "pt"), (LINES[1], "a")):
        made, _ = tunable_line(trigger, [TunedCut(line.name, cut, 60.0, 0.0, 240.0, is_count=False, asked=True)])
        assert made is not None
        event, values = evaluator.values_of(line.variable, made.roots, made.condition)
        lines.append(made)
        stored.append(StoredLine(event, tuple(values), np.ones(n, np.bool_)))
    fired = np.stack([evaluator.decide(line) for line in LINES], axis=1)
    weights = rng.uniform(0.1, 3.0, n) if weighted else np.ones(n)
    events = StoredEvents(sample, weights, fired, tuple(stored), tuple(SampleKinds() for _ in N))
    return TunableMenu(lines, events, RATE)
