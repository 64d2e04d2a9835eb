"""The benchmark of the chain `alice_tpc`: its JSON, its exponent, and the windows in which scipy searches."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.detectors import alice_tpc
from benchmarks.measure import Result
from hltnode.protocol.alice.tpc_banks import CLUSTER, N_ROWS, TPC_SUBDETECTOR, cluster_bank
from hltnode.protocol.raw_data.source_id import source_id
from tests.processing.alice.toy_events import GEOMETRY, clusters_at


def test_the_json_has_the_main_figures() -> None:
    rows = [
        Result("10,000 clusters", 0.7, "us/cluster", "", None),
        Result("central event", 0.55, "us/cluster", "target of a cluster", 0.9, 0.5),
        Result("exponent", 0.98, "", "target", 1.12, 1.0),
        Result("two threads", 0.8, "events/s", "one thread", 1.9, 1.8),
        *(Result(f"form of {name}", 3.0, "", "common kernel", 3.0 + i, 2.0) for i, name in enumerate(alice_tpc.FORMS)),
        Result("neighbours", 190.0, "ns/cluster", "cKDTree.query_ball_point", 40.0, 20.0),
    ]
    assert alice_tpc.summary(rows) == {
        "neighbours_ratio": 40.0,
        "threads_ratio": 1.9,
        "us_per_cluster": 0.55,
        "exponent": 0.98,
        "forms": {
            **{"tpc_find_neighbours": 3.0, "tpc_construct_tracklets": 4.0, "tpc_select_tracks": 5.0},
            **{"tpc_describe_segments": 6.0, "tpc_fit_merged_tracks": 7.0, "tpc_count_v0s": 8.0},
        },
    }


def test_the_exponent_is_the_power_of_the_size() -> None:
    sizes = [1e4, 1e5, 1e6]
    assert alice_tpc.exponent(sizes, [3.0 * n**1.07 for n in sizes]) == pytest.approx(1.07)


def test_windows_lie_on_the_line_from_the_origin_and_have_the_widths_of_the_finder() -> None:
    ratio, half = alice_tpc.windows(10, 12)
    assert ratio == pytest.approx(GEOMETRY.row_x[12] / GEOMETRY.row_x[10])
    assert half == pytest.approx([3.0 * 1.5 + 0.4, 3.2 * 1.5 + 0.4])
    assert alice_tpc.windows(12, 10)[1] == pytest.approx(half)


def test_rows_have_the_places_of_their_clusters() -> None:
    clusters = clusters_at(np.array([4, 0, 4]), np.array([1.5, -3.0, 0.0]), np.array([9.0, 12.0, 6.0]))
    rows = alice_tpc.rows_of(clusters)
    assert [len(row) for row in rows] == [1, 0, 0, 0, 2, *[0] * (N_ROWS - 5)]
    np.testing.assert_allclose(rows[4], [[1.5, 9.0], [0.0, 6.0]], atol=1e-9)
    assert alice_tpc.seconds_of_scipy(alice_tpc.rows_of(np.zeros(0, CLUSTER))) >= 0.0


def test_batches_have_all_events_once() -> None:
    events = [
        [cluster_bank(source_id(TPC_SUBDETECTOR, 0), clusters_at(np.arange(n), np.zeros(n), np.full(n, 9.0)))]
        for n in range(1, 6)
    ]
    for size, sizes in ((1, [1] * 5), (2, [2, 2, 1]), (8, [5])):
        meps = alice_tpc.batches_of(events, size)
        assert [mep.n_events for mep in meps] == sizes
    rows = list(alice_tpc._over_batches(events))
    assert [row.name for row in rows[:2]] == ["pp, 1 event a batch", "pp, 2 events a batch"]
    assert rows[0].ratio == 1.0
    assert all(row.value > 0.0 for row in rows)
