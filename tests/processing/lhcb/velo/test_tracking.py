"""Hits to VELO tracks: agreement of the kernels with the oracle, validity of every track, and physics against truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.offline.validation.readers.velopix import encode_velopix, read_velopix
from hltnode.processing.lhcb.velo.collections import HIT_PADDING, MAX_HITS_PER_TRACK
from hltnode.processing.lhcb.velo.tracking.kill_clones import kill_clones
from hltnode.protocol.lhcb.banks.velo import RetinaClusters, encode_retina_clusters
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.lhcb.velo.search_by_triplet_oracle import Cuts, Search
from tests.processing.lhcb.velo.velo_chain import ALGORITHMS, VeloChain, VeloEvent, limits_of, real_events, run_velo

GEOMETRY = VeloGeometry.builtin()

TRACKING = ALGORITHMS[[algorithm.name for algorithm in ALGORITHMS].index("velo_search_by_triplet") :]
VALUES = {constant.name: constant.value for algorithm in TRACKING for constant in algorithm.constants}
CUTS = Cuts(**VALUES)  # type: ignore[arg-type]


def oracle_tracks(event: VeloEvent, geometry: VeloGeometry) -> list[list[int]]:
    offset = event.module_pair_offset.tolist()
    return Search(event.x, event.y, event.z, event.phi, offset, geometry.module_z, CUTS).tracks()


@pytest.mark.timeout(300)
def test_tracks_of_real_events_are_those_of_the_oracle(shared: Path) -> None:
    geometry = VeloGeometry.load(shared / "data" / "lhcb-geometry")
    for event in run_velo(encode_mep(CHAIN, real_events(shared, "retina")[1:]), geometry):
        assert [track.tolist() for track in event.tracks] == oracle_tracks(event, geometry)


def test_tracks_of_simulated_events_are_those_of_the_oracle() -> None:
    for event in run_velo(encode_mep(CHAIN, list(simulate_events(2, seed=3, geometry=GEOMETRY))), GEOMETRY):
        assert len(event.tracks) > 20
        assert [track.tolist() for track in event.tracks] == oracle_tracks(event, GEOMETRY)


def random_clusters(n: int, seed: int, *, modules: tuple[int, int] = (0, 52)) -> RetinaClusters:
    """Clusters at random places on the sensors of some modules, without repetition."""
    rng = np.random.default_rng(seed)
    low, high = 4 * modules[0], 4 * modules[1]
    columns = np.stack([rng.integers(low, high, n), rng.integers(0, 768, n), rng.integers(0, 256, n)])
    sensor, column, row = np.unique(columns, axis=1).astype(np.uint32)
    fraction_x, fraction_y = rng.integers(0, 4, (2, len(sensor))).astype(np.uint32)
    return RetinaClusters(sensor, column, row, fraction_x, fraction_y, np.zeros_like(sensor), 2)


@pytest.mark.parametrize(("n", "modules"), [(40, (0, 52)), (500, (0, 52)), (400, (20, 30))])
def test_tracks_among_random_hits_are_those_of_the_oracle(n: int, modules: tuple[int, int]) -> None:
    banks = [encode_retina_clusters(random_clusters(n, seed, modules=modules), 3) for seed in range(3)]
    for event in run_velo(encode_mep(CHAIN, banks), GEOMETRY):
        assert [track.tolist() for track in event.tracks] == oracle_tracks(event, GEOMETRY)


def assert_tracks_are_sound(event: VeloEvent) -> None:
    """Check that tracks have at least three hits, from large to small z, at most one in each module pair."""
    pair_of_hit = np.repeat(np.arange(26), np.diff(event.module_pair_offset))
    for track in event.tracks:
        assert 3 <= len(track) <= 26
        assert np.all(np.diff(event.z[track]) < 0)
        assert np.all(np.diff(pair_of_hit[track]) < 0)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 5000, 30000])
def test_tracks_are_sound_for_any_number_of_hits(n: int) -> None:
    banks = encode_retina_clusters(random_clusters(n, seed=n), 3)
    (event,) = run_velo(encode_mep(CHAIN, [banks]), GEOMETRY)
    assert event.flags == 0
    assert len(event.ids) == len(np.unique(event.ids))
    assert_tracks_are_sound(event)


def test_a_straight_line_of_hits_is_one_track_of_all_of_them() -> None:
    hits: list[tuple[int, int, int, int, int]] = []
    for sensor in range(0, 208):
        centre = GEOMETRY.local_to_global(sensor, 300, 120)
        slope = np.array([0.02, 0.03])
        target = slope * (centre[2] + 200.0)
        local = GEOMETRY.global_to_local(sensor, np.array([*target, centre[2]]))
        if GEOMETRY.is_inside(local[0], local[1]) and not any(h[0] // 8 == sensor // 8 for h in hits):
            column, row, fx, fy = GEOMETRY.local_to_pixel(local[0], local[1])
            hits.append((sensor, int(column), int(row), int(4 * fx), int(4 * fy)))
    sensor, column, row, fraction_x, fraction_y = np.array(hits, dtype=np.uint32).T
    clusters = RetinaClusters(sensor, column, row, fraction_x, fraction_y, np.zeros(len(hits), np.uint32), 2)
    (event,) = run_velo(encode_mep(CHAIN, [encode_retina_clusters(clusters, 3)]), GEOMETRY)
    assert [len(track) for track in event.tracks] == [len(hits)]
    assert len(hits) > 5


@pytest.mark.parametrize("target", ["baseline", "avx2", "avx512"])
def test_every_instruction_set_finds_the_same(target: str) -> None:
    from hltnode.processing.framework.backends.kernel_library import KernelLibrary

    if target not in KernelLibrary(CHAIN.kernels).targets:
        pytest.skip(f"this CPU has no {target}")
    mep = encode_mep(CHAIN, list(simulate_events(3, seed=8, geometry=GEOMETRY)))
    expected = run_velo(mep, GEOMETRY)
    assert all(a.same_as(b) for a, b in zip(expected, run_velo(mep, GEOMETRY, target), strict=True))


@pytest.mark.timeout(300)
def test_dense_events_run_through_unharmed(shared: Path) -> None:
    geometry = VeloGeometry.load(shared / "data" / "lhcb-geometry")
    events = read_velopix(shared / "data" / "velo-truth" / "upgrade2.jsonl.gz")
    mep = encode_mep(CHAIN, [encode_velopix(event, geometry) for event, _ in zip(events, range(6), strict=False)])
    for event in VeloChain(geometry, limits_of(mep)).run(mep):
        assert event.flags == 0
        assert len(event.ids) > 6000
        assert len(event.tracks) > 500
        assert_tracks_are_sound(event)


@pytest.mark.parametrize(("n_shared", "n_left"), [(6, 10), (7, 10), (8, 0)])
@pytest.mark.parametrize("common", [False, True])
def test_a_track_that_shares_more_than_the_allowed_fraction_of_its_hits_is_a_clone(
    n_shared: int, n_left: int, common: bool
) -> None:
    """The constant is 0.7, and the track has ten hits."""
    hits = np.zeros((2, MAX_HITS_PER_TRACK), np.uint16)
    hits[0, :11] = np.arange(11)
    hits[1, :10] = np.arange(11 - n_shared, 21 - n_shared)
    given = {
        "velo_clusters.offset": np.array([0, 32 + HIT_PADDING]),
        "velo_clusters.bound": np.array([32]),
        "velo_clusters.count": np.array([32]),
        "velo_tracks.candidate_count": np.array([2]),
        "velo_tracks.hits": hits.ravel(),
        "velo_tracks.hit_count": np.array([11, 10]),
    }
    limits = BatchLimits(events=1, meps=1, input_bytes=1 << 16, rows=1)
    columns = run_algorithms([kill_clones], given, 1, limits, on_cpu(common=common))
    assert columns["velo_tracks.hit_count"][:2].tolist() == [11, n_left]
