"""The CPU forms of the finder, the constructor and the selection give the results of the common kernels bit by bit."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.tpc.flags import CROWDED_CLUSTERS, TOO_MANY_SLICE_TRACKS
from hltnode.processing.alice.tpc.merging.fit.fit_merged_tracks import fit_merged_tracks
from hltnode.processing.alice.tpc.merging.segments.describe_segments import describe_segments
from hltnode.processing.alice.tpc.seeds.find_neighbours import find_neighbours
from hltnode.processing.alice.tpc.tracks.construct_tracklets import construct_tracklets
from hltnode.processing.alice.tpc.tracks.select_tracks import select_tracks
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.alice.tpc_banks import CLUSTER, N_ROWS, Y_OFFSET, Y_STEP
from tests.processing.alice.toy_events import GEOMETRY, clusters_at, event_of, mep_of, toy_slice
from tests.processing.chains.reference import Reference, run_reference
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms

f32 = np.float32
LIBRARY = KernelLibrary(CHAIN.kernels)
FORMS = (find_neighbours, construct_tracklets, select_tracks)
COLUMNS = (
    *("tpc_clusters.up", "tpc_clusters.down", "tpc_clusters.weights", "tpc_start_hits.owned", "tpc_slices.tracklets"),
    *("tpc_slices.tracks", "tpc_slices.track_clusters", "tpc_slice_tracks.track", "tpc_slice_hits.cluster"),
    "events.flags",
)


def in_all(**constants: float) -> str:
    """The configuration with constants of the constructor, in all algorithms that share them."""
    return "".join(
        f"[sequence.{algorithm.name}]\n"
        + "".join(f"{each.name} = {constants[each.name]!r}\n" for each in algorithm.constants if each.name in constants)
        for algorithm in (construct_tracklets, select_tracks, describe_segments, fit_merged_tracks)
    )


SETTINGS = {
    "defaults": "",
    # Many more candidates, then no search, no pair, infinite variances, negative ones.
    "wide": "[sequence.tpc_find_neighbours]\nmargin = 2.0\n" + in_all(max_missed_rows=60, max_chi2=1e9),
    "narrow": in_all(max_chi2=0.0, max_outlier_chi2=1.0, min_clusters=3),
    "steep": in_all(max_sin_phi=0.2, max_seed_chi2=1e9, max_missed_rows=0),
    "no pair": "[sequence.tpc_find_neighbours]\nmax_slope_change = 0.0",
    "not finite": in_all(radiation_length=0.0),
    # Clusters of `mirrored` lie on the edge of its window.
    "edge": f"[sequence.tpc_find_neighbours]\nslope_y = 0.0\nmargin = {float(f32(667) * f32(Y_STEP))!r}",
    "negative": in_all(y_constant=-4e-3, z_constant=-1.0),
}


def crowd(rng: np.random.Generator) -> NDArray[np.void]:
    """Tracks, a third of their clusters twice, and clusters that all lie in one place of a row."""
    tracks = toy_slice(rng, 40, 3000).clusters
    return np.concatenate([tracks, tracks[::3], clusters_at(np.full(300, 70), np.full(300, 1.0), np.full(300, 90.0))])


def straight(copies: int = 1) -> NDArray[np.void]:
    """A track through all rows, with copies of its cluster in one row."""
    rows = np.concatenate([np.arange(N_ROWS), np.full(copies - 1, 71)])
    return clusters_at(rows, 0.02 * GEOMETRY.row_x[rows], 0.3 * GEOMETRY.row_x[rows])


def mirrored(n_between: int) -> NDArray[np.void]:
    """A cluster with two pairs of neighbours of the same change, mirrored in y, and more below between these."""
    numbers = np.concatenate([[0], [-667, 667], [-667, 667], np.linspace(-600, 600, n_between).astype(int)])
    rows = np.concatenate([[20], [22, 22], [18, 18], np.full(n_between, 18)])
    clusters = clusters_at(rows, np.zeros(len(rows)), 0.5 * GEOMETRY.row_x[rows])
    clusters["y"] = Y_OFFSET + numbers
    return clusters


@cache
def events() -> Any:
    """More seeds than a form takes together, lone seeds, empty slices, few rows, and the ends of the scales."""
    rng = np.random.default_rng(12)
    ends = np.zeros(4 * N_ROWS, CLUSTER)
    ends["row"], ends["y"], ends["z"] = np.tile(np.arange(N_ROWS), 4), np.repeat([0, 0xFFFF, 0, 0xFFFF], N_ROWS), 0
    ends["z"][2 * N_ROWS :] = 0xFFFF
    few = toy_slice(rng, 30, 50).clusters
    slices = {
        **{0: toy_slice(rng, 120, 4000).clusters, 5: straight(), 9: crowd(rng), 17: ends, 30: few[few["row"] < 24]},
        # As many clusters as a search takes, and one more.
        **{12: straight(256), 13: straight(257)},
        **{14: mirrored(0), 15: mirrored(15)},
    }
    return mep_of([event_of(slices, 3), {}, event_of({35: toy_slice(rng, 25, 900, 0.2).clusters})])


@cache
def batch() -> Reference:
    """The chain with its forms, on the events."""
    return run_reference(CHAIN, events(), CHAIN.load_geometry(None), None, COLUMNS)


@cache
def found(settings: str, target: str, common: bool) -> dict[str, NDArray[Any]]:
    """Every column after the chain ran with some settings."""
    of = batch()
    algorithms = tuple(TriggerConfig.from_toml(SETTINGS[settings], CHAIN.menu).configure(of.sequence))
    launch = on_cpu(target, kernels=CHAIN.kernels, common=common)
    return run_algorithms(algorithms, of.given, of.n_events, of.limits, launch)


@pytest.mark.parametrize("settings", SETTINGS)
def test_both_forms_give_the_same_columns(settings: str) -> None:
    """Also in places that hold no object."""
    for target in LIBRARY.targets:
        form, common = found(settings, target, False), found(settings, target, True)
        for name in COLUMNS:
            assert form[name].tobytes() == common[name].tobytes(), (name, target)


def test_the_events_reach_the_bounds_of_the_forms() -> None:
    target = LIBRARY.targets[0]
    usual, narrow, wide, strange = (found(name, target, True) for name in ("defaults", "narrow", "wide", "not finite"))
    starts = usual["tpc_slices.start_hits"]
    # More seeds than a form takes together, and fewer than lanes.
    assert starts.max() > 256
    assert 0 < starts[5] < 8
    assert usual["events.flags"][0] & CROWDED_CLUSTERS.mask
    assert usual["tpc_slices.tracks"].sum() > 100
    assert narrow["events.flags"][0] & TOO_MANY_SLICE_TRACKS.mask
    assert (wide["tpc_clusters.up"] != usual["tpc_clusters.up"]).any()
    assert not strange["tpc_slices.tracklets"].any()
    row = slice(71, 71 + 256)
    taken = [usual["tpc_clusters.weights"][usual["tpc_slices.first_cluster"][i] :][row].any() for i in (12, 13)]
    assert taken == [True, False]
    for setting in (usual, found("edge", target, True)):
        for i, down in ((14, 1), (15, 16)):
            middle = setting["tpc_slices.first_cluster"][i] + down + 1
            assert [setting[f"tpc_clusters.{name}"][middle] for name in ("up", "down")] == [0, down]


def test_the_library_has_both_forms() -> None:
    for target in LIBRARY.targets:
        for each in FORMS:
            assert LIBRARY.address(target, each.kernel) != LIBRARY.address(target, each.kernel, common=True)
