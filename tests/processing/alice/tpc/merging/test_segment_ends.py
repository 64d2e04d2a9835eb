"""Ends of segments against a sequential oracle of both iterations of the fit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.geometry.slices import slice_angle
from hltnode.processing.alice.tpc.collections import TRACK
from hltnode.processing.alice.tpc.merging.collections import SEGMENT_END
from hltnode.processing.alice.tpc.merging.segments.describe_segments import describe_segments
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep
from tests.processing.alice.merged_events import event_of_all_kinds, helix, slice_oracle
from tests.processing.alice.toy_events import columns_of, event_of, mep_of
from tests.processing.alice.track_oracle import Slice, State
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms

f = np.float32
Columns = dict[str, NDArray[Any]]


def outwards(oracle: Slice, index: list[tuple[int, int]]) -> State | None:
    """The sequential first iteration through (row, place) from the first to the last cluster."""
    step = min((len(index) - 1) // 2, 8)
    t = oracle.start([index[0], index[step], index[2 * step]], True)
    fitted = 1
    for row, k in index[1:]:
        if t is None or not oracle.propagate(t, oracle.row_x[row]):
            return None
        if fitted >= 10 and oracle.chi2(t, row, k) > f(25):
            continue
        oracle.update(t, row, k)
        if not oracle.is_within(t.s):
            return None
        fitted += 1
    return t


def again(oracle: Slice, t: State, hits: list[tuple[int, int]]) -> State | None:
    """The sequential second iteration of a fit from a state through (row, place) in this order."""
    t = replace(t)
    hundred, zero = f(100), f(0)
    t.yy, t.ss, t.qq, t.zz, t.ll = (each * hundred for each in (t.yy, t.ss, t.qq, t.zz, t.ll))
    t.sy = t.qy = t.qs = t.lz = t.chi2 = zero
    fitted = 0
    for row, k in hits:
        if not oracle.propagate(t, oracle.row_x[row]):
            return None
        if oracle.chi2(t, row, k) > f(25):
            continue
        oracle.update(t, row, k)
        if not oracle.is_within(t.s):
            return None
        fitted += 1
    return t if 2 * fitted >= len(hits) and min(t.ss, t.qq, t.ll) > 0 else None


def state_of(record: np.void) -> State:
    """The state of a track of a slice, with z and slope of the drift."""
    side = 1.0 if record["slice"] < 18 else -1.0
    t = State(*(record[name] for name in ("x", "y", "z", "sin_phi", "tan_lambda", "q_pt", "c_yy", "c_zz")))
    t.z, t.l = side * t.z, side * t.l
    t.sy, t.ss, t.lz, t.ll, t.qy, t.qs, t.qq = (record[f"c_{of}"] for of in ("sy", "ss", "lz", "ll", "qy", "qs", "qq"))
    return t


def end_of(t: State, number: int, unit: Any, outer: bool) -> list[float]:
    """The end in the global frame, in double precision."""
    angle = slice_angle(np.array([number]))[0]
    sign, side = (1.0 if outer else -1.0), (1.0 if number < 18 else -1.0)
    x, y, s, c = float(t.x), float(t.y), float(t.s), float(np.sqrt(1 - float(t.s) ** 2))
    cosine, sine = np.cos(angle), np.sin(angle)
    return [
        *(x * cosine - y * sine, x * sine + y * cosine, side * float(t.z)),
        *(sign * (c * cosine - s * sine), sign * (c * sine + s * cosine), sign * unit * t.q, sign * side * t.l),
        *(t.yy * c * c, sign * t.sy, t.ss / c**2, unit * t.qy * c, sign * unit * t.qs / c, unit**2 * t.qq),
        *(t.zz, sign * t.lz, t.ll),
    ]


assert_ends = partial(np.testing.assert_allclose, rtol=5e-5, atol=5e-5)


def test_ends_are_those_of_second_iterations_of_the_fit() -> None:
    event = event_of_all_kinds()
    n_inner = 0
    for i, record in enumerate(event.tracks):
        clusters = event.clusters(i)
        oracle = slice_oracle(event.places[clusters])
        inner = state_of(record)
        hits = [(int(row), k) for k, row in enumerate(event.cluster_rows[clusters])]
        outer = again(oracle, inner, hits)
        if outer is None:
            outer = outwards(oracle, hits)
        else:
            second = again(oracle, outer, hits[::-1])
            n_inner += second is not None
            inner = inner if second is None else second
        for k, t in enumerate((inner, outer)):
            if t is None:
                assert event.ends[i, k]["along_x"] == event.ends[i, k]["along_y"] == 0
                continue
            unit = float(oracle.unit(t.x, t.y, t.z))
            assert_ends(event.ends[i, k].tolist(), end_of(t, int(record["slice"]), unit, k == 1))
        rows = event.cluster_rows[clusters]
        assert event.rows[i].tolist() == [rows[0], rows[-1]]
    assert n_inner > 0.9 * len(event.tracks)


N_CLUSTERS = 40


@pytest.fixture(scope="module")
def one_segment() -> tuple[EncodedMep, Columns]:
    """A track in the first rows of a slice, and all columns of its event."""
    clusters = helix(0.5, np.radians(10), 0.2, 5.0)[0]
    mep = mep_of([event_of({0: clusters[clusters["row"] < N_CLUSTERS]})])
    columns = columns_of(mep)
    assert columns["tpc_tracks.count"].tolist() == [1]
    assert columns["tpc_track_clusters.count"].tolist() == [N_CLUSTERS]
    return mep, columns


def outer_end(
    mep: EncodedMep, columns: Columns, y_of_last: float, last: int, changed: tuple[tuple[str, float], ...] = ()
) -> tuple[Any, ...]:
    """The outer end of the segment, the second iteration of the oracle (None if it fails), and the first one.

    The last clusters are moved by y_of_last (cm), and parameters of the track have the given values."""
    written = {column.name for column in describe_segments.writes}
    given = {name: columns[name].copy() for name in {each.name for each in describe_segments.columns} - written}
    rows, places = given["tpc_event_clusters.row"][:N_CLUSTERS], given["tpc_event_clusters.place"][:N_CLUSTERS]
    places[rows >= N_CLUSTERS - last] += np.uint32(y_of_last / 0.0015)
    record = given["tpc_tracks.track"].view(TRACK.dtype)[:1]
    for name, value in changed:
        record[name] = value
    limits = BatchLimits(events=1, meps=1, input_bytes=-(-mep.data.nbytes // 8) * 8, rows=len(mep.fragments))
    made = run_algorithms([describe_segments], given, 1, limits, on_cpu(kernels=CHAIN.kernels))
    clusters = columns["tpc_track_clusters.cluster"][:N_CLUSTERS]
    oracle = slice_oracle(places[clusters])
    hits = [(int(row), k) for k, row in enumerate(rows[clusters])]
    ends = [
        None if t is None else end_of(t, 0, float(oracle.unit(t.x, t.y, t.z)), True)
        for t in (again(oracle, state_of(record[0]), hits), outwards(oracle, hits))
    ]
    return made["tpc_tracks.outer"].view(SEGMENT_END.dtype)[0].tolist(), *ends


@pytest.mark.parametrize("n_far", [N_CLUSTERS // 2, N_CLUSTERS // 2 + 1])
def test_a_second_iteration_keeps_half_of_the_clusters(one_segment: tuple[EncodedMep, Columns], n_far: int) -> None:
    found, second, first = outer_end(*one_segment, 8.0, n_far)
    assert first is not None
    assert (second is not None) == (2 * n_far <= N_CLUSTERS)
    assert_ends(found, first if second is None else second)
    with pytest.raises(AssertionError):
        assert_ends(first, found if second is not None else outer_end(*one_segment, 8.0, n_far - 1)[1])


@pytest.mark.parametrize("name", ["c_qq", "c_ll"])
def test_a_second_iteration_needs_positive_variances(one_segment: tuple[EncodedMep, Columns], name: str) -> None:
    found, second, first = outer_end(*one_segment, 0.0, 0, ((name, -1e-8),))
    assert second is None
    assert_ends(found, first)
