"""Vertices of two downstream tracks against their oracle, on toy decays, simulated and real events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.magnet import DOWN, UP, Magnet
from hltnode.processing.lhcb.parametrisation.flights import fly
from hltnode.processing.lhcb.primary_vertices.collections import MAX_PVS, PRIMARY_VERTEX
from hltnode.processing.lhcb.secondary_vertices.downstream.collections import MAX_V0S_PER_EVENT, DownstreamV0Kind
from hltnode.processing.lhcb.secondary_vertices.downstream.field import v0_field_record
from hltnode.processing.lhcb.secondary_vertices.downstream.find_v0s import find_v0s
from hltnode.processing.lhcb.tracks.downstream.collections import MAX_TRACKS_PER_EVENT
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import on_cpu
from tests.processing.lhcb.full_events import full_events
from tests.processing.lhcb.secondary_vertices.downstream.toy_v0s import (
    FIELD,
    NO_PVS,
    ORIGIN,
    Columns,
    Decay,
    blocks_of,
    columns_of,
    run_v0s,
)
from tests.processing.lhcb.secondary_vertices.downstream.v0_oracle import (
    ELECTRON,
    PION,
    PROTON,
    TRACK_COLUMNS,
    Track,
    kind_of,
    vertices_of,
)
from tests.processing.lhcb.whole_chain import reference_of

CUTS = {constant.name: float(constant.value) for constant in find_v0s.constants}
NUMBERS = {
    **{"x": 0.02, "y": 0.02, "z": 0.5, "doca": 0.02, "chi2": 0.02, "ip": 0.02},
    **{"px": 1.0, "py": 1.0, "pz": 5.0, "pt": 1.0, "min_pt": 1.0, "m_pipi": 0.1, "m_ppi": 0.1, "m_ee": 0.1},
}
"""Tolerances: mm, MeV."""
LAMBDA: dict[str, Any] = {"mass": 1115.683, "masses": (PROTON, PION)}
PHOTON: dict[str, Any] = {"mass": 2.0, "masses": (ELECTRON, ELECTRON), "phi": 1.5}


def compare(tracks: Mapping[str, NDArray[Any]], pvs: Any, found: Mapping[str, NDArray[Any]]) -> int:
    """Compares the vertices of an event with the oracle. Returns their number."""
    n = len(tracks["x"])
    pairs = np.array([(a, b) for a, b in combinations(range(n), 2) if (tracks["qop"][a] > 0) != (tracks["qop"][b] > 0)])
    if len(pairs) == 0 or len(pvs) == 0:
        assert len(found["x"]) == 0
        return 0
    of = Track.of(tracks, FIELD)
    with np.errstate(all="ignore"):
        expected = vertices_of(of[pairs[:, 0]], of[pairs[:, 1]], np.asarray(pvs, np.float64))
    kinds = kind_of(expected, CUTS)
    numbers = {tuple(pair): i for i, pair in enumerate(pairs.tolist())}
    rows = [numbers[tuple(pair)] for pair in found["tracks"].tolist()]
    assert rows == sorted(rows)
    differ = set(rows) ^ set(np.flatnonzero(kinds).tolist())
    # Single precision decides candidates at the edge of a cut.
    assert len(differ) <= 0.02 * len(rows), differ
    for name, tolerance in NUMBERS.items():
        np.testing.assert_allclose(found[name], expected[name][rows], rtol=2e-3, atol=tolerance, err_msg=name)
    same = np.isin(rows, list(differ), invert=True)
    np.testing.assert_array_equal(found["kind"][same], kinds[rows][same])
    np.testing.assert_array_equal(found["pv"], expected["pv"][rows])
    return len(rows)


@cache
def random_decays() -> tuple[Columns, ...]:
    """Events of ten decays each; all pairs of their tracks are tried."""
    rng = np.random.default_rng(75)
    kinds: Sequence[dict[str, Any]] = ({}, LAMBDA, PHOTON)
    events = []
    for _ in range(12):
        decays = [
            Decay(
                z=rng.uniform(350, 2200),
                tx=rng.uniform(-0.12, 0.12),
                ty=rng.uniform(-0.1, 0.1),
                p=rng.uniform(5e3, 6e4),
                angle=rng.uniform(0.3, 2.8),
                apart=rng.normal(0, 1),
                y_distance=rng.normal(0, 3),
                **{"phi": rng.uniform(-3, 3), **kinds[i % 3]},
            )
            for i in range(10)
        ]
        events.append(columns_of(decays))
    return tuple(events)


def test_vertices_of_toy_decays_are_those_of_the_oracle() -> None:
    events = random_decays()
    pvs = [((0.1 * i, -0.2, 3.0 * i), (0.0, 0.3, -40.0)) for i in range(len(events))]
    found, flags = run_v0s(events, pvs)
    assert not flags.any()
    # Oracle and kernel have the same single-precision input.
    rounded = [{name: column.astype(np.float32) for name, column in event.items()} for event in events]
    assert sum(map(compare, rounded, pvs, found)) > 100


@pytest.mark.parametrize(
    ("decay", "mass", "kind"),
    [
        (Decay(), "m_pipi", DownstreamV0Kind.DOWNSTREAM_KS),
        (Decay(z=2000.0, tx=-0.15, ty=-0.1, phi=2.5), "m_pipi", DownstreamV0Kind.DOWNSTREAM_KS),
        (Decay(**LAMBDA), "m_ppi", DownstreamV0Kind.DOWNSTREAM_LAMBDA),
        (Decay(**PHOTON), "m_ee", DownstreamV0Kind.DOWNSTREAM_PHOTON),
    ],
)
def test_a_decay_is_found_with_its_place_momentum_and_mass(decay: Decay, mass: str, kind: DownstreamV0Kind) -> None:
    (found,), flags = run_v0s([columns_of([decay])])
    assert flags.tolist() == [0]
    assert found["tracks"].tolist() == [[0, 1]]
    assert found["kind"][0] & kind
    assert [found[name][0] for name in "xyz"] == pytest.approx(decay.place, abs=3.0 if decay.mass < 10 else 0.3)
    assert found[mass][0] == pytest.approx(decay.mass, abs=0.3)
    momentum = sum(decay.momenta)
    assert [found[f"p{axis}"][0] for axis in "xyz"] == pytest.approx(momentum, rel=1e-3, abs=2.0)
    assert found["ip"][0] < 0.1
    assert found["pv"].tolist() == [0]


def test_tracks_of_equal_charges_and_events_without_primary_vertex_have_no_vertex() -> None:
    tracks = columns_of([Decay()])
    both = {**tracks, "qop": np.abs(tracks["qop"])}
    found, _ = run_v0s([tracks, both, tracks], [ORIGIN, ORIGIN, NO_PVS])
    assert [len(of["x"]) for of in found] == [1, 0, 0]


@pytest.mark.parametrize(
    ("constant", "wide", "narrow", "decay", "kind"),
    [
        ("min_z", 300.0, 1210.0, Decay(), 1),
        ("max_z", 2300.0, 1190.0, Decay(), 1),
        ("max_doca", 10.0, 0.1, Decay(apart=1.0), 1),
        ("max_chi2", 20.0, 0.01, Decay(apart=1.0), 1),
        ("max_ip", 30.0, 5.0, Decay(shift_x=10.0), 1),
        ("ks_min_mass", 400.0, 499.0, Decay(), 1),
        ("ks_max_mass", 600.0, 496.0, Decay(), 1),
        ("lambda_max_mass", 1170.0, 1115.0, Decay(**LAMBDA), 2),
        ("photon_max_mass", 80.0, 1.5, Decay(**PHOTON), 4),
    ],
)
def test_each_constant_decides_about_a_vertex(
    constant: str, wide: float, narrow: float, decay: Decay, kind: int
) -> None:
    for value, expected in ((wide, kind), (narrow, 0)):
        algorithm = find_v0s.with_constants({constant: value})
        (found,), _ = run_v0s([columns_of([decay])], algorithm=algorithm)
        assert (int(found["kind"][0]) & kind if len(found["kind"]) else 0) == expected


@pytest.mark.parametrize("apart", [-8.0, 8.0])
@pytest.mark.parametrize("z", [400.0, 700.0])
def test_tracks_that_nowhere_meet_in_y_have_a_vertex_by_their_chi2(apart: float, z: float) -> None:
    # A decay in the plane of the bend: the distance in y is the same at every z, its error is larger at small z.
    decay = Decay(z=z, p=9000.0, phi=0.0, apart=apart)
    tracks = {name: column.astype(np.float32) for name, column in columns_of([decay]).items()}
    (found,), _ = run_v0s([tracks])
    assert compare(tracks, ORIGIN, found) == 1
    assert 5.0 < found["chi2"][0] < CUTS["max_chi2"]


def test_the_distance_in_y_corrects_the_slope() -> None:
    # Shifted by the y of the UT, the seed's slope is too large by the distance over 5,878 mm.
    tracks = columns_of([Decay()])
    shifted = {**tracks, "y_distance": np.full(2, 6.0), "ty": tracks["ty"] + 6.0 / 5878.0}
    (found, other), _ = run_v0s([tracks, shifted])
    for name in NUMBERS:
        assert other[name][0] == pytest.approx(found[name][0], rel=1e-3, abs=0.02)


def test_the_nearest_primary_vertex_is_that_of_the_vertex() -> None:
    decay = Decay()
    pvs = ((0.0, 0.0, -80.0), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    (found,), _ = run_v0s([columns_of([decay])], [pvs])
    assert found["pv"].tolist() == [1]


@pytest.mark.parametrize(("block_size", "backward"), [(1, True), (32, False), (100, True)])
def test_every_block_size_gives_the_same_bits(block_size: int, backward: bool) -> None:
    expected, _ = run_v0s(random_decays())
    found, _ = run_v0s(random_decays(), launch=blocks_of(block_size, backward=backward))
    for one, other in zip(expected, found, strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_every_instruction_set_gives_the_same_bits() -> None:
    expected, _ = run_v0s(random_decays())
    for target in KernelLibrary(CHAIN.kernels).targets:
        for one, other in zip(expected, run_v0s(random_decays(), launch=on_cpu(target))[0], strict=True):
            for name in one:
                np.testing.assert_array_equal(one[name], other[name], err_msg=f"{target}, {name}")


def test_a_track_that_is_no_number_has_no_vertex_and_changes_no_other_one() -> None:
    tracks = columns_of([Decay(), Decay(tx=-0.1, ty=-0.08, phi=2.0)])
    (expected,), _ = run_v0s([{name: column[2:] for name, column in tracks.items()}])
    assert len(expected["x"]) == 1
    for name in TRACK_COLUMNS:
        for value in (np.nan, np.inf, -np.inf):
            bad = {**tracks, name: tracks[name].copy()}
            bad[name][:2] = value
            (found,), flags = run_v0s([bad])
            kept = found["tracks"].min(axis=1) >= 2
            # An infinite q/p is a track without momentum; no vertex of it has a mass.
            assert kept.tolist() == [True], (name, value)
            assert found["m_pipi"][0] == expected["m_pipi"][0]
            assert flags.tolist() == [0]


@pytest.mark.parametrize(("n", "flag"), [(MAX_V0S_PER_EVENT, 0), (MAX_V0S_PER_EVENT + 1, EventFlag.OVERFLOW)])
def test_one_vertex_more_than_fits_flags_the_event(n: int, flag: int) -> None:
    tracks = columns_of([Decay()])
    # One positive track and n equal negative ones.
    event = {name: np.concatenate([column[:1], np.repeat(column[1:], n)]) for name, column in tracks.items()}
    (found,), flags = run_v0s([event])
    assert found["tracks"].tolist() == [[0, 1 + i] for i in range(MAX_V0S_PER_EVENT)]
    assert flags.tolist() == [flag]


@pytest.mark.parametrize("polarity", [UP, DOWN])
def test_the_field_follows_flights_from_the_vertex_to_the_ut(polarity: float) -> None:
    magnet = Magnet(polarity)
    rng = np.random.default_rng(7)
    n, z = 400, 900.0
    tx, ty = rng.uniform(-0.2, 0.2, n), rng.uniform(-0.15, 0.15, n)
    start = np.stack([tx * z + rng.normal(0, 20, n), ty * z + rng.normal(0, 20, n), tx, ty])
    s = rng.choice([-1.0, 1.0], n) / rng.uniform(3, 20, n)
    end = fly(Magnet(UP).field, start, s, z, np.array([2642.0]))[0]
    names = ("x", "y", "tx", "ty")
    tracks = Track.of(
        {**dict(zip(names, end, strict=True)), "qop": polarity * s / 1000, "y_distance": np.zeros(n)},
        v0_field_record(magnet),
    )
    dz = np.full(n, z - 2642.0)
    bends = np.abs(end[0] + end[2] * dz - start[0])
    assert np.quantile(bends, 0.68) > 4.0
    assert np.quantile(np.abs(tracks.x_at(dz) - start[0]), 0.95) < 0.2
    assert np.quantile(np.abs(tracks.tx_at(dz) - start[2]), 0.95) < 2e-4


def _compared_in_the_chain(banks: Sequence[Sequence[RawBank]], geometry: Path | None) -> int:
    """Compares the vertices of the whole sequence with the oracle. Returns their number."""
    made = reference_of(encode_mep(CHAIN.with_sequence("hlt1_2026"), banks, encoding="retina"), geometry, "hlt1_2026")

    def column(name: str, dtype: Any = np.float32) -> NDArray[Any]:
        return np.frombuffer(made.made[name], dtype)

    n_tracks, n_v0s, n_pvs = (column(f"{of}.count", np.uint32) for of in ("downstream_tracks", "downstream_v0s", "pvs"))
    total = 0
    for event in range(len(banks)):
        tracks = {
            name: column(f"downstream_tracks.{name}")[event * MAX_TRACKS_PER_EVENT :][: n_tracks[event]]
            for name in TRACK_COLUMNS
        }
        places = slice(event * MAX_V0S_PER_EVENT, event * MAX_V0S_PER_EVENT + int(n_v0s[event]))
        found: Columns = {name: column(f"downstream_v0s.{name}")[places] for name in NUMBERS}
        found |= {name: column(f"downstream_v0s.{name}", np.uint8)[places] for name in ("kind", "pv")}
        found["tracks"] = column("downstream_v0s.tracks", np.uint16).reshape(-1, 2)[places]
        pvs = column("pvs.vertex", PRIMARY_VERTEX.dtype)[event * MAX_PVS :][: n_pvs[event]]
        total += compare(tracks, np.stack([pvs[axis] for axis in "xyz"], axis=1), found)
    return total


def test_vertices_of_simulated_events_are_those_of_the_oracle() -> None:
    assert _compared_in_the_chain(full_events(6, seed=31), None) > 2


@pytest.mark.physics
def test_vertices_of_the_real_events_are_those_of_the_oracle(shared: Path) -> None:
    (path,) = (shared / "data/lhcb-minbias-mdf").glob("*retina3*.mdf")
    banks = [list(record.banks()) for record in iter_records(path.read_bytes())]
    assert _compared_in_the_chain(banks, shared / "data/lhcb-geometry") > 3
