"""Vertices of two tracks, compared with an oracle in double precision and with truth; rejected pairs and overflow."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.lhcb.offline.simulation.generation.samples import Sample
from hltnode.processing.lhcb.primary_vertices.collections import MAX_PVS
from hltnode.processing.lhcb.secondary_vertices.collections import (
    MAX_PAIRS_PER_EVENT,
    MAX_V0_PAIRS_PER_EVENT,
    MAX_VERTICES_PER_EVENT,
    VertexKind,
    vertex_covariance,
    vertex_fit,
    vertex_flight,
    vertex_masses,
    vertex_momentum,
    vertex_of_tracks,
    vertex_position,
)
from hltnode.processing.lhcb.tracks.kalman.collections import long_beam_state
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT
from hltnode.processing.lhcb.velo.collections import NO_PV
from tests.processing.lhcb.fit_chain import KALMAN, VERTICES, run
from tests.processing.lhcb.given_columns import GivenTracks, real_tracks, simulated_tracks
from tests.processing.lhcb.secondary_vertices.vertices_oracle import (
    KAON,
    MASSES,
    PION,
    PROTON,
    Cuts,
    allowed_kinds,
    closest_approach,
    find_vertices,
    mass,
    uses,
)
from tests.processing.lhcb.tracks.kalman.toy_tracks import FIELD, Point, ToyEvents, ToyTrack, toy_track, tracks_from
from tests.processing.lhcb.tracks.kalman.velo_fit_oracle import Field

Columns = dict[str, NDArray[Any]]
PV = (0.02, -0.03, 5.0)
BITS = {
    "displaced": VertexKind.VERTEX_DISPLACED,
    "ks": VertexKind.VERTEX_KS,
    "lambda": VertexKind.VERTEX_LAMBDA,
    "dimuon": VertexKind.VERTEX_DIMUON,
}
STORED = {
    **vertex_position,
    **vertex_covariance,
    **vertex_fit,
    **vertex_momentum,
    **vertex_flight,
    **vertex_masses,
    **vertex_of_tracks,
}


def found_in(events: ToyEvents, block_size: int | None = None, *, backward: bool = False) -> Columns:
    given = events.columns()
    limits = events.sample.limits
    return run((*KALMAN, *VERTICES), given, len(events.tracks), limits, block_size, backward=backward)


@cache
def found_in_simulation(sample: Sample, n_events: int) -> tuple[GivenTracks, Columns]:
    given = simulated_tracks(sample, n_events)
    return given, run((*KALMAN, *VERTICES), given.columns, given.n_events, given.limits)


def tracks_of(columns: Columns, event: int) -> list[dict[str, float]]:
    """The long tracks of an event as input of the oracle."""
    names = [f"beam_{name}" for name in long_beam_state] + ["ip", "ip_chi2", "pv", "chi2", "is_muon"]
    first = event * MAX_TRACKS_PER_EVENT
    n = int(columns["long_tracks.count"][event])
    return [{name: float(columns[f"long_tracks.{name}"][first + i]) for name in names} for i in range(n)]


def pvs_of(columns: Columns, event: int) -> NDArray[np.void]:
    pvs: NDArray[np.void] = columns["pvs.vertex"][event * MAX_PVS :][: int(columns["pvs.count"][event])]
    return pvs


def vertices_of(columns: Columns, event: int) -> list[dict[str, Any]]:
    """The vertices of an event: their columns, and the numbers of their tracks."""
    first, n = event * MAX_VERTICES_PER_EVENT, int(columns["two_track_vertices.count"][event])
    numbers = columns["two_track_vertices.tracks"].reshape(-1, 2)
    return [
        {
            "tracks": tuple(numbers[first + i].tolist()),
            **{name: columns[f"two_track_vertices.{name}"][first + i].item() for name in (*STORED, "kind", "pv")},
        }
        for i in range(n)
    ]


def assert_equals_oracle(columns: Columns, event: int) -> int:
    """Compare all vertices of an event; returns their number."""
    tracks, pvs = tracks_of(columns, event), pvs_of(columns, event)
    field = Field(*map(float, columns["velo_field"].view(np.float32)))
    expected = find_vertices(tracks, pvs, field)
    found = vertices_of(columns, event)
    assert [vertex["tracks"] for vertex in found] == [(i, j) for i, j, _, _ in expected]
    for vertex, (i, j, kinds, values) in zip(found, expected, strict=True):
        same_sign = (tracks[i]["beam_qop"] > 0) == (tracks[j]["beam_qop"] > 0)
        assert vertex["kind"] == sum(BITS[kind] for kind in kinds) + VertexKind.VERTEX_SAME_SIGN * same_sign
        assert_values_equal(vertex, values)
    return len(found)


def assert_values_equal(vertex: dict[str, Any], values: dict[str, float]) -> None:
    """Check that rounding stays below a hundredth of the errors, and masses agree within 0.02 MeV."""
    sigma = {axis: np.sqrt(values[f"c{i}{i}"]) for i, axis in enumerate("xyz")}
    for axis in "xyz":
        assert vertex[axis] == pytest.approx(values[axis], abs=0.01 * sigma[axis])
    for i, j in ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)):
        scale = sigma["xyz"[i]] * sigma["xyz"[j]]
        assert vertex[f"c{i}{j}"] == pytest.approx(values[f"c{i}{j}"], abs=2e-3 * scale)
    for name in MASSES:
        assert vertex[name] == pytest.approx(values[name], abs=0.02, rel=1e-5)
    for name in ("px", "py", "pz", "pt", "min_pt", "sum_pt", "min_p", "min_ip", "min_ip_chi2", "fd"):
        assert vertex[name] == pytest.approx(values[name], rel=1e-3, abs=1e-2)
    assert vertex["chi2"] == pytest.approx(values["chi2"], rel=1e-2, abs=1e-2)
    assert vertex["doca"] == pytest.approx(values["doca"], abs=1e-4)
    assert vertex["pv"] == values["pv"]
    assert vertex["fd_chi2"] == pytest.approx(values["fd_chi2"], rel=1e-2, abs=1e-2)
    assert vertex["eta"] == pytest.approx(values["eta"], abs=2e-3)
    assert vertex["dira"] == pytest.approx(values["dira"], abs=1e-4)
    assert vertex["m_corr"] == pytest.approx(values["m_corr"], rel=1e-2, abs=1.0)


def decay(
    rng: np.random.Generator,
    at: Point,
    mother_mass: float,
    masses: tuple[float, float],
    p: float = 3e4,
    direction: tuple[float, float] | None = None,
) -> list[ToyTrack]:
    """The two tracks of a decay at a point; the particle comes from the PV or has given slopes."""
    flight = np.subtract(at, PV) if direction is None else np.array([*direction, 1.0])
    axis = flight / np.linalg.norm(flight)
    first_energy = (mother_mass**2 + masses[0] ** 2 - masses[1] ** 2) / (2 * mother_mass)
    p_rest = np.sqrt(first_energy**2 - masses[0] ** 2)
    gamma, beta_gamma = np.hypot(1.0, p / mother_mass), p / mother_mass
    while True:
        unit = rng.normal(size=3)
        unit /= np.linalg.norm(unit)
        tracks: list[ToyTrack | None] = []
        for sign, m in ((1.0, masses[0]), (-1.0, masses[1])):
            rest = sign * p_rest * unit
            along = float(rest @ axis)
            moving = rest + axis * ((gamma - 1.0) * along + beta_gamma * np.hypot(p_rest, m))
            tracks.append(toy_track(rng, at, moving[:2] / moving[2], sign / float(np.linalg.norm(moving))))
        if all(track is not None for track in tracks):
            return [track for track in tracks if track is not None]


@cache
def toys() -> ToyEvents:
    """B decays, KS, Lambda, prompt tracks; events without tracks and without primary vertex."""
    rng = np.random.default_rng(2)
    b = decay(rng, (0.4, 0.3, 20.0), 5366.0, (KAON, KAON), 8e4)
    ks = decay(rng, (2.0, 1.5, 90.0), 497.6, (PION, PION), 1.5e4)
    other_ks = decay(rng, (-1.0, 2.0, 75.0), 497.6, (PION, PION), 1.2e4)
    of_lambda = decay(np.random.default_rng(1), (1.0, -3.0, 120.0), 1115.68, (PROTON, PION), 2e4)
    prompt = tracks_from(rng, PV, 25)
    return ToyEvents(
        [[*prompt, *b], [*b, *ks, *prompt, *other_ks, *of_lambda], [], [*ks, *b], prompt],
        [[PV, (0.0, 0.0, 70.0)], [(0.0, 0.1, -40.0), PV], [PV], [], [PV]],
        muons=True,
    )


def test_vertices_equal_the_oracle() -> None:
    columns = found_in(toys())
    numbers = [assert_equals_oracle(columns, event) for event in range(len(toys().tracks))]
    assert numbers[2] == 0
    assert numbers[0] > 100
    kinds = np.bitwise_or.reduce([vertex["kind"] for vertex in vertices_of(columns, 1)])
    assert kinds & 15 == 15
    assert not columns["events.flags"][: len(toys().tracks)].any()


@pytest.mark.physics
def test_vertices_of_the_real_events_equal_the_oracle(shared: Path) -> None:
    given = real_tracks(shared)
    columns = run((*KALMAN, *VERTICES), given.columns, given.n_events, given.limits)
    assert sum(assert_equals_oracle(columns, event) for event in range(given.n_events)) > 80


@pytest.mark.physics
def test_vertices_of_simulated_events_equal_the_oracle() -> None:
    given, columns = found_in_simulation(Sample.BSPHIPHI, 24)
    assert sum(assert_equals_oracle(columns, event) for event in range(given.n_events)) > 150


@pytest.mark.parametrize("block_size", [1, 32, 64, 100, 256])
@pytest.mark.parametrize("backward", [False, True])
def test_every_block_size_gives_the_same_bits(block_size: int, backward: bool) -> None:
    reference, result = found_in(toys()), found_in(toys(), block_size, backward=backward)
    assert [name for name in reference if reference[name].tobytes() != result[name].tobytes()] == []


def test_pairs_are_cut_by_use_distance_and_primary_vertex() -> None:
    columns = found_in(toys())
    cuts = Cuts()
    for event in range(len(toys().tracks)):
        tracks = tracks_of(columns, event)
        useful = [i for i, track in enumerate(tracks) if uses(track, cuts)]
        first = event * MAX_TRACKS_PER_EVENT
        n = int(columns["vertex_tracks.count"][event])
        assert columns["vertex_tracks.track"][first : first + n].tolist() == useful
        expected = [
            pair for pair in combinations(useful, 2) if allowed_kinds(tracks[pair[0]], tracks[pair[1]], cuts)[0]
        ]
        first = event * MAX_PAIRS_PER_EVENT
        n = int(columns["vertex_pairs.count"][event])
        found = columns["vertex_pairs.tracks"].reshape(-1, 2)[first : first + n]
        assert [tuple(pair) for pair in found.tolist()] == expected


def test_pulls_of_vertices_are_one() -> None:
    rng = np.random.default_rng(8)
    tracks, truth = [], []
    for _ in range(1200):
        at = (float(rng.normal(0.0, 0.5)), float(rng.normal(0.0, 0.5)), float(rng.uniform(10.0, 40.0)))
        tracks.append(decay(rng, at, 5366.0, (KAON, KAON), float(rng.uniform(5e4, 1.5e5))))
        truth.append(at)
    columns = found_in(ToyEvents(tracks, [[PV]] * len(tracks), muons=True))
    rows = []
    for event, at in enumerate(truth):
        for vertex in vertices_of(columns, event):
            pulls = [(vertex[axis] - at[i]) / np.sqrt(vertex[f"c{i}{i}"]) for i, axis in enumerate("xyz")]
            rows.append((*pulls, vertex["chi2"], vertex["m_kk"]))
    found = np.array(rows)
    assert len(found) > 1100
    assert np.std(found[:, :3], axis=0) == pytest.approx([1.0] * 3, abs=0.08)
    assert np.mean(found[:, 3]) == pytest.approx(1.0, abs=0.15)
    assert np.median(found[:, 4]) == pytest.approx(5366.0, abs=2.0)


@pytest.mark.physics
def test_simulated_decays_have_their_masses_and_places() -> None:
    given, columns = found_in_simulation(Sample.BSPHIPHI, 24)
    masses: dict[int, list[float]] = {310: [], 333: []}
    pulls = []
    for event, particles in enumerate(given.particles):
        for vertex in vertices_of(columns, event):
            a, b = (particles[i] for i in vertex["tracks"])
            if a.mother_pid in masses and a.mother_key == b.mother_key:
                masses[a.mother_pid].append(vertex["m_pipi" if a.mother_pid == 310 else "m_kk"])
            if a.from_signal and b.from_signal:
                at = (a.vertex_x, a.vertex_y, a.vertex_z)
                pulls.append([(vertex[x] - at[i]) / np.sqrt(vertex[f"c{i}{i}"]) for i, x in enumerate("xyz")])
    assert len(masses[310]) >= 8
    assert np.median(masses[310]) == pytest.approx(497.6, abs=3.0)
    assert len(masses[333]) >= 12
    assert np.median(masses[333]) == pytest.approx(1019.5, abs=3.0)
    widths = np.percentile(np.abs(pulls), 68.27, axis=0)
    # 1.07, 1.21 and 1.14 on 100 events, hard scatters included. With fifty vertices a width has an error of 0.15.
    assert len(pulls) > 40
    assert np.all((widths > 0.8) & (widths < 1.6))


def test_a_dimuon_needs_no_primary_vertex() -> None:
    vertices = vertices_of(found_in(toys()), 3)
    assert vertices
    for vertex in vertices:
        assert vertex["kind"] & ~VertexKind.VERTEX_SAME_SIGN == VertexKind.VERTEX_DIMUON
        assert vertex["pv"] == NO_PV
        assert [vertex[name] for name in vertex_flight] == [0.0] * len(vertex_flight)


def test_a_pair_comes_from_the_nearest_of_few_or_many_primary_vertices() -> None:
    """Vectors hold sixteen vertices. Places without a vertex are at the origin, from where this pair comes."""
    at = (2.0, 1.5, 90.0)
    ks = decay(np.random.default_rng(3), at, 497.6, (PION, PION), 1.5e4, direction=(at[0] / at[2], at[1] / at[2]))
    two = [(0.3, 0.3, -60.0), (-0.4, 0.2, 40.0)]
    many = [(0.5, -0.4, -80.0 + 8.0 * i) for i in range(17)]
    columns = found_in(ToyEvents([ks, ks], [two, [*many, (0.0, 0.0, 0.0)]]))
    assert [assert_equals_oracle(columns, event) for event in range(2)] == [1, 1]
    assert [vertices_of(columns, event)[0]["pv"] for event in range(2)] == [1, len(many)]


def parallel(track: ToyTrack) -> ToyTrack:
    return ToyTrack(track.hits + np.array([0.05, 0.0, 0.0]), track.qop, track.slopes)


@pytest.mark.parametrize("qop", [np.nan, np.inf, 0.0, -0.0, 1e30])
def test_tracks_without_momentum_make_no_vertex(qop: float) -> None:
    ks = decay(np.random.default_rng(3), (2.0, 1.5, 90.0), 497.6, (PION, PION), 1.5e4)
    assert vertices_of(found_in(ToyEvents([ks], [[PV]])), 0)
    broken = [ToyTrack(ks[0].hits, qop, ks[0].slopes), ks[1]]
    assert vertices_of(found_in(ToyEvents([broken], [[PV]], muons=True)), 0) == []


def test_parallel_tracks_make_no_vertex() -> None:
    (one,) = tracks_from(np.random.default_rng(4), (1.0, 2.0, 30.0), 1)
    events = ToyEvents([[one, parallel(one)], [one, one]], [[PV], [PV]], muons=True, field=Field())
    columns = found_in(events)
    assert columns["two_track_vertices.count"][:2].tolist() == [0, 0]


def test_an_event_with_too_many_vertices_is_flagged_and_keeps_the_first_ones() -> None:
    rng = np.random.default_rng(6)
    crowd = tracks_from(rng, (1.0, 2.0, 40.0), 90)
    ks = decay(rng, (2.0, 1.5, 90.0), 497.6, (PION, PION), 1.5e4)
    columns = found_in(ToyEvents([crowd, ks], [[PV], [PV]]))
    assert columns["vertex_pairs.count"][0] == MAX_PAIRS_PER_EVENT
    assert columns["two_track_vertices.count"][0] == MAX_VERTICES_PER_EVENT
    assert columns["events.flags"][:2].tolist() == [EventFlag.OVERFLOW, 0]
    assert len(vertices_of(columns, 1)) == 1
    expected = find_vertices(tracks_of(columns, 0), pvs_of(columns, 0), FIELD)[:MAX_VERTICES_PER_EVENT]
    assert [vertex["tracks"] for vertex in vertices_of(columns, 0)] == [(i, j) for i, j, _, _ in expected]


def test_eta_is_that_of_the_flight_from_the_primary_vertex() -> None:
    columns = found_in(toys())
    vertices = vertices_of(columns, 0) + vertices_of(columns, 4)
    pvs = [pvs_of(columns, 0)] * len(vertices_of(columns, 0)) + [pvs_of(columns, 4)] * len(vertices_of(columns, 4))
    for vertex, of_event in zip(vertices, pvs, strict=True):
        d = np.array([np.float32(vertex[axis]) - of_event[vertex["pv"]][axis] for axis in "xyz"], np.float64)
        assert vertex["eta"] == pytest.approx(np.arcsinh(d[2] / np.hypot(d[0], d[1])), abs=3e-6)


def v0_pairs_of(columns: Columns, event: int) -> list[tuple[int, int, float, float]]:
    first, n = event * MAX_V0_PAIRS_PER_EVENT, int(columns["v0_pairs.count"][event])
    numbers = columns["v0_pairs.vertices"].reshape(-1, 2)[first : first + n].tolist()
    values = [columns[f"v0_pairs.{name}"][first : first + n].tolist() for name in ("mass", "doca")]
    return [(a, b, m, doca) for (a, b), m, doca in zip(numbers, *values, strict=True)]


def expected_v0_pairs(vertices: list[dict[str, Any]]) -> list[tuple[int, int, float, float]]:
    lines = [
        {
            **{f"beam_{axis}": vertex[axis] for axis in "xyz"},
            "beam_tx": vertex["px"] / vertex["pz"],
            "beam_ty": vertex["py"] / vertex["pz"],
        }
        for vertex in vertices
    ]
    momenta = [np.array([vertex[name] for name in ("px", "py", "pz")]) for vertex in vertices]
    v0 = VertexKind.VERTEX_KS | VertexKind.VERTEX_LAMBDA
    result = []
    for a, b in combinations([i for i, vertex in enumerate(vertices) if vertex["kind"] & v0], 2):
        if set(vertices[a]["tracks"]) & set(vertices[b]["tracks"]):
            continue
        _, doca = closest_approach(lines[a], lines[b])
        masses = [497.611 if vertices[i]["kind"] & VertexKind.VERTEX_KS else 1115.683 for i in (a, b)]
        if doca < 10.0:
            result.append((a, b, mass([momenta[a], momenta[b]], masses), doca))
    return result


def test_two_v0_without_a_common_track_make_a_composite_candidate() -> None:
    columns = found_in(toys())
    n_pairs = []
    for event in range(len(toys().tracks)):
        expected = expected_v0_pairs(vertices_of(columns, event))
        found = v0_pairs_of(columns, event)
        assert [pair[:2] for pair in found] == [pair[:2] for pair in expected]
        for pair, other in zip(found, expected, strict=True):
            assert pair[2:] == pytest.approx(other[2:], rel=1e-4, abs=1e-3)
        n_pairs.append(len(found))
    assert n_pairs[1] >= 3


def test_an_event_with_too_many_v0_is_flagged() -> None:
    rng = np.random.default_rng(9)
    places = [(float(x), float(y), 90.0) for x in (-2.0, -1.0, 0.5, 1.0, 2.0) for y in (-2.0, -1.0, 1.0, 2.0)]
    many = [track for at in places for track in decay(rng, at, 497.6, (PION, PION), 1.5e4)]
    columns = found_in(ToyEvents([many, many[:4]], [[PV], [PV]]))
    assert columns["v0_pairs.count"][0] == MAX_V0_PAIRS_PER_EVENT
    assert columns["events.flags"][0] & EventFlag.OVERFLOW
    assert columns["events.flags"][1] == 0
    expected = expected_v0_pairs(vertices_of(columns, 0))[:MAX_V0_PAIRS_PER_EVENT]
    assert [pair[:2] for pair in v0_pairs_of(columns, 0)] == [pair[:2] for pair in expected]
