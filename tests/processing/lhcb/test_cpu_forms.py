"""CPU forms of kernels after the VELO give the results of the common kernels, bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.scifi.collections import HIT_PADDING, N_ZONES, ZONE_STRIDE
from hltnode.processing.lhcb.tracks.downstream.search_ut import search_ut as search_downstream
from hltnode.processing.lhcb.tracks.downstream.select_tracks import select_tracks as select_downstream
from hltnode.processing.lhcb.tracks.long.collections import NO_BID, candidate_columns
from hltnode.processing.lhcb.ut.search_tracks import search_tracks
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.chains.reference import Reference
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.lhcb.damage import DAMAGE
from tests.processing.lhcb.dense_events import (
    DENSE,
    dense_crossing,
    forward_tracks_and_noise_in_the_ut,
    noise_everywhere,
)
from tests.processing.lhcb.full_events import full_events
from tests.processing.lhcb.whole_chain import reference_of

LIBRARY = KernelLibrary(CHAIN.kernels)
PADDING = 2 * HIT_PADDING
"""Places behind the SciFi hits of an event."""
FORMS = {
    "downstream_search_ut",
    "downstream_select_tracks",
    "ecal_decode_cells",
    "ecal_find_clusters",
    "ecal_find_electrons",
    "ecal_identify_electrons",
    "ecal_pair_photons",
    "forward_prepare_candidates",
    "forward_search_with_ut",
    "forward_search_without_ut",
    "kalman_full_fit",
    "kalman_ghost_probability",
    "kalman_smooth_velo",
    "kalman_velo_fit",
    "luminosity_fill_counters",
    "muon_cross_strips",
    "muon_measure_tracks",
    "scifi_decode_clusters",
    "ut_search_tracks",
}


def encoded(events: Sequence[Sequence[RawBank]], sequence: str) -> EncodedMep:
    return encode_mep(CHAIN.with_sequence(sequence), [list(banks) for banks in events])


@cache
def simulated_reference(sequence: str) -> Reference:
    """Three simulated events."""
    return reference_of(encoded(full_events(3, 5), sequence), None, sequence)


def assert_forms_agree(reference: Reference, target: str | None = None) -> None:
    """Check that common kernels and forms of another instruction set give the results of the back end."""
    assert reference.differences(on_cpu(target, common=True)) == []
    if target not in (None, LIBRARY.targets[0]):
        assert reference.differences(on_cpu(target)) == []


def test_these_kernels_have_two_forms() -> None:
    forms = {
        name: {algorithm.name for algorithm in CHAIN.with_sequence(name).sequence if algorithm.cpu_form is not None}
        for name in CHAIN.sequences
    }
    # tests/processing/lhcb/velo and primary_vertices compare the others.
    of_velo = set().union(*(forms[name] for name in ("velo", "velo_simd", "velo_sparse_ccl", "velo_halves")))
    assert set().union(*forms.values()) - of_velo == FORMS
    for target in LIBRARY.targets:
        for name in FORMS:
            assert LIBRARY.address(target, name) != LIBRARY.address(target, name, common=True)


@pytest.mark.parametrize(
    ("target", "sequence"), [*((target, "forward") for target in LIBRARY.targets), (LIBRARY.targets[0], "no_ut")]
)
def test_real_events(shared: Path, target: str, sequence: str) -> None:
    [file] = (shared / "data" / "lhcb-minbias-mdf").glob("*_retina3_*.mdf")
    events = [list(banks) for banks in read_events(file)]
    reference = reference_of(encoded(events, sequence), shared / "data" / "lhcb-geometry", sequence)
    assert_forms_agree(reference, target)


@pytest.mark.parametrize("target", LIBRARY.targets)
def test_real_events_of_the_largest_sequence(shared: Path, target: str) -> None:
    [file] = (shared / "data" / "lhcb-minbias-mdf").glob("*_retina3_*.mdf")
    events = [list(banks) for banks in read_events(file)]
    reference = reference_of(encoded(events, "hlt1_2026"), shared / "data" / "lhcb-geometry", "hlt1_2026")
    assert_forms_agree(reference, target)


@pytest.mark.parametrize("target", LIBRARY.targets)
@pytest.mark.parametrize("sequence", ["forward", "hlt1_2026"])
def test_simulated_events(target: str, sequence: str) -> None:
    assert_forms_agree(simulated_reference(sequence), target)


@pytest.mark.parametrize("target", LIBRARY.targets)
def test_dense_events_of_the_largest_sequence(target: str) -> None:
    assert_forms_agree(dense_downstream_reference(), target)


def test_dense_events() -> None:
    events = [dense_crossing(20.0), noise_everywhere()]
    assert_forms_agree(reference_of(encoded(events, "forward"), None, "forward"))


def test_tracks_with_more_pairs_of_ut_hits_than_a_list_holds() -> None:
    """Some tracks have this many pairs only in the second attempt."""
    events = [forward_tracks_and_noise_in_the_ut(250, seed) for seed in range(4)]
    assert_forms_agree(reference_of(encoded(events, "forward"), None, "forward"))


def test_more_pairs_of_ut_hits_than_a_list_holds_if_the_share_allows_them() -> None:
    """The list of a track holds 256 pairs; 24 hits in each window make more."""
    reference = reference_of(encoded([forward_tracks_and_noise_in_the_ut()], "forward"), None, "forward")
    types = {column.name: column.dtype for column in reference.sequence.columns}
    given = reference.given | {name: np.frombuffer(it, types[name]) for name, it in reference.made.items()}
    given["events.flags"] = np.zeros(1, np.uint32)
    n_tracks = int(given["velo_tracks.count"][0])

    def found(share: int, *, common: bool) -> dict[str, NDArray[Any]]:
        search = search_tracks.with_constants({"max_pairs": share * n_tracks})
        return run_algorithms((search,), given, 1, reference.limits, on_cpu(common=common))

    assert found(256, common=True)["events.flags"][0] == EventFlag.OVERFLOW
    form, common = found(1000, common=False), found(1000, common=True)
    assert common["events.flags"][0] == 0
    for column in (*search_tracks.writes, *search_tracks.updates):
        assert form[column.name].tobytes() == common[column.name].tobytes(), column.name


@pytest.mark.parametrize("seed", range(3))
def test_damaged_events(seed: int) -> None:
    mep = encoded(full_events(3, 11), "hlt1_2026")
    damaged = DAMAGE.damaged(mep, np.random.default_rng(seed))
    assert_forms_agree(reference_of(damaged, None, "hlt1_2026"))


def disordered(values: NDArray[np.float32], part: float, seed: int) -> NDArray[np.float32]:
    """Move this fraction of the values; a tenth of the moved values are NaN."""
    rng = np.random.default_rng(seed)
    x = values.copy()
    moved = rng.random(x.size) < part
    x[moved] = np.where(rng.random(moved.sum()) < 0.1, np.float32(np.nan), rng.permutation(x[moved]))
    return x


@pytest.mark.parametrize("target", LIBRARY.targets)
@pytest.mark.parametrize("disorder", [0.0, 0.001, 1.0])
def test_cells_of_scifi_hits_that_do_not_ascend(target: str, disorder: float) -> None:
    reference = simulated_reference("forward")
    columns = {column.name: column for column in reference.sequence.columns}
    prepare = next(it for it in reference.sequence if it.name == "forward_prepare_candidates")
    given = {
        column.name: np.frombuffer(reference.made[column.name], columns[column.name].dtype)
        for column in prepare.columns
        if column.name in reference.made and column not in prepare.writes
    }
    given["scifi_hits.x"] = disordered(given["scifi_hits.x"], disorder, seed=4)
    form, common = (
        run_algorithms((prepare,), given, reference.n_events, reference.limits, on_cpu(target, common=it))
        for it in (False, True)
    )
    assert common["scifi_hits.cells"].any()
    for column in prepare.writes:
        assert form[column.name].tobytes() == common[column.name].tobytes(), column.name


def with_copies_of_stereo_hits(columns: dict[str, NDArray[Any]], n_events: int) -> dict[str, NDArray[Any]]:
    """The columns of the SciFi hits with two more hits close to each hit of the stereo layers, one on either side."""
    offset, copied = columns["scifi_hits.offset"], dict(columns)
    zone_offset = columns["scifi_hits.zone_offset"].reshape(n_events, -1)
    times = np.where(np.arange(N_ZONES) // 2 % 4 % 3 == 0, 1, 3)
    hits: dict[str, list[NDArray[np.float32]]] = {"x": [], "z": []}
    zones, counts = [], []
    for first, zone in zip(offset, zone_offset, strict=False):
        n_of_zone = np.diff(zone[: N_ZONES + 1].astype(int))
        of_hit = np.repeat(np.repeat(times, n_of_zone), np.repeat(times, n_of_zone))
        rows = first + np.repeat(np.arange(n_of_zone.sum()), np.repeat(times, n_of_zone))
        place = np.arange(len(rows)) - np.searchsorted(rows, rows)
        x = columns["scifi_hits.x"][rows] + np.where(of_hit == 3, 0.02 * (place - 1), 0.0).astype(np.float32)
        ends = np.concatenate([[0], np.cumsum(times * n_of_zone)])
        for begin, end in pairwise(ends.tolist()):
            x[begin:end].sort()
        hits["x"].append(np.pad(x, (0, PADDING)))
        hits["z"].append(np.pad(columns["scifi_hits.z"][rows], (0, PADDING)))
        zones.append(np.pad(ends, (0, ZONE_STRIDE - len(ends)), mode="edge"))
        counts.append(len(rows))
    copied["scifi_hits.offset"] = np.concatenate([[0], np.cumsum(np.array(counts) + PADDING)])
    copied["scifi_hits.zone_offset"], copied["scifi_hits.count"] = np.concatenate(zones), np.array(counts)
    return copied | {f"scifi_hits.{name}": np.concatenate(values) for name, values in hits.items()}


@pytest.mark.parametrize("target", LIBRARY.targets)
def test_more_stereo_hits_near_a_track_than_are_tried(target: str) -> None:
    """Three hits on either side of the expected place are tried; here the third one is often the best."""
    reference = simulated_reference("no_ut")
    types = {column.name: column.dtype for column in reference.sequence.columns}
    given = reference.given | {name: np.frombuffer(it, types[name]) for name, it in reference.made.items()}
    algorithms = [
        it for it in reference.sequence if it.name in ("forward_prepare_candidates", "forward_search_without_ut")
    ]
    limits = replace(reference.limits, input_bytes=4 * reference.limits.input_bytes)
    form, common = (
        run_algorithms(
            algorithms, with_copies_of_stereo_hits(given, reference.n_events), reference.n_events, limits, launch
        )
        for launch in (on_cpu(target), on_cpu(target, common=True))
    )
    assert_same_candidates(form, common, least=20)


def test_tracks_of_the_forward_search_that_use_up_their_share_of_candidates() -> None:
    """The share is 32 of each track. The form processes tracks in turns, and stops those that have used it up."""
    reference = reference_of(encoded([DENSE["noise at the beam pipe"]()], "forward"), None, "forward")
    types = {column.name: column.dtype for column in reference.sequence.columns}
    given = reference.given | {name: np.frombuffer(it, types[name]) for name, it in reference.made.items()}
    prepare, search = (
        next(it for it in reference.sequence if it.name == name)
        for name in ("forward_prepare_candidates", "forward_search_with_ut")
    )

    def found(max_candidates: int, *, common: bool) -> dict[str, NDArray[Any]]:
        algorithms = (prepare, search.with_constants({"max_candidates": max_candidates}))
        return run_algorithms(algorithms, given, reference.n_events, reference.limits, on_cpu(common=common))

    common = found(1, common=True)
    assert_same_candidates(found(1, common=False), common, least=20)
    assert common["scifi_hits.owner"].tobytes() != found(12_000, common=True)["scifi_hits.owner"].tobytes()


def assert_same_candidates(form: dict[str, NDArray[Any]], common: dict[str, NDArray[Any]], least: int) -> None:
    found = common["forward_candidates.hit_count"] > 0
    assert found.sum() > least
    for name in ("forward_candidates.hit_count", "scifi_hits.owner", "events.flags"):
        assert form[name].tobytes() == common[name].tobytes(), name
    for column in candidate_columns:
        one, other = (it[column.name].reshape(-1, column.width)[found] for it in (form, common))
        assert one.tobytes() == other.tobytes(), column.name


@pytest.mark.parametrize("target", LIBRARY.targets)
@pytest.mark.parametrize("disorder", [0.0, 0.001, 0.05])
def test_scifi_hits_that_do_not_ascend(target: str, disorder: float) -> None:
    """Tables lead past such hits, and to some NaN values."""
    reference = simulated_reference("no_ut")
    columns = {column.name: column for column in reference.sequence.columns}
    given = reference.given | {name: np.frombuffer(it, columns[name].dtype) for name, it in reference.made.items()}
    search = next(it for it in reference.sequence if it.name == "forward_search_without_ut")
    given["scifi_hits.x"] = disordered(given["scifi_hits.x"], disorder, seed=8)
    given["scifi_hits.owner"] = np.full_like(given["scifi_hits.owner"], NO_BID)
    given["forward_candidates.hit_count"] = np.zeros_like(given["forward_candidates.hit_count"])
    form, common = (
        run_algorithms((search,), given, reference.n_events, reference.limits, on_cpu(target, common=it))
        for it in (False, True)
    )
    assert_same_candidates(form, common, least=20)


@cache
def dense_downstream_reference() -> Reference:
    """Dense crossings: full windows in the UT."""
    events = [dense_crossing(nu) for nu in (20.0, 12.0)]
    return reference_of(encoded(events, "hlt1_2026"), None, "hlt1_2026")


@pytest.mark.parametrize("target", LIBRARY.targets)
@pytest.mark.parametrize(("max_pairs", "overflows"), [(100_000_000, False), (2_000, True)])
def test_downstream_search_of_dense_events_and_beyond_its_share_of_pairs(
    target: str, max_pairs: int, overflows: bool
) -> None:
    """The form tries pairs in the order of the common kernel, so a share that is used up ends at the same pair."""
    reference = dense_downstream_reference()
    types = {column.name: column.dtype for column in reference.sequence.columns}
    given = reference.given | {name: np.frombuffer(it, types[name]) for name, it in reference.made.items()}
    given["events.flags"] = np.zeros(reference.n_events, np.uint32)
    search = search_downstream.with_constants({"max_pairs": max_pairs})
    for column in search.writes:
        given.pop(column.name, None)
    form, common = (
        run_algorithms((search,), given, reference.n_events, reference.limits, on_cpu(target, common=it))
        for it in (False, True)
    )
    assert bool(common["events.flags"].any()) == overflows
    assert form["events.flags"].tobytes() == common["events.flags"].tobytes()
    found = common["downstream_candidates.found"] == 1
    assert found.sum() > 10
    assert form["downstream_candidates.found"].tobytes() == common["downstream_candidates.found"].tobytes()
    for column in search.writes:
        if column.name == "downstream_candidates.found":
            continue
        one, other = (it[column.name].reshape(-1, column.width)[found] for it in (form, common))
        assert one.tobytes() == other.tobytes(), column.name


@pytest.mark.parametrize("target", LIBRARY.targets)
@pytest.mark.parametrize("n_found", [0, 1, 15, 16, 17, 40])
def test_downstream_selection_of_any_number_of_candidates(target: str, n_found: int) -> None:
    """The form fills vectors with candidates; some of these have NaN, which no logarithm takes away."""
    reference = dense_downstream_reference()
    types = {column.name: column.dtype for column in reference.sequence.columns}
    given = reference.given | {name: np.frombuffer(it, types[name]) for name, it in reference.made.items()}
    rng = np.random.default_rng(n_found)
    stride, n_seeds = 2048, given["scifi_seeds.count"][0]
    of_event = rng.permutation(n_seeds)[:n_found]
    assert len(of_event) == n_found
    found = np.zeros_like(given["downstream_candidates.found"])
    found[of_event] = 1
    ut_hits = given["downstream_candidates.ut_hits"].copy().reshape(-1, 4)
    ut_hits[:n_seeds] = rng.integers(0, given["ut_hits.count"][0], (n_seeds, 4))
    changes = {"downstream_candidates.found": found, "downstream_candidates.ut_hits": ut_hits.ravel()}
    for name in ("x", "y", "tx", "ty", "qop", "chi2", "magnet_distance", "y_distance", "stereo_distance"):
        values = np.zeros(len(found), np.float32)
        values[:stride] = rng.normal(0.0, 0.3, stride)
        changes[f"downstream_candidates.{name}"] = values
    used = np.zeros(len(found), np.float32)
    used[:stride:5] = np.nan
    changes["downstream_candidates.used_ut_hits"] = used
    given = {name: it for name, it in given.items() if not name.startswith("downstream_tracks.")} | changes
    all_tracks = {"max_ghost_probability": 1.0, "max_shared_ut_hits": 4, "max_shared_scifi_hits": 12}
    form, common = (
        run_algorithms(
            (select_downstream.with_constants(all_tracks),),
            given,
            reference.n_events,
            reference.limits,
            on_cpu(target, common=it),
        )
        for it in (False, True)
    )
    assert common["downstream_tracks.count"][0] == sum(not np.isnan(used[seed]) for seed in of_event)
    for column in select_downstream.writes:
        assert form[column.name].tobytes() == common[column.name].tobytes(), column.name
