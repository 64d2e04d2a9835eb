"""The CPU forms give the results of the common kernels bit by bit, for every instruction set; one kernel as two."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.mu3e.chain import CHAIN
from hltnode.processing.mu3e.hits.collections import MAX_HITS
from hltnode.processing.mu3e.hits.sort_hits import sort_hits
from hltnode.processing.mu3e.tracks.collections import MAX_TRACKS, MAX_TRIPLETS
from hltnode.processing.mu3e.tracks.extend_tracks import extend_tracks
from hltnode.processing.mu3e.tracks.fit_triplets import fit_triplets
from hltnode.processing.mu3e.tracks.select_triplets import select_triplets
from hltnode.processing.mu3e.vertices.collections import MAX_VERTICES, MAX_WINDOWS
from hltnode.processing.mu3e.vertices.find_vertices import find_vertices
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from tests.processing.chains.reference import run_reference
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.mu3e.chain_under_test import ONE_KERNEL, odd_mep
from tests.processing.mu3e.pixel_events import COLUMNS, NO_HITS, crowded, hits_of, mep_of_hits, run_chain, simulated

LIBRARY = KernelLibrary(CHAIN.kernels)
launch = partial(on_cpu, kernels=CHAIN.kernels)
SETTINGS = (
    "",
    "[sequence.mu3e_select_triplets]\nmax_xy01 = 9.0\nmax_z01 = 12.0\nmax_xy12 = 55.0\nmax_z12 = 60.0\n"
    "max_z_residual = 4.0\n[sequence.mu3e_fit_triplets]\nmax_chi2 = 3.0\nmin_momentum = 20.0\nmax_momentum = 45.0\n",
    "[sequence.mu3e_select_triplets]\nmax_xy01 = 90.0\nmax_z01 = 200.0\nmax_xy12 = 200.0\nmax_z12 = 400.0\n"
    "max_z_residual = 400.0\n",
)
"""The usual cuts, narrow ones, and cuts that give too many triplets in crowded sub-slices."""
VERTEX_SETTINGS = (
    "[sequence.mu3e_extend_tracks]\nmax_recurl_xy = 60.0\nmax_recurl_z = 80.0\nmax_chi2_recurl = 60.0\n"
    "[sequence.mu3e_find_vertices]\nmax_sum = 40.0\nenergy_window = 40.0\nmax_chi2 = 500.0\nmax_z_apart = 15.0\n"
    "max_radius = 60.0\nmax_path = 120.0\nmax_distance = 8.0\n",
    "[sequence.mu3e_extend_tracks]\nmax_recurl_xy = 5.0\nmax_recurl_z = 6.0\n"
    "[sequence.mu3e_find_vertices]\nmax_sum = 6.0\nenergy_window = 4.0\nmax_gap = 0.5\n",
)
"""Wide and narrow cuts on recurling hits and vertices."""
PLACED = (
    *((f"mu3e_hits.{name}", MAX_HITS, "mu3e_hits.count") for name in ("hit", "x", "y", "z")),
    ("mu3e_triplets.triplet", MAX_TRIPLETS, "mu3e_triplets.count"),
    ("mu3e_tracks.fitted", MAX_TRACKS, "mu3e_tracks.count"),
    ("mu3e_tracks.track", MAX_TRACKS, "mu3e_tracks.count"),
    ("mu3e_vertices.vertex", MAX_VERTICES, "mu3e_vertices.count"),
    ("mu3e_windows.window", MAX_WINDOWS, "mu3e_windows.count"),
)
COUNTS = (
    *("mu3e_hits.count", "mu3e_hits.own", "mu3e_hits.group_begin", "mu3e_triplets.count", "mu3e_triplets.own"),
    *("mu3e_tracks.count", "mu3e_tracks.own", "mu3e_vertices.count", "mu3e_windows.count", "events.flags"),
)


def compare(
    one: dict[str, NDArray[np.generic]], other: dict[str, NDArray[np.generic]], n: int, without: str = ""
) -> None:
    """All columns of n sub-slices are equal, as far as their objects go."""
    for name in COUNTS:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    for name, most, count in PLACED:
        if name != without:
            used = np.arange(most) < one[count][:n, None].astype(np.int64)
            of_one, of_other = (each[name].reshape(-1, most)[:n][used] for each in (one, other))
            np.testing.assert_array_equal(of_one, of_other, err_msg=name)


def test_both_forms_find_the_same_tracks_for_every_instruction_set() -> None:
    events = run_reference(CHAIN, odd_mep(31, 12), CHAIN.load_geometry(None), None, COLUMNS)
    too_many = 0
    for settings in SETTINGS:
        algorithms = tuple(TriggerConfig.from_toml(settings, CHAIN.menu).configure(events.sequence))
        of_targets = [
            run_algorithms(algorithms, events.given, events.n_events, events.limits, launch(target, common=common))
            for target in LIBRARY.targets
            for common in (False, True)
        ]
        common = of_targets[-1]
        too_many += int(((common["events.flags"] >> 24) & 1).sum())
        assert common["mu3e_tracks.count"].sum() > 40
        for form in of_targets[:-1]:
            compare(form, common, events.n_events)
    assert too_many > 0


def test_both_forms_extend_many_tracks_with_many_hits_near_each_alike() -> None:
    """More tracks than the form takes at a time, and more pairs than its list has room for."""
    made = hits_of(simulated(34, 5, muon_rate=2.5e8))
    events = run_reference(CHAIN, mep_of_hits(made), CHAIN.load_geometry(None), None, COLUMNS)
    wide = "[sequence.mu3e_extend_tracks]\n" + "\n".join(
        f"{name} = {value}"
        for name, value in (
            *(("max_xy23", 160.0), ("max_z23", 500.0), ("max_chi2_long", 1e6)),
            *(("max_recurl_xy", 160.0), ("max_recurl_z", 500.0), ("max_chi2_recurl", 1e6)),
        )
    )
    for settings in ("", wide):
        algorithms = tuple(TriggerConfig.from_toml(settings, CHAIN.menu).configure(events.sequence))
        common, *forms = [
            run_algorithms(algorithms, events.given, events.n_events, events.limits, launch(target, common=common))
            for target in LIBRARY.targets
            for common in (True, False)
        ]
        assert common["mu3e_tracks.count"].max() > 2 * 64
        for form in forms:
            compare(form, common, events.n_events)


@pytest.mark.parametrize("settings", VERTEX_SETTINGS, ids=["wide", "narrow"])
def test_both_forms_find_the_same_recurling_hits_and_vertices(settings: str) -> None:
    """Bounds that reject hits and tracks before fits are as wide as the cuts: nothing that passes is lost."""
    made = hits_of(simulated(5, 16, wanted="SIGNAL", spacing=1))
    events = run_reference(CHAIN, mep_of_hits([NO_HITS, *made, NO_HITS]), CHAIN.load_geometry(None), None, COLUMNS)
    algorithms = tuple(TriggerConfig.from_toml(settings, CHAIN.menu).configure(events.sequence))
    *forms, common = [
        run_algorithms(algorithms, events.given, events.n_events, events.limits, launch(target, common=False))
        for target in LIBRARY.targets
    ] + [run_algorithms(algorithms, events.given, events.n_events, events.limits, launch(common=True))]
    assert common["mu3e_vertices.count"].sum() > (100 if settings is VERTEX_SETTINGS[0] else 4)
    for form in forms:
        compare(form, common, events.n_events)


def test_both_forms_refuse_the_same_crowded_hits() -> None:
    mep = mep_of_hits([NO_HITS, crowded(0), NO_HITS, crowded(1), NO_HITS])
    events = run_reference(CHAIN, mep, CHAIN.load_geometry(None), None, COLUMNS)
    for target in LIBRARY.targets:
        for common in (False, True):
            found = run_algorithms(
                tuple(events.sequence), events.given, events.n_events, events.limits, launch(target, common=common)
            )
            assert (found["events.flags"] >> 24 & 1).tolist() == [0, 0, 0, 1, 0]


def test_the_library_has_both_forms() -> None:
    for target in LIBRARY.targets:
        for each in (sort_hits, select_triplets, fit_triplets, extend_tracks, find_vertices):
            assert LIBRARY.address(target, each.name) != LIBRARY.address(target, each.name, common=True)


def test_one_kernel_finds_the_tracks_of_two() -> None:
    mep = mep_of_hits(hits_of(simulated(33, 20, wanted="SIGNAL", spacing=2)))
    two, one = run_chain(mep), run_chain(mep, sequence=ONE_KERNEL)
    assert two.own_tracks.sum() > 500
    assert sum(map(len, two.vertices)) > 0
    for name in ("n_triplets", "own_triplets", "own_tracks", "words"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for name in ("fitted", "tracks", "vertices", "windows"):
        for of_one, of_two in zip(getattr(one, name), getattr(two, name), strict=True):
            np.testing.assert_array_equal(of_one, of_two, err_msg=name)
