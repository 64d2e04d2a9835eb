"""Lines on tracks of the TPC against the tracks themselves."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.alice.lines.inputs import MIN_Q_PT
from tests.processing.alice.toy_events import columns_of, event_of, events_of, mep_of, toy_slice

CONFIGURATION = """
[[lines]]
type = "TrackMultiplicity"
name = "Several"
min_tracks = 3
max_tracks = 6

[[lines]]
type = "TrackAbovePt"
name = "Hard"
min_pt = 1.5
min_clusters = 150

[[lines]]
type = "Passthrough"
name = "All"
"""


@pytest.fixture(scope="module")
def columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(12)
    return columns_of(mep_of([event_of({n: toy_slice(rng, n).clusters}) for n in range(9)]), CONFIGURATION)


def test_lines_decide_by_number_and_momentum_of_tracks(columns: dict[str, np.ndarray]) -> None:
    words = columns["events.lines"][:9]
    events = events_of(columns, 9)
    decided = {name: [bool(word >> i & 1) for word in words] for i, name in enumerate(("Several", "Hard", "All"))}
    assert decided["Several"] == [3 <= len(event.tracks) <= 6 for event in events]
    hard = [
        bool(((1 / np.maximum(np.abs(e.tracks["q_pt"]), MIN_Q_PT) >= 1.5) & (e.tracks["n_clusters"] >= 150)).any())
        for e in events
    ]
    assert decided["Hard"] == hard
    assert decided["All"] == [True] * 9
    for name in ("Several", "Hard"):
        assert len(set(decided[name])) == 2, name


def test_counts_are_those_of_the_events(columns: dict[str, np.ndarray]) -> None:
    events = events_of(columns, 9)
    assert columns["tpc_tracks.count"][:9].tolist() == [len(event.tracks) for event in events]
    assert [len(event.tracks) for event in events][:2] == [0, 1]
    assert (columns["tpc_tracklets.count"][:9] >= columns["tpc_tracks.count"][:9]).all()
