"""The fits of segments and of merged tracks: form for the CPU and common kernel, on many short and long tracks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.tpc.collections import TRACK
from hltnode.processing.alice.tpc.merging.collections import MAX_SEGMENTS, MERGING_PARTS, TRACK_HIT
from hltnode.processing.alice.tpc.merging.fit.fit_merged_tracks import fit_merged_tracks
from hltnode.processing.alice.tpc.merging.segments.describe_segments import describe_segments
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.declaration import Algorithm
from hltnode.processing.framework.limits import BatchLimits
from hltnode.protocol.alice.tpc_banks import N_ROWS, N_SLICES
from tests.processing.alice.toy_events import GEOMETRY, UNIT, circle_places, clusters_at
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms

LIBRARY = KernelLibrary(CHAIN.kernels)
LIMITS = BatchLimits(events=1, input_bytes=1 << 25)
ENDS = tuple(f"tpc_tracks.{name}" for name in ("first_hit", "inner", "outer", "rows", "bin"))
MERGED = tuple(f"tpc_merged_tracks.{name}" for name in ("track", "particle", "ionisation"))
LISTED = 32768
"""Clusters that the form holds: tpc_listed_clusters."""
Columns = dict[str, NDArray[Any]]


class Segments:
    """Segments of helices, each helix in one slice, with clusters at any distance and of any charge."""

    def __init__(self, rng: np.random.Generator, lengths: Sequence[int], of_helix: Sequence[int]) -> None:
        n_helices = max(of_helix, default=0) + 1
        q = rng.choice([-1.0, 1.0], n_helices) * rng.uniform(0.5, 4.0, n_helices)
        slope = rng.uniform(0.05, 0.9, n_helices)
        whole = [circle_places(*each, 2.0) for each in zip(q, -UNIT * q * 60.0, slope, strict=True)]
        self.tracks = np.zeros(len(lengths), TRACK.dtype)
        self.first = np.cumsum([0, *lengths])
        self.hits = np.zeros(self.first[-1], TRACK_HIT.dtype)
        self.clusters = np.zeros(self.first[-1], np.uint32)
        for i, (n, helix) in enumerate(zip(lengths, of_helix, strict=True)):
            rows, y, z = whole[helix]
            chosen = np.sort(rng.permutation(len(rows))[:n])
            if len(chosen) < n:
                chosen = np.resize(chosen, n)
                chosen.sort()
            at = clusters_at(rows[chosen], y[chosen], z[chosen])
            # In half of the segments, one of two clusters is far away.
            far = (rng.random(n) < 0.5) & (i % 2 == 1)
            off = np.where(far, rng.integers(300, 3000, n), rng.integers(-60, 60, n))
            # A second cluster at a place: another number.
            variant = rng.integers(3, size=n)
            of = slice(self.first[i], self.first[i + 1])
            self.hits["place"][of] = (at["z"].astype(np.uint32) << 16 | at["y"]) + off.astype(np.uint32)
            self.hits["row"][of] = at["row"]
            charge = rng.choice([60.0, 120.0, 240.0, 480.0]) * rng.uniform(0.7, 1.4, n)
            self.hits["charge"][of] = charge + 600.0 * (rng.random(n) < 0.45) * (i % 3 == 0)
            self.clusters[of] = (helix * N_ROWS + at["row"]) * 3 + variant
            record = self.tracks[i]
            k = chosen[0]
            record["x"], record["y"], record["z"] = GEOMETRY.row_x[rows[k]], y[k], z[k]
            record["sin_phi"] = np.sin(-UNIT * q[helix] * 60.0) + UNIT * q[helix] * record["x"]
            record["tan_lambda"], record["q_pt"] = slope[helix], q[helix]
            record["n_clusters"], record["slice"], record["charge"] = n, helix % 3 + 17, self.hits["charge"][of].sum()
        width = 10.0 ** rng.uniform(-5.0, 2.0, (5, len(lengths)))
        for name, of_tracks in zip(("c_yy", "c_zz", "c_ss", "c_ll", "c_qq"), width, strict=True):
            self.tracks[name] = of_tracks

    def as_given(self) -> Columns:
        return {
            "tpc.geometry": GEOMETRY.as_floats(),
            "tpc_tracks.track": self.tracks,
            "tpc_tracks.first_hit": self.first[:-1],
            "tpc_track_clusters.cluster": self.clusters,
            "tpc_track_clusters.hit": self.hits,
        }


def both_forms(algorithm: Algorithm, given: Columns, names: Sequence[str]) -> Columns:
    """The columns of the common kernel, which are those of the form bit by bit."""
    for target in LIBRARY.targets:
        form, common = (
            run_algorithms([algorithm], given, 1, LIMITS, on_cpu(target, kernels=CHAIN.kernels, common=common))
            for common in (False, True)
        )
        for name in names:
            assert form[name].tobytes() == common[name].tobytes(), (name, target)
    return common


def merged_of(segments: Segments, lists: Sequence[Sequence[int]], runs: Sequence[int]) -> Columns:
    """The columns of merged tracks of some segments."""
    size = np.array([len(each) for each in lists])
    return segments.as_given() | {
        "tpc_merged_tracks.count": np.array([len(lists)]),
        "tpc_merged_tracks.size": size,
        "tpc_merged_tracks.run": np.array(runs),
        "tpc_merged_tracks.first_segment": np.cumsum(size) - size,
        "tpc_merged_segments.segment": np.concatenate([np.asarray(each, np.uint32) for each in lists]),
    }


@cache
def short_tracks() -> tuple[Segments, list[list[int]], list[int]]:
    """278 tracks in each block: more than a form sorts together. Lengths around 20, the fewest charges."""
    rng = np.random.default_rng(7)
    n = 600
    lengths = np.concatenate([rng.integers(3, 12, n // 2), rng.integers(15, 30, n // 2)])
    helices = rng.integers(40, size=n)
    segments = Segments(rng, lengths.tolist(), helices.tolist())
    of_helix = [np.flatnonzero(helices == i) for i in range(40)]
    lists, runs = [], []
    for _ in range(278 * MERGING_PARTS):
        size = int(rng.choice([1, 1, 2, 3, 5]))
        own = of_helix[rng.integers(40)] if rng.random() < 0.8 else np.arange(n)
        lists.append(rng.choice(own, size, replace=len(own) < size).tolist())
        runs.append(int(rng.integers(1, size + 1)))
    return segments, lists, runs


@pytest.mark.parametrize("n", [0, 1, 7, 16, 17, 65, 257, 300])
def test_form_and_common_kernel_describe_the_same_segments(n: int) -> None:
    """In one slice: lanes that are not in use, several vectors, and more than are sorted together."""
    rng = np.random.default_rng(n)
    lengths = rng.integers(3, 60, n)
    segments = Segments(rng, lengths.tolist(), rng.integers(9, size=n).tolist())
    tracks = np.zeros(N_SLICES, np.uint32)
    tracks[19], segments.tracks["slice"] = n, 19
    total = len(segments.hits)
    given = segments.as_given() | {
        "tpc_slices.tracks": tracks,
        "tpc_slices.track_clusters": tracks // max(n, 1) * total,
        "tpc_track_clusters.cluster": np.arange(total),
        "tpc_event_clusters.place": segments.hits["place"],
        "tpc_event_clusters.row": segments.hits["row"],
        "tpc_clusters.charges": segments.hits["charge"],
    }
    found = both_forms(describe_segments, given, (*ENDS, "tpc_track_clusters.hit"))
    assert found["tpc_track_clusters.hit"][:total].tobytes() == segments.hits.tobytes()
    if n >= 257:
        outer = found["tpc_tracks.outer"][:n]
        assert 0 < np.count_nonzero((outer["along_x"] == 0) & (outer["along_y"] == 0)) < n


def test_form_and_common_kernel_fit_the_same_merged_tracks() -> None:
    segments, lists, runs = short_tracks()
    found = both_forms(fit_merged_tracks, merged_of(segments, lists, runs), MERGED)
    n = len(lists)
    n_failed = np.count_nonzero(found["tpc_merged_tracks.track"]["n_fitted"][:n] == 0)
    assert 0.01 * n < n_failed < 0.9 * n
    assert np.bincount(found["tpc_merged_tracks.particle"][:n], minlength=3).min() >= 10


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_merged_tracks_are_fitted_in_few_blocks(n: int) -> None:
    segments, lists, runs = short_tracks()
    both_forms(fit_merged_tracks, merged_of(segments, lists[: n + 1], runs[: n + 1]) | {
        "tpc_merged_tracks.count": np.array([n])
    }, MERGED)  # fmt: skip


def test_tracks_of_many_segments_fill_what_a_form_holds() -> None:
    rng = np.random.default_rng(8)
    lengths = [N_ROWS] * MAX_SEGMENTS
    segments = Segments(rng, lengths, [0] * MAX_SEGMENTS)
    segments.hits["row"] = np.tile(np.arange(N_ROWS), MAX_SEGMENTS)
    segments.tracks["x"] = GEOMETRY.row_x[0]
    segments.clusters = np.arange(len(segments.hits), dtype=np.uint32)  # none is shared
    lists = [rng.permutation(MAX_SEGMENTS).tolist() for _ in range(8 * MERGING_PARTS)]
    both_forms(fit_merged_tracks, merged_of(segments, lists, [MAX_SEGMENTS] * len(lists)), MERGED)
    assert 8 * MAX_SEGMENTS * N_ROWS > LISTED


def test_the_library_has_both_forms() -> None:
    for target in LIBRARY.targets:
        for each in (describe_segments, fit_merged_tracks):
            assert LIBRARY.address(target, each.kernel) != LIBRARY.address(target, each.kernel, common=True)
