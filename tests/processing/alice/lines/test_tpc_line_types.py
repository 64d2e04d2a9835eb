"""Lines on merged tracks and jets of the TPC against the tracks and jets themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.lines.inputs import MIN_Q_PT
from hltnode.processing.alice.tpc.candidates.collections import JET, MAX_JETS
from tests.processing.alice.toy_events import (
    FoundEvent,
    circle_places,
    clusters_at,
    columns_of,
    event_of,
    events_of,
    mep_of,
    toy_slice,
)

LINES = {
    "Several": 'type = "TrackMultiplicity"\nmin_tracks = 3\nmax_tracks = 6',
    "Hard": 'type = "TrackAbovePt"\nmin_pt = 2.0\nmin_clusters = 150',
    "HardOrShort": 'type = "TrackAbovePt"\nmin_pt = 2.0\nmin_clusters = 0',
    "SoftAndLong": 'type = "TrackAbovePt"\nmin_pt = 0.0\nmin_clusters = 158',
    "Jet": 'type = "JetAbovePt"\nmin_pt = 9.0\nmin_tracks = 0',
    "JetOfMany": 'type = "JetAbovePt"\nmin_pt = 0.0\nmin_tracks = 6',
    "All": 'type = "Passthrough"',
}
CONFIGURATION = "\n".join(f'[[lines]]\nname = "{name}"\n{text}' for name, text in LINES.items())
N = 13


@pytest.fixture(scope="module")
def columns() -> dict[str, NDArray[Any]]:
    """Events with 0 to 8 tracks in one slice, some with a second slice, and one with a hard track that ends early."""
    rng = np.random.default_rng(12)
    events = [event_of({n: toy_slice(rng, n).clusters}) for n in range(9)]
    events += [event_of({0: toy_slice(rng, 1).clusters, 3 * n: toy_slice(rng, n).clusters}) for n in (1, 2, 3)]
    rows, y, z = circle_places(0.2, 0.02, 0.3, 2.0)
    events += [event_of({5: clusters_at(rows[:90], y[:90], z[:90])})]
    return columns_of(mep_of(events), CONFIGURATION)


def jets_of(columns: dict[str, NDArray[Any]], event: int) -> NDArray[np.void]:
    jets = columns["tpc_jets.jet"].view(JET.dtype)[event * MAX_JETS :]
    found: NDArray[np.void] = jets[: int(columns["tpc_jets.count"][event])]
    return found


def test_each_cut_of_the_lines_decides(columns: dict[str, NDArray[Any]]) -> None:
    events = events_of(columns, N)
    decided = {
        name: [bool(word >> i & 1) for word in columns["events.lines"][:N].tolist()] for i, name in enumerate(LINES)
    }

    def tracks(event: FoundEvent, min_pt: float, min_clusters: int) -> bool:
        pt = 1 / np.maximum(np.abs(event.merged["q_pt"]), np.float32(MIN_Q_PT))
        return bool(((pt >= min_pt) & (event.merged["n_clusters"] >= min_clusters)).any())

    def jet(event: int, min_pt: float, min_tracks: int) -> bool:
        of = jets_of(columns, event)
        return bool(((of["pt"] - of["background"] >= min_pt) & (of["n_tracks"] >= min_tracks)).any())

    assert decided == {
        "Several": [3 <= len(event.merged) <= 6 for event in events],
        "Hard": [tracks(event, 2.0, 150) for event in events],
        "HardOrShort": [tracks(event, 2.0, 0) for event in events],
        "SoftAndLong": [tracks(event, 0.0, 158) for event in events],
        "Jet": [jet(i, 9.0, 0) for i in range(N)],
        "JetOfMany": [jet(i, 0.0, 6) for i in range(N)],
        "All": [True] * N,
    }
    for name in LINES:
        assert len(set(decided[name])) == (1 if name == "All" else 2), name
    assert decided["Hard"] != decided["HardOrShort"]
    assert decided["Jet"] != decided["JetOfMany"]


def test_counts_are_those_of_the_events(columns: dict[str, NDArray[Any]]) -> None:
    events = events_of(columns, N)
    assert columns["tpc_tracks.count"][:N].tolist() == [len(event.tracks) for event in events]
    assert columns["tpc_merged_tracks.count"][:N].tolist() == [len(event.merged) for event in events]
    assert [len(event.tracks) for event in events][:2] == [0, 1]
    assert (columns["tpc_tracklets.count"][:N] >= columns["tpc_tracks.count"][:N]).all()
