"""Made-up tracks and clusters of chosen directions, and the jets that the kernel finds in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.calorimeter.collections import MAX_CLUSTERS_PER_EVENT
from hltnode.processing.lhcb.geometry.ideal_ecal import NO_CELL
from hltnode.processing.lhcb.jets.collections import MAX_JETS_PER_EVENT
from hltnode.processing.lhcb.jets.find_jets import find_jets
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT
from tests.processing.framework.kernel_runner import Allocate, Launch, host_memory, run_algorithms
from tests.processing.lhcb.jets.jet_oracle import CLUSTER_COLUMNS, TRACK_COLUMNS, Columns, Jet, Jets

Event = tuple[Columns, Columns]
"""Tracks and clusters."""


def slopes_of(eta: Any, phi: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """dx/dz and dy/dz."""
    slope = 1 / np.sinh(np.asarray(eta, float))
    return slope * np.cos(phi), slope * np.sin(phi)


def tracks_of(pt: Any, eta: Any, phi: Any, pv: Any = 0, ghost: Any = 0.0, cell: Any = NO_CELL) -> Columns:
    """Long tracks; pt in MeV."""
    pt, eta, phi, pv, ghost, cell = np.broadcast_arrays(
        *(np.atleast_1d(each) for each in (pt, eta, phi, pv, ghost, cell))
    )
    tx, ty = slopes_of(eta, phi)
    columns = {
        **{"beam_tx": tx, "beam_ty": ty, "beam_qop": 1 / (pt * np.cosh(eta))},
        **{"ghost_probability": ghost, "pv": pv, "ecal_cell": cell},
    }
    return {name: columns[name].astype(dtype) for name, dtype in TRACK_COLUMNS.items()}


def clusters_of(et: Any, eta: Any, phi: Any, e19: Any = 0.9, seed: Any = 7) -> Columns:
    """Clusters of the calorimeter; et in MeV."""
    et, eta, phi, e19, seed = np.broadcast_arrays(*(np.atleast_1d(each) for each in (et, eta, phi, e19, seed)))
    tx, ty = slopes_of(eta, phi)
    columns = {"x": 12650 * tx, "y": 12650 * ty, "et": et, "e19": e19, "seed": seed}
    return {name: columns[name].astype(dtype) for name, dtype in CLUSTER_COLUMNS.items()}


NO_TRACKS = tracks_of([], [], [])
NO_CLUSTERS = clusters_of([], [], [])


def ordered(columns: Columns, order: Any) -> Columns:
    """The same objects in another order."""
    return {name: column[order] for name, column in columns.items()}


def random_event(rng: np.random.Generator, n_tracks: int, n_clusters: int, n_pvs: int = 3, pt: float = 1500.0) -> Event:
    """Tracks and clusters in all directions of the detector, some of them of bad quality or without a vertex."""
    pvs = rng.integers(0, n_pvs, n_tracks)
    tracks = tracks_of(
        rng.exponential(pt, n_tracks) + 10,
        rng.uniform(1.8, 5.0, n_tracks),
        rng.uniform(-np.pi, np.pi, n_tracks),
        np.where(rng.random(n_tracks) < 0.1, 255, pvs),
        rng.random(n_tracks) ** 2,
        rng.integers(0, 6016, n_tracks),
    )
    tracks["beam_qop"][:] *= rng.choice([-1, 1], n_tracks)
    clusters = clusters_of(
        rng.exponential(pt, n_clusters) + 200,
        rng.uniform(1.8, 4.5, n_clusters),
        rng.uniform(-np.pi, np.pi, n_clusters),
        rng.uniform(0.4, 1.0, n_clusters),
        rng.integers(0, 6016, n_clusters),
    )
    return tracks, clusters


def given_of(events: Sequence[Event]) -> dict[str, NDArray[Any]]:
    """The columns of a batch."""
    given: dict[str, NDArray[Any]] = {"events.flags": np.zeros(len(events), np.uint32)}
    kinds: tuple[tuple[str, Mapping[str, Any], int], ...] = (
        ("long_tracks", TRACK_COLUMNS, MAX_TRACKS_PER_EVENT),
        ("ecal_clusters", CLUSTER_COLUMNS, MAX_CLUSTERS_PER_EVENT),
    )
    for kind, (collection, names, most) in enumerate(kinds):
        for name, dtype in names.items():
            columns = np.zeros((len(events), most), dtype)
            for i, event in enumerate(events):
                columns[i, : len(event[kind][name])] = event[kind][name]
            given[f"{collection}.{name}"] = columns.ravel()
        given[f"{collection}.count"] = np.array([len(event[kind][next(iter(names))]) for event in events], np.uint32)
    return given


def run_jets(
    *events: Event,
    launch: Launch | None = None,
    allocate: Allocate = host_memory,
    constants: Mapping[str, float] | None = None,
) -> list[tuple[list[Jet], int]]:
    """Jets and flags of each event. constants: instead of the declared ones."""
    n = len(events)
    columns = run_algorithms(
        (find_jets.with_constants(constants or {}),),
        given_of(events),
        n,
        BatchLimits(events=n),
        launch,
        fill=0x55,
        allocate=allocate,
    )
    return [(jets_of(columns, event), int(columns["events.flags"][event])) for event in range(n)]


def jets_of(columns: Columns, event: int) -> list[Jet]:
    """The jets of an event among the columns of a batch."""
    first = event * MAX_JETS_PER_EVENT
    return [
        Jet(**{name: columns[f"jets.{name}"][place].item() for name in Jet.__dataclass_fields__})
        for place in range(first, first + int(columns["jets.count"][event]))
    ]


def assert_jets_equal(found: Sequence[Jet], expected: Jets) -> None:
    """Numbers and momenta equal those of the oracle; angles within their rounding."""
    assert expected.margin > 1e-5, "a part is too close to the edge of a cone to be compared"
    assert [(j.n_tracks, j.n_photons, j.seed, j.pv) for j in found] == [
        (j.n_tracks, j.n_photons, j.seed, j.pv) for j in expected.jets
    ]
    assert [j.pt for j in found] == [float(np.float32(j.pt)) for j in expected.jets]
    for jet, wanted in zip(found, expected.jets, strict=True):
        assert abs(jet.eta - wanted.eta) < 3e-5
        assert abs((jet.phi - wanted.phi + np.pi) % (2 * np.pi) - np.pi) < 3e-5
        assert abs(jet.phi) <= np.float32(np.pi)
