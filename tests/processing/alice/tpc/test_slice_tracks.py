"""Clusters, links, seeds and tracks of slices against a sequential oracle, bit by bit, and against a matrix filter."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.tpc.collections import SPARE_PAIRS
from hltnode.processing.alice.tpc.flags import (
    BAD_CLUSTER,
    BAD_TPC_BANK,
    CROWDED_CLUSTERS,
    NO_TPC,
    ROW_TOO_FULL,
    TOO_MANY_SLICE_TRACKS,
    TOO_MANY_TRACKLETS,
)
from hltnode.processing.alice.tpc.seeds.find_start_hits import find_start_hits
from hltnode.processing.alice.tpc.tracks.constants import TRACKLET_CONSTANTS
from hltnode.processing.alice.tpc.tracks.select_tracks import select_tracks
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.protocol.alice.tpc_banks import CLUSTER, N_ROWS, N_SLICES, tpc_source
from tests.processing.alice.toy_events import (
    GEOMETRY,
    FoundEvent,
    circle_places,
    clusters_at,
    columns_of,
    event_of,
    events_of,
    mep_of,
    run_chain,
    toy_slice,
)
from tests.processing.alice.track_oracle import NONE, Slice
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms

SLICES = (2, 30)


@pytest.fixture(scope="module")
def clusters() -> dict[int, NDArray[np.void]]:
    rng = np.random.default_rng(8)
    return {number: toy_slice(rng, 7, 250).clusters for number in SLICES}


@pytest.fixture(scope="module")
def columns(clusters: dict[int, NDArray[np.void]]) -> dict[str, NDArray[Any]]:
    """An event without a bank, and one of two slices."""
    return columns_of(mep_of([{}, event_of(clusters, 3)], 40))


class SliceColumns:
    """What the kernels have made of a slice of the second event; by rows."""

    def __init__(self, columns: dict[str, NDArray[Any]], number: int) -> None:
        part = N_SLICES + number
        self.columns = columns
        self.counts = columns["tpc_slices.row_counts"].reshape(-1, N_ROWS)[part].astype(int)
        self.first = int(columns["tpc_slices.first_cluster"][part])
        self.bins = (self.first // 2 + part * ((N_ROWS + 3) // 2)) * 2
        self.part = part

    def by_rows(self, name: str) -> list[NDArray[Any]]:
        """A column of clusters."""
        content = self.columns[name][self.first : self.first + self.counts.sum()]
        return np.split(content, np.cumsum(self.counts)[:-1])


def test_clusters_are_sorted_by_rows_and_bins(
    columns: dict[str, NDArray[Any]], clusters: dict[int, NDArray[np.void]]
) -> None:
    order_in_event = np.concatenate([clusters[number] for number in SLICES])
    for number in SLICES:
        found, given = SliceColumns(columns, number), clusters[number]
        assert found.counts.tolist() == np.bincount(given["row"], minlength=N_ROWS).tolist()
        first_bin = found.bins
        for row, (places, inputs) in enumerate(
            zip(found.by_rows("tpc_clusters.places"), found.by_rows("tpc_clusters.inputs"), strict=True)
        ):
            own = order_in_event[inputs]
            assert (own["row"] == row).all()
            assert (own["z"].astype(np.uint32) << 16 | own["y"] == places).all()
            n = len(places)
            begins = columns["tpc_bins.begin"][first_bin : first_bin + n + 1].astype(int)
            first_bin += n + 1
            if n == 0:
                continue
            n_bins = int(np.argmax(begins == n)) if (begins == n).any() else 0
            assert n / 4 <= n_bins <= n
            edges = begins[: n_bins + 1]
            assert edges[0] == 0
            assert (np.diff(edges) >= 0).all()
            # Bins are rectangles of equal size: those of a line of bins have rising y, lines rising z.
            for begin, end in pairwise(edges):
                assert (np.diff(places[begin:end].astype(np.int64)) >= 0).all()


def test_links_seeds_and_tracks_equal_a_sequential_search(columns: dict[str, NDArray[Any]]) -> None:
    (_, event) = events_of(columns, 2)
    n_tracks = 0
    hits_of = iter(event.clusters_of_tracks())
    for number in SLICES:
        found = SliceColumns(columns, number)
        oracle = Slice(found.by_rows("tpc_clusters.places"), GEOMETRY)
        up, down = oracle.links()
        assert [x.tolist() for x in found.by_rows("tpc_clusters.up")] == up
        assert [x.tolist() for x in found.by_rows("tpc_clusters.down")] == down
        following = oracle.mutual(up, down)
        assert [x.tolist() for x in found.by_rows("tpc_clusters.next")] == following
        assert sum(n != NONE for of_row in following for n in of_row) > 500
        starts = oracle.start_hits(following)
        first = found.first // 4
        packed = columns["tpc_start_hits.cluster"][first : first + len(starts)]
        assert columns["tpc_slices.start_hits"][found.part] == len(starts)
        assert [(int(word) >> 16, int(word) & 0xFFFF) for word in packed] == starts

        inputs = found.by_rows("tpc_clusters.inputs")
        side = np.float32(1.0 if number < N_SLICES // 2 else -1.0)
        for t, hits in oracle.tracks(following):
            record = event.tracks[n_tracks]
            assert next(hits_of).tolist() == [int(inputs[row][i]) for row, i in hits]
            assert (record["slice"], record["n_clusters"]) == (number, len(hits))
            expected: tuple[Any, ...] = (t.x, t.y, side * t.z, t.s, side * t.l, t.q)
            expected += (t.yy, t.zz, t.sy, t.ss, t.lz, t.ll, t.qy, t.qs, t.qq, t.chi2)
            assert np.array(record.tolist()[:16], np.float32).tobytes() == np.array(expected, np.float32).tobytes()
            n_tracks += 1
    assert n_tracks == len(event.tracks)
    assert n_tracks >= 14


def matrix_fit(oracle: Slice, hits: list[tuple[int, int]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Parameters (y, z, s, l, q) and covariance of the inward fit by matrices in double precision.

    Derivatives by differences of an exact helix, but those that the model leaves out.
    """
    last = len(hits) - 1
    step = min(last // 2, 8)
    start = oracle.start([hits[last - 2 * step], hits[last - step], hits[last]], False)
    assert start is not None
    r = np.array([start.y, start.z, start.s, start.l, start.q], float)
    cov = np.diag([float(each) for each in (start.yy, start.zz, start.ss, start.ll, start.qq)])
    unit = -0.000299792458 * 5.0
    x, fitted = float(start.x), 1

    def moved(p: NDArray[np.float64], dx: float) -> NDArray[np.float64]:
        k = unit * p[4]
        s1 = p[2] + k * dx
        turn = np.arcsin(s1) - np.arcsin(p[2])
        arc = turn / k
        return np.array([p[0] + (np.sqrt(1 - p[2] ** 2) - np.sqrt(1 - s1**2)) / k, p[1] + p[3] * arc, s1, p[3], p[4]])

    for row, i in reversed(hits[:-1]):
        dx = float(oracle.row_x[row]) - x
        jacobian = np.empty((5, 5))
        for j in range(5):
            change = np.zeros(5)
            change[j] = 1e-5
            jacobian[:, j] = (moved(r + change, dx) - moved(r - change, dx)) / 2e-5
        jacobian[1, 2] = jacobian[1, 4] = 0.0
        before, r, x = r, moved(r, dx), x + dx
        cov = jacobian @ cov @ jacobian.T
        k = unit * r[4]
        arc = abs((np.arcsin(r[2]) - np.arcsin(before[2])) / k)
        slope = 1 + r[3] ** 2
        over_p2 = r[4] ** 2 / slope
        angle2 = 0.0136**2 * arc * np.sqrt(slope) / 30000.0 * over_p2 * (1 + 0.13957039**2 * over_p2)
        cov[2, 2] += angle2 * slope * (1 - r[2] ** 2)
        cov[3, 3] += angle2 * slope**2
        cov[4, 4] += angle2 * (r[4] * r[3]) ** 2
        place = np.array([oracle.y[row][i], oracle.z[row][i]], float)
        noise = np.diag([float(e) for e in oracle.errors(np.float32(r[2]), np.float32(r[3]), row, place[1])])
        h = np.eye(2, 5)
        gain = cov @ h.T @ np.linalg.inv(h @ cov @ h.T + noise)
        rest = place - h @ r
        if fitted >= 10 and (rest**2 / np.diag(h @ cov @ h.T + noise)).sum() > 25.0:
            continue
        fitted += 1
        r = r + gain @ rest
        cov = cov - gain @ h @ cov
    return r, cov


def test_the_filter_agrees_with_matrices_in_double_precision(
    columns: dict[str, NDArray[Any]], clusters: dict[int, NDArray[np.void]]
) -> None:
    (_, event) = events_of(columns, 2)
    found = {number: SliceColumns(columns, number) for number in SLICES}
    for record, hits in zip(event.tracks, event.clusters_of_tracks(), strict=True):
        own = found[int(record["slice"])]
        oracle = Slice(own.by_rows("tpc_clusters.places"), GEOMETRY)
        place = {
            int(i): (row, k) for row, of in enumerate(own.by_rows("tpc_clusters.inputs")) for k, i in enumerate(of)
        }
        r, cov = matrix_fit(oracle, [place[int(hit)] for hit in hits])
        side = 1.0 if record["slice"] < N_SLICES // 2 else -1.0
        fitted = np.array([record[name] for name in ("y", "z", "sin_phi", "tan_lambda", "q_pt")], float)
        fitted[[1, 3]] *= side
        assert np.abs(fitted - r).max(initial=0.0, where=np.ones(5, bool)) < 1e-2
        assert (np.abs(fitted - r) < 0.02 * np.sqrt(np.diag(cov))).all()
        names = {"c_yy": (0, 0), "c_zz": (1, 1), "c_ss": (2, 2), "c_ll": (3, 3), "c_qq": (4, 4), "c_qs": (4, 2)}
        for name, (i, j) in names.items():
            assert record[name] == pytest.approx(cov[i, j], rel=0.01), name


STRAIGHT = 0.02 * GEOMETRY.row_x, 0.3 * GEOMETRY.row_x
"""y and z of a track that crosses all rows."""


def test_a_cluster_far_from_its_track_stays_in_the_list_but_not_in_the_fit() -> None:
    rows = np.arange(N_ROWS)
    y, z = STRAIGHT
    (without,) = run_chain(mep_of([event_of({1: clusters_at(rows, y, z)[rows != 60]})]))
    for row, sigmas, taken in ((60, 4.7, True), (60, 5.4, False), (149, 8, True), (148, 8, False), (0, 5.4, False)):
        # At small angles, with the error of a track that the fit knows well.
        drift, pad = GEOMETRY.half_length - z[row], Slice.pad(row)
        sigma = np.sqrt(4.0e-4 + 2.69e-5 * drift / pad + 5.95e-3 * pad * 0.02**2)
        moved = y + sigmas * sigma * (rows == row)
        (found,) = run_chain(mep_of([event_of({1: clusters_at(rows, moved, z)})]))
        assert found.tracks["n_clusters"].tolist() == [N_ROWS]
        assert (found.tracks["chi2"][0] > 10.0) == taken
        if row == 60:
            # A cluster that is left out changes nothing.
            fit, other = (np.array(each.tracks[0].tolist()[:15]) for each in (found, without))
            assert np.allclose(fit, other, rtol=1e-3, atol=1e-9) != taken
        assert found.tracks["x"][0] == np.float32(GEOMETRY.row_x[0])
    wide = "[sequence.tpc_select_tracks]\nmax_fit_chi2 = 1000.0"
    (found,) = run_chain(mep_of([event_of({1: clusters_at(rows, moved, z)})]), wide)
    assert found.tracks["chi2"][0] > 10.0


def selected(weights: NDArray[np.uint32], owned: int, max_shared: float, common: bool) -> list[int]:
    """Clusters of the only track of a straight line, or none, if its tracklet owns those of weights[rows] that are 1
    and `owned` clusters in all."""
    rows = np.arange(N_ROWS)
    columns = columns_of(mep_of([event_of({1: clusters_at(rows, *STRAIGHT)})]))
    own = int(columns["tpc_clusters.weights"].max())
    assert own >> 16 == N_ROWS
    # The second start hit has no clusters: its tracklet is not made again.
    of_seeds = np.zeros(8, np.uint32)
    of_seeds[own & 0xFFFF] = owned
    of_clusters = np.where(weights == 1, own, own + 1).astype(np.uint32)
    given = {**columns, "tpc_clusters.weights": of_clusters, "tpc_start_hits.owned": of_seeds}
    constants = {"max_shared": max_shared}
    algorithm = replace(
        select_tracks,
        constants=tuple(replace(each, value=constants.get(each.name, each.value)) for each in select_tracks.constants),
    )
    limits = BatchLimits(events=1, input_bytes=1 << 16)
    found = run_algorithms([algorithm], given, 1, limits, on_cpu(kernels=CHAIN.kernels, common=common))
    n = int(found["tpc_slices.track_clusters"].sum())
    assert found["tpc_slices.tracks"].sum() == (n > 0)
    first = 3 * SPARE_PAIRS
    clusters: list[int] = found["tpc_slice_hits.cluster"][first : first + n].tolist()
    return clusters


@pytest.mark.parametrize("common", [False, True])
def test_a_track_has_at_most_a_share_of_clusters_of_other_tracklets(common: bool) -> None:
    """Another tracklet owns the clusters above the first 12."""
    weights = (np.arange(N_ROWS) < 12).astype(np.uint32)
    shared = {each.name: each.value for each in select_tracks.constants}["max_shared"]
    for share, n in ((shared, 12), (0.0, 12), (0.08, 12), (0.09, 13), (0.5, 18), (1.0, 24)):
        assert selected(weights, 12, share, common) == list(range(n)), share


@pytest.mark.parametrize("common", [False, True])
def test_a_tracklet_is_made_again_if_its_own_clusters_may_be_enough_for_a_track(common: bool) -> None:
    """A track has 10 clusters or more."""
    for share, fewest in ((0.0, 10), (0.25, 8), (0.5, 7), (1.0, 5)):
        weights = (np.arange(N_ROWS) < fewest).astype(np.uint32)
        assert selected(weights, fewest, share, common) == list(range(fewest + int(share * fewest)))
        assert selected(weights, fewest - 1, share, common) == []


def test_a_fit_ends_at_the_largest_angle_after_its_last_cluster() -> None:
    """The innermost cluster of a track turns the fit beyond the limit; the prediction there is still within it."""
    rows, y, z = circle_places(0.4, 0.12, 0.3, 2.0)
    y = y - 0.13 * (rows == 0)
    mep = mep_of([event_of({0: clusters_at(rows, y, z)})])
    columns = columns_of(mep)
    places, following = (
        np.split(columns[f"tpc_clusters.{name}"][: len(rows)], len(rows))[:N_ROWS] for name in ("places", "next")
    )
    oracle = Slice(places, GEOMETRY)
    ((fit, hits),) = oracle.tracks([each.tolist() for each in following])
    before = oracle.fit(hits[1:])
    assert before is not None
    assert hits[0] == (0, 0)
    assert oracle.propagate(before, oracle.row_x[0])
    assert fit.s > before.s + 1e-5
    names = ("construct_tracklets", "select_tracks", "describe_segments", "fit_merged_tracks")
    both = "\n".join(f"[sequence.tpc_{name}]\nmax_sin_phi = {{0!r}}" for name in names)
    for limit, n in ((float(fit.s) + 1e-5, 1), (float(fit.s + before.s) / 2, 0)):
        (found,) = run_chain(mep, both.format(limit))
        assert len(found.tracks) == n


def test_constants_have_bounds_and_both_kernels_the_same_ones() -> None:
    both = "[sequence.tpc_construct_tracklets]\n{0} = {1}\n[sequence.tpc_select_tracks]\n{0} = {2}\n"

    def configured(name: str, first: float, second: float) -> TriggerConfig:
        trigger = TriggerConfig.from_toml(both.format(name, first, second), CHAIN.menu)
        CHAIN.with_lines(trigger)
        return trigger

    for n in (3, N_ROWS):
        assert configured("min_clusters", n, n).tck(CHAIN.sequence)
    for n in (2, N_ROWS + 1):
        for pair in ((n, 10), (10, n)):
            with pytest.raises(TriggerConfigError, match=r"min_clusters: a number from 3 to 159 is expected"):
                configured("min_clusters", *pair)
    for name in TRACKLET_CONSTANTS:
        with pytest.raises(TriggerConfigError, match=rf"tpc_select_tracks.{name}: 4.*tpc_construct_tracklets has 5"):
            configured(name, 5, 4)
    # Alone it differs from the default of the other.
    alone = TriggerConfig.from_toml("[sequence.tpc_select_tracks]\nmax_chi2 = 30.0", CHAIN.menu)
    with pytest.raises(TriggerConfigError, match="both need the same value"):
        CHAIN.with_lines(alone)


def same_tracks(one: FoundEvent, other: FoundEvent, order: NDArray[np.int64]) -> bool:
    """Whether the tracks are equal and the clusters of `other` are those of `one` in another order."""
    return one.tracks.tobytes() == other.tracks.tobytes() and order[other.clusters].tolist() == one.clusters.tolist()


def test_tracks_depend_neither_on_the_order_of_clusters_nor_on_threads(clusters: dict[int, NDArray[np.void]]) -> None:
    number = SLICES[1]
    given = clusters[number]
    _, unique = np.unique(given, return_index=True)
    given = given[unique]
    order = np.random.default_rng(2).permutation(len(given))
    (one,) = run_chain(mep_of([event_of({number: given}, 2)]))
    (other,) = run_chain(mep_of([event_of({number: given[order]}, 11)]), threads=2)
    assert len(one.tracks) >= 7
    assert same_tracks(one, other, order)


def flags_of(event: dict[int, bytes | None], **how: int) -> int:
    (found,) = run_chain(mep_of([event], **how))
    return found.flags


def test_each_fault_of_the_input_has_its_flag_and_costs_what_it_must() -> None:
    rng = np.random.default_rng(4)
    good = toy_slice(rng, 3).clusters
    wrong = np.concatenate([good, np.zeros(1, CLUSTER)])
    wrong["row"][-1] = N_ROWS
    events = [
        event_of({3: good}),
        event_of({3: wrong}),
        {**event_of({3: good}), tpc_source(4): b"1234567"},
        {**event_of({3: good}), tpc_source(35, 5, 7) + 1: good.tobytes()},
        {},
    ]
    found = run_chain(mep_of(events, 7))
    assert [event.flags for event in found] == [0, BAD_CLUSTER.mask, BAD_TPC_BANK.mask, BAD_TPC_BANK.mask, NO_TPC.mask]
    assert [event.number for event in found] == [7, 8, 9, 10, 11]
    assert [event.n_clusters for event in found] == [len(good), len(good) + 1, len(good), len(good), 0]
    assert len(found[0].tracks) == 3
    for event in found[1:4]:
        assert event.tracks.tobytes() == found[0].tracks.tobytes()
        assert event.clusters.tolist() == found[0].clusters.tolist()
    assert flags_of(event_of({3: good}), version=2) == BAD_TPC_BANK.mask
    assert flags_of(event_of({3: good}), kind=2) == BAD_TPC_BANK.mask


def test_a_row_with_too_many_clusters_is_empty() -> None:
    rng = np.random.default_rng(6)
    good = toy_slice(rng, 2).clusters
    (expected,) = run_chain(mep_of([event_of({0: good[good["row"] != 80]})]))
    for n, flags in ((65535, 0), (65536, ROW_TOO_FULL.mask)):
        full = np.zeros(n, CLUSTER)
        full["row"], full["y"], full["z"] = 80, np.arange(n) * 40 % 20_000 + 22_000, np.arange(n) % 60_000
        given = np.concatenate([full, good[good["row"] != 80]])
        columns = columns_of(mep_of([event_of({0: given}, 9)]))
        assert int(columns["events.flags"][0]) & ~CROWDED_CLUSTERS.mask == flags
        assert columns["tpc_slices.row_counts"][80] == (n if flags == 0 else 0)
    (found,) = events_of(columns, 1)
    assert found.tracks.tobytes() == expected.tracks.tobytes()


def test_crowded_windows_link_nothing() -> None:
    """Also bins with too many clusters of which none lies in the window."""
    for n, crowded in ((512, False), (513, True)):
        rows = np.repeat([10, 12, 14], [n, 1, 1])
        # The window of two rows of 0.75 cm ends 3 * 1.5 + 0.4 cm from its centre.
        y = GEOMETRY.row_x[rows] * 0.02 - np.repeat([4.902, 0.0, 0.0], [n, 1, 1])
        columns = columns_of(mep_of([event_of({1: clusters_at(rows, y, GEOMETRY.row_x[rows] * 0.3)})]))
        assert columns["events.flags"][0] == (CROWDED_CLUSTERS.mask if crowded else 0)
    for n, crowded in ((128, False), (129, True)):
        rows = np.repeat([10, 12, 14], n)
        spread = np.tile(np.arange(n) * 0.003, 3)
        clusters = clusters_at(rows, GEOMETRY.row_x[rows] * 0.02 + spread, GEOMETRY.row_x[rows] * 0.3)
        columns = columns_of(mep_of([event_of({1: clusters})]))
        assert (columns["events.flags"][0] == CROWDED_CLUSTERS.mask) == crowded
        assert (columns["tpc_clusters.up"][: 3 * n] != NONE).any() == (not crowded)


def test_tracks_beyond_the_places_of_a_slice_are_left_out_and_flagged() -> None:
    rows = np.tile(np.arange(12), 40)  # links join rows 2 to 8 and 3 to 9: two seeds of four clusters
    slope = np.repeat(0.2 + 0.06 * np.arange(40), 12)
    x = GEOMETRY.row_x[rows]
    clusters = clusters_at(rows, 0.01 * x, slope * x)
    (found,) = run_chain(mep_of([event_of({1: clusters})]))
    assert found.flags == TOO_MANY_SLICE_TRACKS.mask
    assert len(found.tracks) == 480 // 16 + 1
    assert (found.tracks["n_clusters"] == 12).all()
    (found,) = run_chain(mep_of([event_of({1: clusters[: 12 * 20]})]))
    assert found.flags == TOO_MANY_SLICE_TRACKS.mask
    (found,) = run_chain(mep_of([event_of({1: clusters[:12]})]))
    assert (found.flags, len(found.tracks)) == (0, 1)


def test_a_track_may_fill_the_places_of_clusters_of_its_slice() -> None:
    """A track of 159 clusters in a slice with 159 places, and with three less: both forms."""
    rows = np.arange(N_ROWS)
    columns = columns_of(mep_of([event_of({0: clusters_at(rows, *STRAIGHT)})]))
    limits = BatchLimits(events=1, input_bytes=1 << 16)
    for places, n_tracks in ((N_ROWS, 1), (N_ROWS - 3, 0)):
        end = 2 * (places // 3 - SPARE_PAIRS)
        given = {
            **columns,
            "tpc_slices.first_cluster": np.r_[0, np.full(N_SLICES, end)].astype(np.uint32),
            "tpc_slice_hits.cluster": np.full(4 * N_ROWS, 0xFFFFFFFF, np.uint32),
        }
        for common in (False, True):
            found = run_algorithms([select_tracks], given, 1, limits, on_cpu(kernels=CHAIN.kernels, common=common))
            assert found["tpc_slices.tracks"].sum() == n_tracks
            assert found["tpc_slices.track_clusters"].sum() == n_tracks * N_ROWS
            assert found["events.flags"][0] == (0 if n_tracks else TOO_MANY_SLICE_TRACKS.mask)
            written = found["tpc_slice_hits.cluster"][: 4 * N_ROWS]
            assert written[written != 0xFFFFFFFF].tolist() == rows.tolist() * n_tracks


def test_more_seeds_than_numbers_are_flagged() -> None:
    """Chains of four clusters in rows 0, 2, 4, 6 and 1, 3, 5, 7."""
    for n, flags in ((32767, 0), (32768, TOO_MANY_TRACKLETS.mask)):
        counts = np.zeros((N_SLICES, N_ROWS), np.uint16)
        counts[0, :8] = n
        numbers = np.arange(n, dtype=np.uint16)
        none = np.full(n, NONE, np.uint16)
        up = np.concatenate([*[numbers] * 6, none, none])
        down = np.concatenate([none, none, *[numbers] * 6])
        given = {
            "tpc_slices.row_counts": counts,
            "tpc_slices.first_cluster": np.r_[0, np.full(N_SLICES, 8 * n)],
            "tpc_clusters.up": up,
            "tpc_clusters.down": down,
            "tpc_clusters.next": up,
        }
        found = run_algorithms(
            [find_start_hits], given, 1, BatchLimits(events=1, input_bytes=64 * n), on_cpu(kernels=CHAIN.kernels)
        )
        assert found["events.flags"][0] == flags
        assert found["tpc_slices.start_hits"][0] == min(2 * n, 65535)
        expected = [row << 16 | i for row in (0, 1) for i in range(n)][: min(2 * n, 65535)]
        assert found["tpc_start_hits.cluster"][: len(expected)].tolist() == expected
