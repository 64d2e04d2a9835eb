"""Every schedule of the tracklet constructor has the same result, bit by bit; row blocks leave no step to their end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN, SEQUENCES
from hltnode.processing.alice.tpc.collections import CLUSTERS_PER_PARKED, ROW_BLOCK, ROW_BLOCKS
from hltnode.processing.alice.tpc.flags import CROWDED_CLUSTERS
from hltnode.processing.alice.tpc.schedules.construct_canonical import construct_canonical
from hltnode.processing.alice.tpc.schedules.construct_from_pool import construct_from_pool
from hltnode.processing.alice.tpc.schedules.row_blocks import ROW_BLOCK_ALGORITHMS
from hltnode.processing.alice.tpc.tracks.construct_tracklets import construct_tracklets
from hltnode.processing.framework.declaration import Algorithm
from hltnode.processing.framework.limits import BatchLimits
from hltnode.protocol.alice.tpc_banks import N_ROWS, N_SLICES
from tests.processing.alice.toy_events import (
    COLUMNS,
    GEOMETRY,
    clusters_at,
    columns_of,
    event_of,
    mep_of,
    mixed_events,
    toy_slice,
)
from tests.processing.chains.reference import run_reference
from tests.processing.framework.kernel_runner import (
    Allocate,
    Launch,
    host_memory,
    on_cpu,
    run_algorithms,
    with_block_size,
)
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import machine_of, module_of

SCHEDULES = {
    "canonical": (construct_canonical,),
    "pool": (construct_from_pool,),
    "row_blocks": ROW_BLOCK_ALGORITHMS,
}
RESULTS = ("tpc_clusters.weights", "tpc_start_hits.owned", "tpc_slices.tracklets")
UP, DOWN, FOUND, NONE = 1, 3, 4, 5
"""tracklet_stage in tracklet.cuh."""
STRAIGHT = 0.02 * GEOMETRY.row_x, 0.3 * GEOMETRY.row_x
"""y and z of a track that crosses all rows."""


@cache
def before() -> dict[str, NDArray[Any]]:
    """Columns of the fixed schedule: tracks and noise; more short seeds than places for parked tracklets; a track
    through a window that has too many clusters."""
    rng = np.random.default_rng(12)
    short = toy_slice(rng, 12).clusters
    crowd = clusters_at(*(np.repeat(place, 300) for place in (60, *(each[60] for each in STRAIGHT))))
    return columns_of(
        mep_of(
            [
                event_of({3: toy_slice(rng, 6, 250).clusters, 21: short[short["row"] < 16]}),
                event_of({4: np.concatenate([clusters_at(np.arange(N_ROWS), *STRAIGHT), crowd])}),
            ]
        )
    )


def run(algorithms: Sequence[Algorithm], launch: Launch, allocate: Allocate = host_memory) -> dict[str, NDArray[Any]]:
    """All columns of a constructor; before, those of its results have other values."""
    given = {name: content.copy() for name, content in before().items()}
    for name in RESULTS[:3]:
        given[name][:] = 77
    given["events.flags"] &= ~np.uint32(CROWDED_CLUSTERS.mask)
    limits = BatchLimits(events=2, input_bytes=8 * len(before()["tpc_clusters.weights"]))
    return run_algorithms(algorithms, given, 2, limits, launch, allocate=allocate)


def used_results(columns: dict[str, NDArray[Any]]) -> dict[str, list[int]]:
    """The results of each slice, and the flags of the events."""
    expected = before()
    found = {"flags": columns["events.flags"][:2].tolist(), "tracklets": columns[RESULTS[2]][: 2 * N_SLICES].tolist()}
    for part, first in enumerate(expected["tpc_slices.first_cluster"][: 2 * N_SLICES].astype(int)):
        n_clusters = int(expected["tpc_slices.row_counts"].reshape(-1, N_ROWS)[part].sum())
        n_starts = int(expected["tpc_slices.start_hits"][part])
        found[f"weights of {part}"] = columns[RESULTS[0]][first : first + n_clusters].tolist()
        found[f"owned of {part}"] = columns[RESULTS[1]][first // 4 : first // 4 + n_starts].tolist()
    return found


def parked(columns: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
    """[tracklet][2]: stage and row of the parked tracklets of all slices."""
    found = []
    starts = before()["tpc_slices.first_cluster"].astype(int)
    for part in range(2 * N_SLICES):
        first, end = (starts[p] // CLUSTERS_PER_PARKED + p for p in (part, part + 1))
        n = min(end - first, int(before()["tpc_slices.start_hits"][part]))
        found.append(columns["tpc_parked.at"][first : first + n].astype(np.int64))
    words = np.concatenate(found)
    return np.stack([words >> 8, words & 0xFF], axis=1)


def test_the_events_have_what_the_schedules_must_treat() -> None:
    columns = before()
    starts, clusters = (columns[name].astype(int) for name in ("tpc_slices.start_hits", "tpc_slices.first_cluster"))
    places = np.diff(clusters // CLUSTERS_PER_PARKED) + 1
    assert starts[3] > 12
    assert starts[21] > places[21]
    assert columns["tpc_slices.tracklets"][[3, 21, N_SLICES + 4]].min() > 0
    assert columns["events.flags"].tolist() == [0, CROWDED_CLUSTERS.mask]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_each_schedule_has_the_result_of_the_fixed_one(schedule: str) -> None:
    expected = used_results(before())
    launches = {"cpu": on_cpu(kernels=CHAIN.kernels)} | {
        f"{size} threads, {order}": with_block_size(size, backward=order == "backward", kernels=CHAIN.kernels)
        for size, order in ((32, "forward"), (256, "backward"))
    }
    for way, launch in launches.items():
        found = used_results(run(SCHEDULES[schedule], launch))
        assert [name for name in expected if expected[name] != found[name]] == [], way


@pytest.mark.parametrize(("block_size", "backward"), [(1, False), (32, True), (256, False), (256, True)])
def test_each_schedule_by_ptx_has_the_result_and_no_conflict(block_size: int, backward: bool) -> None:
    expected = used_results(before())
    for schedule, algorithms in {"fixed": (construct_tracklets,), **SCHEDULES}.items():
        machine = machine_of(module_of("90", CHAIN.kernels), backward=backward)
        launcher = PtxLauncher(machine, block_size)
        found = used_results(run(algorithms, launcher, machine.allocate))
        assert [name for name in expected if expected[name] != found[name]] == [], schedule
        assert [conflict.text for conflict in launcher.conflicts if not conflict.equal] == [], schedule


def test_each_launch_of_row_blocks_does_the_steps_of_its_rows() -> None:
    launch = on_cpu(kernels=CHAIN.kernels)
    for number in range(2 * ROW_BLOCKS + 1):
        stage, row = parked(run(ROW_BLOCK_ALGORITHMS[: 2 + number], launch)).T
        if number < ROW_BLOCKS:
            going = stage <= UP
            assert row[going].min(initial=1000) >= (number + 1) * ROW_BLOCK
            assert not (stage == DOWN).any()
        elif number == ROW_BLOCKS:
            assert set(stage.tolist()) <= {DOWN, FOUND, NONE}
            assert (stage == DOWN).sum() > 20
        else:
            done = number - ROW_BLOCKS
            assert row[stage == DOWN].max(initial=-1) < (ROW_BLOCKS - done) * ROW_BLOCK
    assert not (stage == DOWN).any()
    assert (stage == FOUND).sum() > 20


def test_steps_that_a_wrong_row_block_leaves_are_done_in_the_last_launch() -> None:
    wrong = tuple(
        each.with_constants({"row_block": 2}) if "row_block" in {c.name for c in each.constants} else each
        for each in ROW_BLOCK_ALGORITHMS
    )
    launch = on_cpu(kernels=CHAIN.kernels)
    assert (parked(run(wrong[:-1], launch))[:, 0] < FOUND).any()
    assert used_results(run(wrong, launch)) == used_results(before())


def test_whole_sequences_have_equal_tracks() -> None:
    mep = mep_of(mixed_events(4))
    geometry = CHAIN.load_geometry(None)
    fixed, *others = (run_reference(CHAIN, mep, geometry, name, COLUMNS) for name in SEQUENCES)
    assert fixed.found("tpc_tracks.count") > 5
    for other in others:
        assert fixed.differing(other.made) == []
