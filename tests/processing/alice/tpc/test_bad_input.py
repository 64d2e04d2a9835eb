"""Clusters beyond their slice, at one place, and doubled or missing banks: flagged, counted, and within bounds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.tpc.collections import MAX_SLICE_CLUSTERS
from hltnode.processing.alice.tpc.flags import BAD_CLUSTER, BAD_TPC_BANK, CROWDED_CLUSTERS, NO_TPC, ROW_TOO_FULL
from hltnode.processing.framework.batch import MFP_ALIGNMENT
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.protocol.alice.tpc_banks import (
    CHAMBERS_OF_SLICE,
    CLUSTER,
    MAX_CLUSTERS_OF_BANK,
    N_ROWS,
    N_SLICES,
    PARTS_OF_CHAMBER,
    TPC_VERSION,
    TpcBankType,
    cluster_bank,
    tpc_source,
)
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.mfp import encode_mfp
from tests.processing.alice.toy_events import (
    GEOMETRY,
    Event,
    clusters_at,
    columns_of,
    event_of,
    events_of,
    mep_of,
    run_chain,
    toy_slice,
)

SOURCES = [tpc_source(7, chamber, part) for chamber in range(CHAMBERS_OF_SLICE) for part in range(PARTS_OF_CHAMBER)]


@pytest.fixture(scope="module")
def good() -> NDArray[np.void]:
    """Three tracks."""
    return toy_slice(np.random.default_rng(4), 3).clusters


@pytest.mark.parametrize("row", [0, 80, N_ROWS - 1])
def test_a_cluster_beyond_the_border_of_its_slice_is_flagged_and_not_used(good: NDArray[np.void], row: int) -> None:
    """The border is at 10 degrees from the middle of the slice; 2 cm beyond it, a cluster is still used."""
    reach = int((GEOMETRY.half_width[row] + 2.0) / 0.0015)
    events = []
    for y in (-reach - 1, -reach, reach, reach + 1):
        one = np.zeros(1, CLUSTER)
        one["row"], one["y"], one["z"] = row, 32768 + y, 40_000
        events.append(event_of({7: np.concatenate([good, one])}))
    columns = columns_of(mep_of([event_of({7: good}), *events]))
    alone, *found = events_of(columns, 5)
    bad = BAD_CLUSTER.mask
    assert [alone.flags, *(event.flags for event in found)] == [0, bad, 0, 0, bad]
    counts = columns["tpc_slices.row_counts"].reshape(5, N_SLICES, N_ROWS)[:, 7, row].astype(int)
    assert (counts[1:] - counts[0]).tolist() == [0, 1, 1, 0]
    for event in found:
        assert event.n_clusters == len(good) + 1
        assert event.tracks.tobytes() == alone.tracks.tobytes()


def test_every_drift_coordinate_of_the_scale_is_used(good: NDArray[np.void]) -> None:
    """Clusters of other collisions may lie beyond the electrode and the pads."""
    ends = np.zeros(2, CLUSTER)
    ends["row"], ends["y"], ends["z"] = 5, 32768, (0, 0xFFFF)
    columns = columns_of(mep_of([event_of({7: np.concatenate([good, ends])})]))
    assert columns["events.flags"][0] == 0
    n_rows = columns["tpc_slices.row_counts"].reshape(N_SLICES, N_ROWS)[7, 5]
    assert n_rows == (good["row"] == 5).sum() + 2


@pytest.mark.parametrize("n", [1, 128, 129, 400])
def test_clusters_that_all_lie_at_one_place_of_each_row_give_at_most_one_track(n: int) -> None:
    rows = np.repeat(np.arange(N_ROWS), n)
    x = GEOMETRY.row_x[rows]
    columns = columns_of(mep_of([event_of({7: clusters_at(rows, 0.02 * x, 0.3 * x)}, 8)]))
    (found,) = events_of(columns, 1)
    assert found.flags == (0 if n <= 128 else CROWDED_CLUSTERS.mask)
    assert found.tracks["n_clusters"].tolist() == ([N_ROWS] if n <= 128 else [])
    assert found.n_clusters == n * N_ROWS


@pytest.mark.parametrize(("n", "flags"), [(65_535, CROWDED_CLUSTERS.mask), (65_536, ROW_TOO_FULL.mask)])
def test_one_place_with_all_clusters_of_three_rows_links_nothing(n: int, flags: int) -> None:
    clusters = np.zeros(3 * n, CLUSTER)
    clusters["row"], clusters["y"], clusters["z"] = np.repeat([78, 80, 82], n), 32768, 20_000
    (found,) = run_chain(mep_of([event_of({7: clusters}, 25)]))
    assert (found.flags, len(found.tracks), found.n_clusters) == (flags, 0, 3 * n)


def test_empty_banks_are_no_fault_and_a_missing_event_is_one(good: NDArray[np.void]) -> None:
    empty: Event = {tpc_source(number): b"" for number in range(N_SLICES)}
    found = run_chain(mep_of([empty, {**empty, **event_of({7: good})}, event_of({7: good}), {}]))
    assert [event.flags for event in found] == [0, 0, 0, NO_TPC.mask]
    assert [event.n_clusters for event in found] == [0, len(good), len(good), 0]
    assert found[1].tracks.tobytes() == found[2].tracks.tobytes()
    assert len(found[1].tracks) == 3


def test_a_missing_part_costs_the_clusters_of_its_rows(good: NDArray[np.void]) -> None:
    of_part = {source: good[good["row"] // 20 == i] for i, source in enumerate(SOURCES[:8])}
    whole = {source: clusters.tobytes() for source, clusters in of_part.items()}
    without = {source: payload for source, payload in whole.items() if source != SOURCES[3]}
    left_out = {**whole, SOURCES[3]: None}
    found = run_chain(mep_of([whole, without, left_out]))
    assert [event.flags for event in found] == [0, 0, 0]
    kept = len(good) - len(of_part[SOURCES[3]])
    assert [event.n_clusters for event in found] == [len(good), kept, kept]
    (expected,) = run_chain(mep_of([event_of({7: good[good["row"] // 20 != 3]})]))
    for event in found[1:]:
        assert event.tracks.tobytes() == expected.tracks.tobytes()


def test_a_part_that_comes_twice_in_an_event_costs_itself_alone(good: NDArray[np.void]) -> None:
    other = toy_slice(np.random.default_rng(9), 2).clusters
    twice, once = (cluster_bank(tpc_source(number), each) for number, each in ((7, good), (9, other)))
    (found,) = run_chain(encode_mep(CHAIN, [[twice, twice, once]]))
    (expected,) = run_chain(mep_of([event_of({9: other})]))
    assert found.flags == BAD_TPC_BANK.mask
    assert found.n_clusters == len(other)
    assert found.tracks.tobytes() == expected.tracks.tobytes()


@pytest.mark.parametrize("too_many", [False, True])
def test_a_slice_takes_no_more_clusters_than_all_its_sources_can_send(too_many: bool) -> None:
    """All 48 banks are full; the last source has a second MFP with the clusters that are left, or with one more."""
    rng = np.random.default_rng(1)
    left = MAX_SLICE_CLUSTERS - len(SOURCES) * MAX_CLUSTERS_OF_BANK
    data, places = bytearray(), []
    for source, n in [*((source, MAX_CLUSTERS_OF_BANK) for source in SOURCES), (SOURCES[-1], left + too_many)]:
        rows = rng.integers(0, N_ROWS, n)
        y = rng.uniform(-1.0, 1.0, n) * GEOMETRY.half_width[rows]
        payload = clusters_at(rows, y, rng.uniform(0.0, 249.0, n)).tobytes()
        mfp = encode_mfp(
            source_id=source,
            event_id=0,
            version=TPC_VERSION,
            types=[TpcBankType.CLUSTERS],
            fragments=[payload],
            align=2,
        )
        places.append((source, len(data), len(mfp)))
        data += mfp + bytes(-len(mfp) % MFP_ALIGNMENT)
    mep = EncodedMep(EventTable.of_events([[]]), np.frombuffer(bytes(data), np.uint8), tuple(places))
    (found,) = run_chain(mep)
    assert found.flags & BAD_TPC_BANK.mask == (BAD_TPC_BANK.mask if too_many else 0)
    assert found.n_clusters == MAX_SLICE_CLUSTERS - (left if too_many else 0)
