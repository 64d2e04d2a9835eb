"""With impossible and very dense input, both forms of the forward search give the same valid tracks, and end."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT
from hltnode.processing.lhcb.tracks.long.parameters import long_track_parameters, record_of
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.lhcb.tracks.long.forward_chain import FORWARD_ALGORITHMS, forward_chain

NO_HIT = 0xFFFF
N_EVENTS = 3
LIMITS = BatchLimits(events=N_EVENTS, meps=1, input_bytes=3 << 20, rows=8)
STRANGE = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0, 1e-30], np.float32)
Columns = dict[str, NDArray[Any]]


@cache
def parameters() -> NDArray[np.uint8]:
    return np.frombuffer(record_of(LongTrackParameters.builtin(), SciFiGeometry.builtin()), np.uint8)


def columns(rng: np.random.Generator, n_scifi: int, n_velo: int, n_ut: int, strange: float) -> Columns:
    """Input of the search for N_EVENTS events of equal size, with this fraction of impossible values."""

    def numbers(n: int, low: float, high: float) -> NDArray[np.float32]:
        values = rng.uniform(low, high, n).astype(np.float32)
        return np.where(rng.random(n) < strange, rng.choice(STRANGE, n), values)

    zone_of = np.sort(rng.integers(0, 24, (N_EVENTS, n_scifi)), axis=1)
    x = np.sort(rng.normal(0, 900, (N_EVENTS, n_scifi)).astype(np.float32) + zone_of * np.float32(1e5), axis=1)
    x = (x - zone_of * np.float32(1e5)).ravel()
    x = np.where(rng.random(x.size) < strange, rng.choice(STRANGE, x.size), x)
    zones = np.stack([np.searchsorted(row, np.arange(32)) for row in zone_of])
    n_hits = 4 * n_ut
    ut_tracks = np.zeros((N_EVENTS, MAX_TRACKS_PER_EVENT), np.uint16)
    for row in ut_tracks:
        row[:n_ut] = np.sort(rng.choice(n_velo, n_ut, replace=False))
    ut_hits = rng.integers(0, max(n_hits, 1), (N_EVENTS, MAX_TRACKS_PER_EVENT, 4))
    ut_hits[rng.random(ut_hits.shape) < 0.1] = NO_HIT
    ends = np.arange(N_EVENTS + 1)
    total = N_EVENTS * n_velo
    return {
        long_track_parameters.name: parameters(),
        "scifi_hits.offset": ends * n_scifi,
        "scifi_hits.count": np.full(N_EVENTS, n_scifi),
        "scifi_hits.zone_offset": zones,
        "scifi_hits.x": x,
        "scifi_hits.z": numbers(N_EVENTS * n_scifi, 7800, 9400),
        "ut_hits.offset": ends * n_hits,
        "ut_hits.x": numbers(N_EVENTS * n_hits, -700, 700),
        "ut_hits.z": numbers(N_EVENTS * n_hits, 2300, 2650),
        "ut_hits.weight": numbers(N_EVENTS * n_hits, 300, 1300),
        "velo_clusters.offset": 2 * ends * n_velo,
        "velo_tracks.count": np.full(N_EVENTS, n_velo),
        "velo_tracks.backward": (rng.random(total) < 0.2).astype(np.uint8),
        "velo_end.x": numbers(total, -40, 40),
        "velo_end.y": numbers(total, -40, 40),
        "velo_end.tx": numbers(total, -0.2, 0.2),
        "velo_end.ty": numbers(total, -0.2, 0.2),
        "ut_tracks.count": np.full(N_EVENTS, n_ut),
        "ut_tracks.velo_track": ut_tracks,
        "ut_tracks.qop": numbers(N_EVENTS * MAX_TRACKS_PER_EVENT, -5e-4, 5e-4),
        "ut_tracks.hits": ut_hits,
    }


def search(given_columns: Columns, *, common: bool = False) -> Columns:
    launch = on_cpu(kernels=forward_chain().kernels, common=common)
    return run_algorithms(FORWARD_ALGORITHMS, given_columns, N_EVENTS, LIMITS, launch, fill=0xA5)


def assert_tracks_are_possible(made: Columns, n_scifi: int, n_velo: int) -> None:
    for event, n in enumerate(made["long_tracks.count"][:N_EVENTS].tolist()):
        assert n <= min(n_velo, MAX_TRACKS_PER_EVENT)
        first = event * MAX_TRACKS_PER_EVENT
        hits = made["long_tracks.hits"].reshape(-1, 12)[first : first + n]
        assert ((hits < n_scifi) | (hits == NO_HIT)).all()
        assert ((hits != NO_HIT).sum(axis=1) == made["long_tracks.hit_count"][first : first + n]).all()
        velo_tracks = made["long_tracks.velo_track"][first : first + n].astype(int)
        assert (np.diff(velo_tracks) > 0).all()
        assert (velo_tracks < n_velo).all()
        assert np.isfinite(made["long_tracks.quality"][first : first + n]).all()


def assert_same_tracks(form: Columns, common: Columns) -> None:
    n_tracks = form["long_tracks.count"][:N_EVENTS]
    assert n_tracks.tolist() == common["long_tracks.count"][:N_EVENTS].tolist()
    is_track = (np.arange(MAX_TRACKS_PER_EVENT) < n_tracks[:, None]).ravel()
    for column in FORWARD_ALGORITHMS[-1].writes:
        if column.name != "long_tracks.count":
            one, other = (it[column.name].reshape(-1, column.width)[: is_track.size] for it in (form, common))
            assert one[is_track].tobytes() == other[is_track].tobytes(), column.name


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 7, 300, 3000]), st.sampled_from([1, 60, 300]))
def test_impossible_numbers_lead_nowhere(seed: int, n_scifi: int, n_velo: int) -> None:
    rng = np.random.default_rng(seed)
    content = columns(rng, n_scifi, n_velo, int(rng.integers(0, n_velo + 1)), strange=rng.random() ** 2)
    made = search(content)
    assert_tracks_are_possible(made, n_scifi, n_velo)
    assert_same_tracks(made, search(content, common=True))


def test_more_velo_tracks_than_long_tracks_flag_the_event() -> None:
    n_velo = MAX_TRACKS_PER_EVENT + 200
    content = columns(np.random.default_rng(1), 200, n_velo, 0, strange=0.0)
    content["events.flags"] = np.zeros(N_EVENTS, np.uint32)
    made = search(content)
    assert (made["events.flags"][:N_EVENTS] & int(EventFlag.OVERFLOW)).all()
    assert_tracks_are_possible(made, 200, n_velo)


@pytest.mark.parametrize("common", [False, True], ids=["", "common"])
@pytest.mark.parametrize("with_ut", [True, False], ids=["with_ut", "without_ut"])
@pytest.mark.parametrize("n_velo", [MAX_TRACKS_PER_EVENT, MAX_TRACKS_PER_EVENT + 1])
def test_a_velo_track_without_a_place_for_its_continuation_flags_the_event(
    n_velo: int, with_ut: bool, common: bool
) -> None:
    content = columns(np.random.default_rng(1), 200, n_velo, int(with_ut), strange=0.0)
    content["events.flags"] = np.zeros(N_EVENTS, np.uint32)
    content["ut_tracks.velo_track"][:, 0] = n_velo - 1
    skipped = "forward_search_without_ut" if with_ut else "forward_search_with_ut"
    algorithms = [algorithm for algorithm in FORWARD_ALGORITHMS if algorithm.name != skipped]
    made = run_algorithms(algorithms, content, N_EVENTS, LIMITS, on_cpu(kernels=forward_chain().kernels, common=common))
    expected = EventFlag.OVERFLOW if n_velo > MAX_TRACKS_PER_EVENT else 0
    assert made["events.flags"][:N_EVENTS].tolist() == [expected] * N_EVENTS


def test_events_ten_times_as_dense_as_real_ones_take_a_bounded_time() -> None:
    rng = np.random.default_rng(2)
    content = columns(rng, 65_000, 1000, 800, strange=0.0)
    begin = time.process_time()
    made = search(content)
    # Two searches of 12,000 candidates each in each of three events, at 10 us per candidate; the machine may be busy.
    assert time.process_time() - begin < 2.0
    assert_tracks_are_possible(made, 65_000, 1000)
