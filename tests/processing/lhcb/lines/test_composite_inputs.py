"""Mass, vertex and flight of composites against least squares and four-vectors in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.lines.inputs.calorimeter_fields import dielectrons, photons
from hltnode.processing.lhcb.lines.inputs.combined import Combined
from hltnode.processing.lhcb.lines.inputs.composite_inputs import composite
from hltnode.processing.lhcb.lines.inputs.downstream_fields import downstream_tracks, downstream_v0s
from hltnode.processing.lhcb.lines.inputs.track_fields import long_tracks, velo_tracks
from hltnode.processing.lhcb.lines.inputs.vertex_fields import dimuons, two_track_vertices, v0_pairs
from hltnode.processing.lhcb.primary_vertices.collections import MAX_PVS, PRIMARY_VERTEX, pv_count, vertices
from hltnode.processing.lhcb.secondary_vertices.collections import (
    MAX_VERTICES_PER_EVENT,
    vertex_count,
    vertex_covariance,
    vertex_momentum,
    vertex_position,
    vertex_pv,
    vertex_tracks_of,
)
from hltnode.processing.lhcb.tracks.kalman.collections import long_beam_state, long_pv
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT, long_count
from hltnode.processing.selection.errors import LineError
from hltnode.processing.selection.expressions.units import MeV, mm
from hltnode.processing.selection.make_composite import make_composite
from tests.processing.selection.composite_evaluators import EVALUATORS

Floats = NDArray[np.float64]
N_EVENTS = 40
M_FIRST, M_SECOND = 1019.461, 139.5704
PV = np.array([0.03, -0.02, 11.0])
COVARIANCE = ("c00", "c10", "c11", "c20", "c21", "c22")


def _everything(*_: Any) -> Any:
    return True


def _made_of(name: str, *, decays_at_first: bool) -> Any:
    return composite(
        name,
        two_track_vertices,
        long_tracks,
        masses=(M_FIRST * MeV, M_SECOND * MeV),
        decays_at_first=decays_at_first,
        where=_everything,
        bound=4,
    )


class _Decay:
    """A vertex with errors, its momentum, and a track that passes near it, in double precision."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.at = PV + np.array([rng.normal(0, 1), rng.normal(0, 1), rng.uniform(5, 60)])
        direction = (self.at - PV) / (self.at - PV)[2] + np.append(rng.normal(0, 0.003, 2), 0.0)
        self.p_first = direction * rng.uniform(8e3, 9e4)
        along = np.array([*direction[:2], 1.0])
        root = np.diag(rng.uniform(0.01, 0.03, 3)) + 1e-3 * rng.normal(size=(3, 3))
        self.covariance = root @ root.T + rng.uniform(0.01, 0.6) * np.outer(along, along)
        self.slopes = direction[:2] + rng.normal(0, 0.02, 2)
        self.z = rng.uniform(-5, 5)
        self.xy = self.at[:2] + self.slopes * (self.z - self.at[2]) + rng.normal(0, 0.03, 2)
        self.q_over_p = rng.choice([-1.0, 1.0]) / rng.uniform(3e3, 8e4)
        self.errors = {
            "c00": rng.uniform(1e-4, 9e-4), "c11": rng.uniform(1e-4, 9e-4), "c20": -rng.uniform(0, 1e-6),
            "c31": -rng.uniform(0, 1e-6), "c22": rng.uniform(1e-8, 1e-7), "c33": rng.uniform(1e-8, 1e-7),
        }  # fmt: skip

    def rounded(self) -> _Decay:
        """The numbers that single precision holds."""
        for name, value in vars(self).items():
            exact = {k: np.float32(v).item() for k, v in value.items()} if isinstance(value, dict) else None
            setattr(self, name, np.float32(value).astype(np.float64) if exact is None else exact)
        return self

    @property
    def p_second(self) -> Floats:
        pz = 1 / (abs(self.q_over_p) * np.sqrt(1 + (self.slopes**2).sum()))
        return np.array([*(self.slopes * pz), pz])

    def variances(self, z: float) -> Floats:
        e, dz = self.errors, z - self.z
        return np.array(
            [e["c00"] + 2 * dz * e["c20"] + dz**2 * e["c22"], e["c11"] + 2 * dz * e["c31"] + dz**2 * e["c33"]]
        )


def _columns(decays: list[_Decay]) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {}

    def put(column: Column, per_event: int, values: list[float]) -> None:
        content = found[column.name] = np.zeros(len(decays) * per_event, np.float64)
        content[::per_event] = values

    for i, name in enumerate("xyz"):
        put(vertex_position[name], MAX_VERTICES_PER_EVENT, [d.at[i] for d in decays])
        put(vertex_momentum[f"p{name}"], MAX_VERTICES_PER_EVENT, [d.p_first[i] for d in decays])
    for name in COVARIANCE:
        put(vertex_covariance[name], MAX_VERTICES_PER_EVENT, [d.covariance[int(name[1]), int(name[2])] for d in decays])
    state = long_beam_state
    for name, values in {
        "x": [d.xy[0] for d in decays], "y": [d.xy[1] for d in decays], "z": [d.z for d in decays],
        "tx": [d.slopes[0] for d in decays], "ty": [d.slopes[1] for d in decays],
        "qop": [d.q_over_p for d in decays],
        **{name: [d.errors[name] for d in decays] for name in ("c00", "c11", "c20", "c31", "c22", "c33")},
    }.items():  # fmt: skip
        put(state[name], MAX_TRACKS_PER_EVENT, values)
    found[vertex_count.name] = found[long_count.name] = found[pv_count.name] = np.ones(len(decays), int)
    # The tracks of the vertex are others than the one that is combined.
    found[vertex_tracks_of.name] = np.full(2 * len(decays) * MAX_VERTICES_PER_EVENT, 7)
    found[vertex_pv.name] = np.zeros(len(decays) * MAX_VERTICES_PER_EVENT, int)
    found[long_pv.name] = np.zeros(len(decays) * MAX_TRACKS_PER_EVENT, int)
    pvs = found[vertices.name] = np.zeros(len(decays) * MAX_PVS, PRIMARY_VERTEX.dtype)
    for name, value in zip("xyz", PV, strict=True):
        pvs[name] = value
    return found


def _measured(decays_at_first: bool, decays: list[_Decay], evaluator: str) -> dict[str, Floats]:
    made = _made_of("measured", decays_at_first=decays_at_first).combination
    columns = _columns(decays)
    # Track 7 must exist for the vertex; it is far away and makes no difference to the first candidate.
    columns[long_count.name] = np.full(len(decays), 8)
    result = EVALUATORS[evaluator](make_composite(made), columns, BatchLimits(events=len(decays), lines=1))
    return {name: result[column.name][:: made.bound].astype(np.float64) for name, column in made.columns.items()}


def _least_squares(decay: _Decay, *, lines: bool) -> tuple[Floats, float, Floats]:
    """The vertex, what the second part adds to the chi2, and the covariance: all measurements at once, with the errors
    of the track at the z of the vertex, or at the closest approach of two lines."""
    first = decay.p_first[:2] / decay.p_first[2]
    z = decay.at[2] if not lines else _approach(decay)[0]

    def rows(slopes: Floats) -> Floats:
        return np.array([[1.0, 0.0, -slopes[0]], [0.0, 1.0, -slopes[1]]])

    track = (rows(decay.slopes), decay.xy - decay.slopes * decay.z, np.diag(decay.variances(z)))
    if lines:
        h = rows(first)
        across = h @ decay.covariance @ h.T
        first_measured = (h, h @ decay.at, np.diag(np.diag(across)))
    else:
        first_measured = (np.eye(3), decay.at, decay.covariance)
    normal: Floats = np.zeros((3, 3))
    right: Floats = np.zeros(3)
    for h, value, error in (first_measured, track):
        normal += h.T @ np.linalg.inv(error) @ h
        right += h.T @ np.linalg.inv(error) @ value
    at = np.asarray(np.linalg.solve(normal, right), np.float64)
    chi2 = sum(
        float((value - h @ at) @ np.linalg.inv(error) @ (value - h @ at)) for h, value, error in (first_measured, track)
    )
    return at, float(chi2), np.asarray(np.linalg.inv(normal), np.float64)


def _approach(decay: _Decay) -> tuple[float, float]:
    """z of the middle of the shortest connection of two lines, and its length."""
    u = np.array([*(decay.p_first[:2] / decay.p_first[2]), 1.0])
    v = np.array([*decay.slopes, 1.0])
    a, b = decay.at, np.array([*decay.xy, decay.z])
    s, t = np.linalg.lstsq(np.stack([u, -v], axis=1), b - a, rcond=None)[0]
    one, other = a + s * u, b + t * v
    return (one[2] + other[2]) / 2, float(np.linalg.norm(one - other))


@pytest.mark.parametrize("decays_at_first", [True, False])
def test_vertex_mass_and_flight_agree_with_double_precision(decays_at_first: bool) -> None:
    rng = np.random.default_rng(4)
    decays = [_Decay(rng).rounded() for _ in range(N_EVENTS)]
    measured = _measured(decays_at_first, decays, "numpy")
    for i, decay in enumerate(decays):
        at, chi2, covariance = _least_squares(decay, lines=not decays_at_first)
        a, b = decay.p_first, decay.p_second
        p = a + b
        energy = np.sqrt(a @ a + M_FIRST**2) + np.sqrt(b @ b + M_SECOND**2)
        flight = at - np.float32(PV)
        line = np.array([*decay.slopes, 1.0])
        to_vertex = decay.at - [*decay.xy, decay.z]
        expected = {
            "mass": np.sqrt(energy**2 - p @ p),
            "px": p[0], "py": p[1], "pz": p[2], "pt": np.hypot(*p[:2]),
            "x": at[0], "y": at[1], "z": at[2], "chi2": chi2,
            "doca": np.linalg.norm(np.cross(to_vertex, line)) / np.linalg.norm(line)
            if decays_at_first
            else _approach(decay)[1],
            "fd": np.linalg.norm(flight),
            "ip": np.linalg.norm(np.cross(flight, p)) / np.linalg.norm(p),
            "dira": flight @ p / (np.linalg.norm(flight) * np.linalg.norm(p)),
        }  # fmt: skip
        for name, value in expected.items():
            tolerance = {"x": 2e-5, "y": 2e-5, "z": 2e-3, "doca": 2e-5, "fd": 2e-3, "ip": 2e-4, "mass": 0.02}
            assert measured[name][i] == pytest.approx(
                value, rel=2e-3 if name == "chi2" else 1e-5, abs=tolerance.get(name, 2e-3)
            ), name
        for name in COVARIANCE:
            scale = np.sqrt(covariance[int(name[1]), int(name[1])] * covariance[int(name[2]), int(name[2])])
            value = covariance[int(name[1]), int(name[2])]
            assert measured[f"{name}_"][i] == pytest.approx(value, abs=5e-3 * scale), name


@pytest.mark.parametrize("evaluator", ["compiler", "blocks of 32", "ptx"])
def test_every_back_end_computes_the_bits_of_numpy(evaluator: str) -> None:
    rng = np.random.default_rng(5)
    decays = [_Decay(rng) for _ in range(6)]
    for decays_at_first in (True, False):
        expected = _measured(decays_at_first, decays, "numpy")
        found = _measured(decays_at_first, decays, evaluator)
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_the_flight_of_a_candidate_without_primary_vertex_is_not_a_number() -> None:
    made = _made_of("lonely", decays_at_first=True).combination
    columns = _columns([_Decay(np.random.default_rng(6))])
    columns[long_count.name] = np.array([8])
    columns[vertex_pv.name][:] = 255
    result = EVALUATORS["numpy"](make_composite(made), columns, BatchLimits(events=1, lines=1))
    assert [name for name, column in made.columns.items() if np.isnan(result[column.name][0])] == ["fd", "ip", "dira"]


def test_a_candidate_shares_no_track_with_its_other_part() -> None:
    made = _made_of("apart", decays_at_first=True).combination
    columns = _columns([_Decay(np.random.default_rng(7))])
    columns[long_count.name] = np.array([4])
    columns[vertex_tracks_of.name][:2] = (1, 3)
    result = EVALUATORS["numpy"](make_composite(made), columns, BatchLimits(events=1, lines=1))
    n = int(result[made.count.name][0])
    assert result[made.parts[1].name][:n].tolist() == [0, 2]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (velo_tracks, "VELO tracks have no position and momentum"),
        (downstream_tracks, "downstream tracks have no position and momentum"),
        (photons, "photons have no position and momentum"),
        (v0_pairs, "V0 pairs have no position and momentum"),
    ],
)
def test_parts_without_momentum_are_refused_by_name(second: Any, message: str) -> None:
    with pytest.raises(LineError, match=rf"composite bad: .*{message}"):
        composite("bad", long_tracks, second, masses=(1 * MeV, 1 * MeV), where=_everything)


def test_a_track_has_no_vertex_at_which_a_composite_decays() -> None:
    with pytest.raises(LineError, match="composite bad: decays_at_first: long tracks have no vertex"):
        composite("bad", long_tracks, long_tracks, masses=(1 * MeV, 1 * MeV), where=_everything, decays_at_first=True)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"mass": (lambda a, b: a.pt, "d")}, "each composite has mass already"),
        ({"p": (lambda a, b: a.pt, "d"), "pv": (lambda a, b: a.pt, "d")}, "each composite has p, pv already"),
        ([5], "functions and descriptions by name are expected"),
    ],
)
def test_more_numbers_have_names_of_their_own(numbers: Any, message: str) -> None:
    with pytest.raises(LineError, match=f"composite bad: numbers: {message}"):
        composite("bad", dimuons, long_tracks, masses=(1 * MeV, 1 * MeV), where=_everything, numbers=numbers)


@pytest.mark.parametrize("masses", [(1 * MeV,), 5 * MeV, (3.0, 1 * MeV)])
def test_masses_need_a_number_in_mev_for_each_part(masses: Any) -> None:
    with pytest.raises(LineError, match=r"composite bad: .*mass"):
        composite("bad", long_tracks, long_tracks, masses=masses, where=_everything)


def test_the_condition_and_all_numbers_use_the_same_vertex_fit() -> None:
    made: list[Any] = []

    def mass(candidate: Any) -> Any:
        made.append(candidate)
        return M_SECOND * MeV

    def small_chi2(a: Any, b: Any, both: Combined) -> Any:
        given.append(both)
        return both.chi2 < 9.0

    given: list[Combined] = []
    composite(
        "once",
        two_track_vertices,
        long_tracks,
        masses=(M_FIRST * MeV, mass),
        where=small_chi2,
        numbers={"ratio": (lambda a, b: a.m_pipi / M_FIRST / MeV, "mass ratio")},
    )
    assert len(made) == len(given) == 1


def test_a_vertex_without_errors_keeps_its_place() -> None:
    made = composite(
        "without_errors",
        dielectrons,
        long_tracks,
        masses=(lambda v: v.mass, M_SECOND * MeV),
        decays_at_first=True,
        where=lambda v, t, both: both.doca < 1 * mm,
    )
    x = made.combination.numbers["x"]
    assert x is made.candidate(0).first._input.candidate(0).x.node


def test_a_second_part_without_errors_leaves_the_vertex_and_adds_no_chi2() -> None:
    made = composite(
        "line_without_errors",
        two_track_vertices,
        downstream_v0s,
        masses=(lambda v: v.m_pipi, M_SECOND * MeV),
        decays_at_first=True,
        where=lambda v, t, both: both.doca < 1 * mm,
    )
    numbers, first = made.combination.numbers, made.candidate(0).first._input.candidate(0)
    for name in ("x", "y", "z", "_c00", "_c22"):
        assert numbers[name if len(name) == 1 else f"{name[1:]}_"] is getattr(first, name).node
    assert float.fromhex(numbers["chi2"].payload) == 0.0


def test_a_composite_is_a_part_of_another_one() -> None:
    pair = composite(
        "pair_and_track", dimuons, long_tracks, masses=(1 * MeV, 1 * MeV), where=_by_doca, decays_at_first=True
    )
    four = composite(
        "four_tracks", pair, long_tracks, masses=(lambda c: c.mass, 1 * MeV), where=_by_doca, decays_at_first=True
    )
    assert {pair.combination.count, pair.combination.columns["c00_"]} <= set(four.combination.reads)


def _by_doca(_first: Any, _second: Any, both: Combined) -> Any:
    return both.doca < 1 * mm
