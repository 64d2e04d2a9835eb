"""Pairs of photons and of electrons against an oracle in double precision, their cuts and their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.calorimeter.collections import (
    MAX_CLUSTERS_PER_EVENT,
    MAX_DIELECTRONS_PER_EVENT,
    MAX_PHOTON_PAIRS_PER_EVENT,
)
from hltnode.processing.lhcb.calorimeter.pair_electrons import pair_electrons
from hltnode.processing.lhcb.calorimeter.pair_photons import pair_photons
from hltnode.processing.lhcb.primary_vertices.collections import MAX_PVS
from hltnode.processing.lhcb.tracks.kalman.impact_parameter import impact_parameter
from hltnode.processing.lhcb.tracks.kalman.velo_fit import velo_fit
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT
from tests.processing.framework.kernel_runner import Launch, run_algorithms, with_block_size
from tests.processing.lhcb.calorimeter.ecal_oracle import photon_pairs
from tests.processing.lhcb.secondary_vertices.vertices_oracle import (
    NO_PV,
    PION,
    closest_approach,
    fit,
    mass,
    momentum,
    moved,
)
from tests.processing.lhcb.tracks.kalman.toy_tracks import ToyEvents, tracks_from
from tests.processing.lhcb.tracks.kalman.velo_fit_oracle import Field

Columns = dict[str, NDArray[Any]]
ELECTRON = 0.51099895
PV = (0.02, -0.03, 5.0)


# --- photons ----------------------------------------------------------------------------------------------------------


def clusters_of(*events: NDArray[np.float64]) -> Columns:
    """Columns of clusters f64[n, 5]: x, y, energy, transverse energy, E19."""
    columns = np.zeros((5, len(events), MAX_CLUSTERS_PER_EVENT), np.float32)
    for i, of_event in enumerate(events):
        columns[:, i, : len(of_event)] = of_event.T
    names = ("x", "y", "energy", "et", "e19")
    return {
        "events.flags": np.zeros(len(events), np.uint32),
        "ecal_clusters.count": np.array([len(of_event) for of_event in events], np.uint32),
        **{f"ecal_clusters.{name}": column.ravel() for name, column in zip(names, columns, strict=True)},
    }


def random_clusters(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    x, y = rng.uniform(-3800.0, 3800.0, n), rng.uniform(-3100.0, 3100.0, n)
    energy = rng.exponential(8000.0, n) + 500.0
    radius = np.hypot(x, y)
    made = np.column_stack([x, y, energy, energy * radius / np.hypot(radius, 12650.0), rng.uniform(0.4, 1.0, n)])
    return made.astype(np.float32).astype(float)


def pairs_of(given: Columns, launch: Launch | None = None, constants: Mapping[str, float] | None = None) -> Columns:
    n = len(given["ecal_clusters.count"])
    algorithm = pair_photons.with_constants(constants or {})
    return run_algorithms((algorithm,), given, n, BatchLimits(events=n), launch, fill=0x55)


def photons_of_event(columns: Columns, event: int) -> Columns:
    first = event * MAX_PHOTON_PAIRS_PER_EVENT
    own = slice(first, first + int(columns["photon_pairs.count"][event]))
    found = {name: columns[f"photon_pairs.{name}"][own] for name in ("mass", "pt", "eta")}
    return {**found, "clusters": columns["photon_pairs.clusters"].reshape(-1, 2)[own]}


@pytest.mark.parametrize("constants", [{}, {"min_et": 1500.0, "min_e19": 0.8}])
def test_photon_pairs_are_those_of_the_oracle(constants: dict[str, float]) -> None:
    rng = np.random.default_rng(3)
    events = [random_clusters(rng, n) for n in (0, 1, 2, 60, 120)]
    events[3][1, :2] = events[3][0, :2] + (60.0, 0.0)
    events[3][:2, 3:] = (2000.0, 0.9)
    columns = pairs_of(clusters_of(*events), constants=constants)
    assert not columns["events.flags"].any()
    for i, of_event in enumerate(events):
        found, expected = photons_of_event(columns, i), photon_pairs(of_event, **constants)
        np.testing.assert_array_equal(found["clusters"], expected["clusters"])
        for name in ("mass", "pt", "eta"):
            np.testing.assert_allclose(found[name], expected[name], rtol=2e-5, atol=1e-2 if name != "eta" else 1e-5)
    assert columns["photon_pairs.count"][3] > 10


def test_a_photon_is_above_both_cuts() -> None:
    above = [np.nextafter(np.float32(400), np.float32(1e9)), np.nextafter(np.float32(0.6), np.float32(1))]
    good = np.array([1000.0, 200.0, 1e4, above[0], above[1]])
    for i, cut in ((3, 400.0), (4, np.float32(0.6)), (3, np.nan), (4, np.nan)):
        worse = good.copy()
        worse[i] = cut
        counts = pairs_of(clusters_of(np.array([good, good]), np.array([good, worse])))["photon_pairs.count"]
        assert counts.tolist() == [1, 0]


def test_two_photons_of_opposite_directions_have_a_finite_pseudorapidity() -> None:
    back_to_back = np.array([[1000.0, 0.0, 1e4, 790.0, 0.9], [-1000.0, 0.0, 1e4, 790.0, 0.9]])
    (eta,) = photons_of_event(pairs_of(clusters_of(back_to_back)), 0)["eta"]
    assert eta == 20.0


def test_more_pairs_of_photons_than_fit_flag_their_event_alone() -> None:
    rng = np.random.default_rng(5)
    events = [random_clusters(rng, n) for n in (91, 92, 91, 1504)]
    for of_event in events:
        of_event[:, 3:] = (500.0, 0.9)
    columns = pairs_of(clusters_of(*events))
    assert columns["photon_pairs.count"].tolist() == [4095, 4096, 4095, 4096]
    assert columns["events.flags"].tolist() == [0, EventFlag.OVERFLOW, 0, EventFlag.OVERFLOW]
    np.testing.assert_array_equal(
        photons_of_event(columns, 1)["clusters"], photon_pairs(events[1])["clusters"][:MAX_PHOTON_PAIRS_PER_EVENT]
    )


# --- electrons --------------------------------------------------------------------------------------------------------


@cache
def electron_events() -> tuple[int, BatchLimits, Columns]:
    """Tracks of two vertices, some of them electrons; events without tracks, without vertex, with one electron."""
    rng = np.random.default_rng(2)
    far = (0.6, 0.4, 30.0)
    tracks = [[*tracks_from(rng, PV, 20), *tracks_from(rng, far, 6)], [], tracks_from(rng, PV, 8)]
    tracks += [tracks_from(rng, PV, 1), [tracks_from(rng, PV, 1)[0]] * 2]
    events = ToyEvents(tracks, [[PV, (0.0, 0.0, 70.0)], [PV], [], [PV], [PV]])
    n = len(tracks)
    given = events.columns()
    places = n * MAX_TRACKS_PER_EVENT
    given["long_tracks.is_electron"] = (rng.random(places) < 0.7).astype(np.uint8)
    given["long_tracks.is_electron"][-MAX_TRACKS_PER_EVENT:] = 1
    given["long_tracks.brem_energy"] = np.where(rng.random(places) < 0.5, rng.exponential(3000.0, places), 0.0)
    return n, events.sample.limits, given


def dielectrons_of(launch: Launch | None = None, constants: Mapping[str, float] | None = None) -> Columns:
    n, limits, given = electron_events()
    algorithms = (velo_fit, impact_parameter, pair_electrons.with_constants(constants or {}))
    return run_algorithms(algorithms, given, n, limits, launch)


NAMES = ("x", "y", "z", "chi2", "doca", "ip", "px", "py", "pz", "pt", "mass", "m_pipi", "same_sign", "pv")


def expected_dielectrons(
    columns: Columns, event: int, max_doca: float = 0.5, max_chi2: float = 30.0
) -> list[tuple[tuple[int, int], dict[str, float]]]:
    """Tracks and values of all pairs of electrons, by the oracle of secondary vertices."""
    first = event * MAX_TRACKS_PER_EVENT
    beam = ("x", "y", "z", "tx", "ty", "qop", "c00", "c20", "c22", "c11", "c31", "c33")
    field = Field(*map(float, columns["velo_field"].view(np.float32)))
    pvs = columns["pvs.vertex"][event * MAX_PVS :][: int(columns["pvs.count"][event])]
    tracks = {
        i: {f"beam_{name}": float(columns[f"long_tracks.beam_{name}"][first + i]) for name in beam}
        for i in range(int(columns["long_tracks.count"][event]))
        if columns["long_tracks.is_electron"][first + i]
    }
    found = []
    for i, j in combinations(tracks, 2):
        if tracks[i] == tracks[j]:
            continue  # parallel
        z, doca = closest_approach(tracks[i], tracks[j])
        a, b = moved(tracks[i], z, field), moved(tracks[j], z, field)
        position, _, chi2 = fit(a, b, z)
        if not (doca < max_doca and chi2 < max_chi2):
            continue
        alone = [momentum(a), momentum(b)]
        brem = [float(columns["long_tracks.brem_energy"][first + k]) for k in (i, j)]
        momenta = [p * (1.0 + energy / np.linalg.norm(p)) for p, energy in zip(alone, brem, strict=True)]
        p = momenta[0] + momenta[1]
        slopes = p[:2] / p[2]
        ips = []
        for pv in pvs:
            d = position[:2] + (float(pv["z"]) - position[2]) * slopes - [float(pv["x"]), float(pv["y"])]
            ips.append(float(np.sqrt(d @ d / (1.0 + slopes @ slopes))))
        values = {
            **dict(zip("xyz", position, strict=True)),
            **{"chi2": chi2, "doca": doca, "ip": min(ips, default=0.0)},
            **{"pv": int(np.argmin(ips)) if ips else NO_PV, "same_sign": (a["beam_qop"] > 0) == (b["beam_qop"] > 0)},
            **dict(zip(("px", "py", "pz"), p, strict=True)),
            "pt": float(np.hypot(p[0], p[1])),
            "mass": mass(momenta, (ELECTRON, ELECTRON)),
            "m_pipi": mass(alone, (PION, PION)),
        }
        found.append(((i, j), {name: float(value) for name, value in values.items()}))
    return found


@pytest.mark.parametrize("constants", [{}, {"max_doca": 0.05}, {"max_chi2": 2.0}])
def test_dielectrons_are_those_of_the_oracle(constants: dict[str, float]) -> None:
    columns = dielectrons_of(constants=constants)
    n = electron_events()[0]
    assert not columns["events.flags"].any()
    assert columns["dielectrons.count"][1] == columns["dielectrons.count"][3] == columns["dielectrons.count"][4] == 0
    for event in range(n):
        expected = expected_dielectrons(columns, event, **constants)
        first = event * MAX_DIELECTRONS_PER_EVENT
        own = slice(first, first + int(columns["dielectrons.count"][event]))
        found = columns["dielectrons.tracks"].reshape(-1, 2)[own]
        assert [tuple(pair) for pair in found.tolist()] == [tracks for tracks, _ in expected]
        for name in NAMES:
            wanted = np.array([values[name] for _, values in expected])
            exact = {"same_sign": 0.0, "pv": 0.0, "mass": 0.05, "m_pipi": 0.05, "z": 0.02, "chi2": 2e-3}
            relative = {"same_sign": 0.0, "pv": 0.0, "chi2": 5e-3, "z": 1e-3, "ip": 1e-3, "x": 1e-3, "y": 1e-3}
            np.testing.assert_allclose(
                columns[f"dielectrons.{name}"][own],
                wanted,
                atol=exact.get(name, 1e-3),
                rtol=relative.get(name, 2e-4),
                err_msg=name,
            )
    # The cuts leave out some pairs, and both kinds of charges are there.
    counts = columns["dielectrons.count"]
    assert 10 < counts[0] < (80 if constants else 200)
    assert {0, 1} == set(columns["dielectrons.same_sign"][: int(counts[0])].tolist())


@pytest.mark.parametrize("block_size", [32, 100])
def test_blocks_of_any_size_give_the_same_pairs(block_size: int) -> None:
    rng = np.random.default_rng(3)
    given = clusters_of(*(random_clusters(rng, n) for n in (0, 2, 150)))
    for backward in (False, True):
        launch = with_block_size(block_size, backward=backward)
        for run in (lambda launch: pairs_of(given, launch), dielectrons_of):
            reference, result = run(None), run(launch)
            names = [name for name in reference if name.startswith(("photon_pairs", "dielectrons", "events"))]
            assert len(names) > 4
            assert [name for name in names if reference[name].tobytes() != result[name].tobytes()] == []


def test_more_dielectrons_than_fit_flag_their_event_alone() -> None:
    rng = np.random.default_rng(4)
    tracks = [tracks_from(rng, PV, n) for n in (23, 24, 23)]
    events = ToyEvents(tracks, [[PV]] * 3)
    given = events.columns()
    given["long_tracks.is_electron"] = np.ones(3 * MAX_TRACKS_PER_EVENT, np.uint8)
    algorithms = (velo_fit, impact_parameter, pair_electrons.with_constants({"max_doca": 1e9, "max_chi2": 1e30}))
    columns = run_algorithms(algorithms, given, 3, events.sample.limits)
    assert columns["dielectrons.count"].tolist() == [253, 256, 253]
    assert columns["events.flags"].tolist() == [0, EventFlag.OVERFLOW, 0]
    last = MAX_DIELECTRONS_PER_EVENT + 255
    assert columns["dielectrons.tracks"].reshape(-1, 2)[last].tolist() == list(list(combinations(range(24), 2))[255])
