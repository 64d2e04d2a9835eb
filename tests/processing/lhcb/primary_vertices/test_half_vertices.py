"""Vertices of each half of the VELO: the oracle, the halves apart, pairs, bounds, and simulated open detectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import BeamLine
from hltnode.processing.lhcb.primary_vertices.collections import MAX_PVS, MAX_SEEDS, PRIMARY_VERTEX
from hltnode.processing.lhcb.primary_vertices.halves.collections import (
    MAX_HALF_PAIRS,
    MAX_HALF_VERTICES,
    half_distance,
    half_pair_count,
    half_pair_tracks,
    half_pair_vertices,
)
from hltnode.processing.lhcb.primary_vertices.halves.find_vertices import find_vertices
from hltnode.processing.lhcb.primary_vertices.halves.pair_vertices import pair_vertices
from hltnode.processing.lhcb.primary_vertices.halves.split_tracks import split_tracks
from hltnode.processing.lhcb.velo.tracking.kalman_filter import kalman_filter
from tests.processing.framework.kernel_runner import Launch, on_cpu, run_algorithms, with_block_size
from tests.processing.lhcb.primary_vertices.half_vertices_oracle import pairs_in_z, vertices_of_halves
from tests.processing.lhcb.primary_vertices.primary_vertices_oracle import Tracks, Vertex
from tests.processing.lhcb.velo.track_sample import TrackSample, made_up_tracks

FINDER = [kalman_filter, split_tracks, find_vertices, pair_vertices]
BEAMLINE = BeamLine(0.02, -0.03, 2e-3, -1e-3)
SIDE_C, SIDE_A = 0, 1
MIXED_EVERY = 7
"""One track in seven has hits of both halves."""


@dataclass(frozen=True)
class HalfSample:
    """Tracks, and the half of each of their hits."""

    tracks: TrackSample
    sides: list[list[NDArray[np.int64]]]

    def buffers(self) -> dict[str, NDArray[Any]]:
        buffers = self.tracks.buffers()
        offset = self.tracks.cluster_offset()
        ids = np.zeros(offset[-1], np.uint32)
        for begin, event in zip(offset[:-1], self.sides, strict=True):
            side = np.concatenate([np.zeros(0, np.int64), *event])
            ids[begin : begin + len(side)] = lhcb_ids(side)
        return buffers | {"velo_hits.id": ids}


def lhcb_ids(side: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Pixels of modules of a half; all other bits are set, so that they must not decide."""
    others = 2 << 28 | 3 << 26 | 0xFF << 18 | 0x3FFFF
    ids: NDArray[np.uint32] = (others & ~(1 << 20) | side << 20).astype(np.uint32)
    return ids


def half_sample(seed: int, n_events: int) -> HalfSample:
    """Events with 0 to 6 collisions; a track to x > 0 is on side A."""
    rng = np.random.default_rng(seed)
    events, sides = [], []
    for number in range(n_events):
        places = rng.normal(0.0, (0.02, 0.02, 50.0), (number % 7, 3))
        places[:, :2] += BEAMLINE.at(places[:, 2])
        n_tracks = int(rng.integers(10, 90))
        tracks = [track for place in places for track in made_up_tracks(rng, [tuple(place)], n_tracks)]
        of_event = []
        for i, track in enumerate(tracks):
            side = np.full(len(track), SIDE_A if np.mean(track[:, 0]) > 0 else SIDE_C)
            if i % MIXED_EVERY == 0:
                side[rng.integers(len(side))] ^= 1
            of_event.append(side)
        events.append(tracks)
        sides.append(of_event)
    return HalfSample(TrackSample(events, BEAMLINE), sides)


def reconstructed(sample: HalfSample, launch: Launch | None = None) -> dict[str, NDArray[Any]]:
    return run_algorithms(FINDER, sample.buffers(), len(sample.sides), sample.tracks.limits, launch)


def vertices_of(result: Mapping[str, NDArray[Any]], event: int, side: int) -> NDArray[np.void]:
    n = result["half_vertices.count"][event]
    vertices: NDArray[np.void] = result["half_vertices.vertex"].reshape(-1, MAX_HALF_VERTICES)[event, :n]
    of_side: NDArray[np.void] = vertices[result["half_vertices.side"].reshape(-1, MAX_HALF_VERTICES)[event, :n] == side]
    return of_side


def used(result: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """The part of a column of half_vertices or half_pairs that holds objects."""
    collection = name.partition(".")[0]
    most = MAX_HALF_VERTICES if collection == "half_vertices" else MAX_HALF_PAIRS
    count = result[f"{collection}.count"]
    column = result[name].reshape(len(count), most, -1)
    return np.concatenate([column[event, :n].ravel() for event, n in enumerate(count)])


OBJECTS = (
    *("half_vertices.vertex", "half_vertices.side"),
    *(column.name for column in (half_pair_vertices, *half_distance.values(), half_pair_tracks)),
)


def differing(result: Mapping[str, NDArray[Any]], other: Mapping[str, NDArray[Any]]) -> list[str]:
    counts = ("half_tracks.counts", "half_vertices.count", half_pair_count.name, "events.flags")
    found = [name for name in counts if result[name].tobytes() != other[name].tobytes()]
    return found or [name for name in OBJECTS if used(result, name).tobytes() != used(other, name).tobytes()]


@pytest.fixture(scope="module")
def sample() -> HalfSample:
    return half_sample(11, 21)


@pytest.fixture(scope="module")
def result(sample: HalfSample) -> dict[str, NDArray[Any]]:
    return reconstructed(sample)


def tracks_of(result: Mapping[str, NDArray[Any]], sample: HalfSample, event: int) -> Tracks:
    first = sample.tracks.first_track(event)
    names = ("x", "y", "z", "tx", "ty", "c00")
    x, y, z, tx, ty, c00 = (
        result[f"velo_beamline.{name}"][first : first + len(sample.sides[event])].astype(np.float64) for name in names
    )
    return Tracks(x, y, z, tx, ty, 1.0 / c00)


def assert_same_vertices(found: NDArray[np.void], expected: list[Vertex]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        sigma = np.sqrt(np.diag(other.covariance))
        np.testing.assert_allclose([one[axis] for axis in "xyz"], other.position, atol=0.02 * float(sigma.min()))
        assert one["n_tracks"] == pytest.approx(other.n_tracks, rel=1e-3)
        for (i, j), name in (((0, 0), "c00"), ((1, 1), "c11"), ((2, 2), "c22"), ((2, 0), "c20"), ((2, 1), "c21")):
            assert one[name] == pytest.approx(other.covariance[i, j], abs=2e-3 * sigma[i] * sigma[j])


def test_vertices_of_each_half_equal_those_of_the_oracle(sample: HalfSample, result: dict[str, NDArray[Any]]) -> None:
    total = [0, 0]
    for event, sides in enumerate(sample.sides):
        expected = vertices_of_halves(tracks_of(result, sample, event), sides, BEAMLINE)
        for side in (SIDE_C, SIDE_A):
            assert_same_vertices(vertices_of(result, event, side), expected[side])
            total[side] += len(expected[side])
    assert min(total) > 30


def test_tracks_with_hits_of_both_halves_belong_to_none(sample: HalfSample, result: dict[str, NDArray[Any]]) -> None:
    counts = result["half_tracks.counts"].reshape(-1, 2)
    for event, sides in enumerate(sample.sides):
        z = tracks_of(result, sample, event).z
        inside = (z > -541.0) & (z < 307.0)
        wanted = [
            sum(bool(np.all(side == half)) & ok for side, ok in zip(sides, inside, strict=True)) for half in (0, 1)
        ]
        assert counts[event].tolist() == wanted
    n_mixed = sum(len(np.unique(side)) == 2 for sides in sample.sides for side in sides)
    assert n_mixed > 50


def test_a_half_does_not_see_the_tracks_of_the_other() -> None:
    """Tracks of side A from other places change no bit of the vertices of side C."""
    rng = np.random.default_rng(3)
    of_c = [track for track in made_up_tracks(rng, [(0.0, 0.0, 10.0)], 80) if np.mean(track[:, 0]) < 0]
    others = [
        [track for track in made_up_tracks(rng, [(0.0, 0.0, z)], 80) if np.mean(track[:, 0]) > 0] for z in (11.0, 90.0)
    ]
    found = []
    for of_a in ([], *others):
        tracks = [*of_c, *of_a]
        sides = [np.full(len(track), int(i >= len(of_c))) for i, track in enumerate(tracks)]
        result = reconstructed(HalfSample(TrackSample([tracks]), [sides]))
        found.append(vertices_of(result, 0, SIDE_C).tobytes())
        assert len(vertices_of(result, 0, SIDE_A)) == (1 if of_a else 0)
    assert len(found[0]) == PRIMARY_VERTEX.dtype.itemsize
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("target", KernelLibrary(CHAIN.kernels).targets)
def test_the_form_for_the_cpu_gives_the_same_bits(
    sample: HalfSample, result: dict[str, NDArray[Any]], target: str
) -> None:
    for common in (False, True):
        assert differing(result, reconstructed(sample, on_cpu(target, common=common))) == []


@pytest.mark.parametrize("block_size", [1, 20, 32, 64, 96, 256])
@pytest.mark.parametrize("backward", [False, True])
def test_the_block_size_has_no_effect(
    sample: HalfSample, result: dict[str, NDArray[Any]], block_size: int, backward: bool
) -> None:
    assert differing(result, reconstructed(sample, with_block_size(block_size, backward=backward))) == []


def paired(z_c: list[float], z_a: list[float], launch: Launch | None = None) -> dict[str, NDArray[Any]]:
    """Vertices of both halves, not in the order of z; x, y and n_tracks are their numbers."""
    vertices = np.zeros(MAX_HALF_VERTICES, PRIMARY_VERTEX.dtype)
    n = len(z_c) + len(z_a)
    vertices["z"][:n] = [*z_c, *z_a]
    for name, factor in (("x", 0.5), ("y", -0.25), ("n_tracks", 1.0)):
        vertices[name][:n] = factor * np.arange(n)
    given = {
        "half_vertices.vertex": vertices,
        "half_vertices.side": np.array([SIDE_C] * len(z_c) + [SIDE_A] * len(z_a)),
        "half_vertices.count": np.array([n]),
    }
    return run_algorithms([pair_vertices], given, 1, BatchLimits(events=1, meps=1, input_bytes=1 << 10, rows=1), launch)


def check_pairs(z_c: list[float], z_a: list[float], launch: Launch | None = None) -> int:
    """Compares with the oracle; returns the number of pairs."""
    result = paired(z_c, z_a, launch)
    expected = pairs_in_z(np.array(z_c, np.float32).tolist(), np.array(z_a, np.float32).tolist())
    n = int(result["half_pairs.count"][0])
    numbers = result["half_pairs.vertices"].reshape(-1, 2)[:n]
    assert numbers.tolist() == [[c, len(z_c) + a] for c, a in expected]
    z = np.array([*z_c, *z_a], np.float32)
    c, a = numbers.astype(int).T
    assert result["half_pairs.dx"][:n].tolist() == (0.5 * (a - c)).tolist()
    assert result["half_pairs.dy"][:n].tolist() == (-0.25 * (a - c)).tolist()
    assert result["half_pairs.dz"][:n].tolist() == (z[a] - z[c]).tolist()
    assert result["half_pairs.n_tracks"][:n].tolist() == c.tolist()
    return n


@pytest.mark.parametrize(
    ("z_c", "z_a", "n"),
    [
        ([0.0], [4.99], 1),
        ([0.0], [5.0], 0),
        ([0.0], [-4.99], 1),
        ([], [1.0], 0),
        ([1.0], [], 0),
        ([0.0, 3.0], [1.0], 1),  # the second one is further from the only vertex of side A
        ([0.0, 2.0], [1.0], 1),  # at the same distance: the first one
        ([1.0], [0.0, 2.0], 1),
        ([0.0, 10.0], [10.5, 0.5], 2),
    ],
)
def test_vertices_are_paired_if_each_is_the_nearest_of_the_other(z_c: list[float], z_a: list[float], n: int) -> None:
    assert check_pairs(z_c, z_a) == n


@pytest.mark.parametrize("block_size", [None, 1, 7, 32, 64])
def test_pairs_of_many_vertices_equal_those_of_the_oracle(block_size: int | None) -> None:
    rng = np.random.default_rng(5)
    launch = None if block_size is None else with_block_size(block_size)
    n_pairs = 0
    for n_c, n_a in ((MAX_PVS, MAX_PVS), (MAX_PVS, 5), (3, MAX_PVS), (12, 12)):
        n_pairs += check_pairs(rng.uniform(-150, 150, n_c).tolist(), rng.uniform(-150, 150, n_a).tolist(), launch)
    assert n_pairs > 20
    assert check_pairs(np.linspace(-150, 150, MAX_PVS).tolist(), np.linspace(-149, 151, MAX_PVS).tolist()) == MAX_PVS


def tracks_at(z: NDArray[np.float64], side: int, slopes: tuple[tuple[float, float], ...]) -> dict[str, NDArray[Any]]:
    """Tracks of these slopes from each place on the beam line, all on one half."""
    places = np.repeat(z, len(slopes))
    tx, ty = np.tile(slopes, (len(z), 1)).T
    return {
        "velo_clusters.offset": np.array([0, 2 * len(places)]),
        "half_tracks.counts": np.array([0, 0]) + len(places) * (np.arange(2) == side),
        "half_tracks.z": places,
        "half_tracks.tx": tx,
        "half_tracks.ty": ty,
        "half_tracks.weight": np.full(len(places), 400.0),
        "half_tracks.fit_weight": np.full(len(places), 400.0),
    }


PARALLEL = 6 * ((0.3, 0.0),)
"""No fit gives a vertex of parallel tracks."""
CROSSED = ((0.3, 0.0), (-0.3, 0.0), (0.0, 0.3), (0.0, -0.3), (0.2, 0.2), (-0.2, -0.2))


@pytest.mark.parametrize("common", [False, True], ids=["", "common"])
@pytest.mark.parametrize("side", [SIDE_C, SIDE_A])
@pytest.mark.parametrize(("slopes", "most"), [(PARALLEL, MAX_SEEDS), (CROSSED, MAX_PVS)], ids=["seeds", "vertices"])
def test_more_seeds_or_vertices_of_a_half_than_places_flag_the_event(
    slopes: tuple[tuple[float, float], ...], most: int, side: int, common: bool
) -> None:
    limits = BatchLimits(events=1, meps=1, input_bytes=1 << 14, rows=1)
    for n in (most, most + 1):
        given = tracks_at(np.linspace(-300.0, 8.0 * n - 308.0, n, dtype=np.float64), side, slopes)
        # The tracks of side A lie behind those of side C, of which there are none.
        result = run_algorithms([find_vertices], given, 1, limits, on_cpu(common=common))
        assert result["events.flags"][0] == (EventFlag.OVERFLOW if n > most else 0), n
        assert len(vertices_of(result, 0, side)) == (MAX_PVS if slopes is CROSSED else 0)
        assert len(vertices_of(result, 0, 1 - side)) == 0
