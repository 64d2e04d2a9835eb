"""Lines on merged tracks and jets of the TPC against the tracks and jets themselves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.lines.inputs import MIN_Q_PT
from hltnode.processing.alice.lines.line_types import Lambda, NeutralKaon
from hltnode.processing.alice.tpc.candidates.collections import JET, MAX_JETS
from hltnode.protocol.alice.tpc_banks import N_ROWS
from tests.processing.alice.toy_events import (
    GEOMETRY,
    UNIT,
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


def test_each_cut_of_the_lines_on_v0s_decides() -> None:
    """The lines as functions of the fields of a candidate."""
    good = {"pt": 2.0, "x": 3.0, "y": 4.0, "dca": 0.5, "pointing": 0.999}
    masses = {"mass_k0s": 0.4976, "mass_lambda": 2.0, "mass_antilambda": 2.0}
    lambdas = [{**masses, "mass_k0s": 0.3, name: 1.1157} for name in ("mass_lambda", "mass_antilambda")]
    cuts: dict[str, Any] = {
        "min_pt": 1.5,
        "min_radius": 4.0,
        "max_dca": 0.7,
        "min_pointing": 0.998,
        "mass_window": 0.01,
    }
    lines = NeutralKaon("Kaon", **cuts), Lambda("Lambda", **cuts)
    bad = [{"pt": 1.4}, {"x": 0.0, "y": 3.9}, {"dca": 0.8}, {"pointing": 0.997}]
    cases = [(masses, (True, False)), *((each, (False, True)) for each in lambdas)]
    cases += [({**each, **cut}, (False, False)) for each in (masses, lambdas[0]) for cut in bad]
    cases += [({**masses, "mass_k0s": value}, (False, False)) for value in (0.4875, 0.5077)]
    cases += [({**lambdas[0], "mass_lambda": value}, (False, False)) for value in (1.1055, 1.1258)]
    for values, expected in cases:
        candidate = SimpleNamespace(**{**good, **values})
        candidate.radius = float(np.hypot(candidate.x, candidate.y))
        assert tuple(bool(line.selects(candidate)) for line in lines) == expected, values


def displaced_clusters(charge: int) -> NDArray[np.void]:
    """Clusters in a slice of a pion of 1 GeV/c from a place 20 cm from the beam line, at 0.2 rad to the radius."""
    k, phi, x = UNIT * charge, 0.2 * charge, GEOMETRY.row_x - 20.0
    end = np.arcsin(np.sin(phi) + k * x)
    return clusters_at(np.arange(N_ROWS), (np.cos(phi) - np.cos(end)) / k, 10.0 + 0.2 * (end - phi) / k)


def test_v0s_of_events_reach_the_lines() -> None:
    """A decay in the TPC's chain: two helices from a place 20 cm from the beam line."""
    tracks = [displaced_clusters(charge) for charge in (1, -1)]
    toml = '[[lines]]\nname = "Any"\ntype = "NeutralKaon"\nmin_pt = 0.0\nmass_window = 1.0\nmin_pointing = -1.0'
    columns = columns_of(mep_of([event_of({0: np.concatenate(tracks)}), event_of({0: tracks[0]})]), toml)
    assert columns["tpc_v0s.count"][:2].tolist() == [1, 0]
    assert [word & 1 for word in columns["events.lines"][:2].tolist()] == [1, 0]
