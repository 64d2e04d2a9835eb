"""Track following, the search of sequence velo_simd, agrees with its oracle, and its CPU form with the common kernel.

Block sizes, PTX and damaged batches: tests/processing/chains and tests/ptx/test_kernels.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.offline.validation.readers.velopix import encode_velopix, read_velopix
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.velo import RetinaClusters, encode_retina_clusters
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.velo.dense_events import crowded_in_phi, noise, overlaid
from tests.processing.lhcb.velo.follow_tracks_oracle import Following
from tests.processing.lhcb.velo.search_by_triplet_oracle import Cuts
from tests.processing.lhcb.velo.test_cpu_forms import random_bank
from tests.processing.lhcb.velo.test_tracking import assert_tracks_are_sound, random_clusters
from tests.processing.lhcb.velo.velo_chain import (
    UNCUT,
    VeloChain,
    VeloEvent,
    algorithms_of,
    limits_of,
    real_events,
    shuffled,
)

SEQUENCE = "velo_simd"
GEOMETRY = VeloGeometry.builtin()
LIBRARY = KernelLibrary(CHAIN.kernels)
TRACKING = [it for it in algorithms_of(SEQUENCE) if it.name != "velo_cluster_limit"]
VALUES = {constant.name: constant.value for algorithm in TRACKING for constant in algorithm.constants}
CUTS = Cuts(max_forward_scatter=VALUES.pop("max_follow_scatter"), max_phi_tolerance=0.0, **VALUES)  # type: ignore[arg-type]


def configured(**constants: int) -> TriggerConfig:
    """The configuration without the limit on clusters, with these constants of the search."""
    tables = {"velo_cluster_limit": {"max_clusters": 2**32 - 1}, "velo_follow_tracks": constants}
    lines = [f"[sequence.{name}]\n" + "\n".join(f"{k} = {v}" for k, v in of.items()) for name, of in tables.items()]
    return TriggerConfig.from_toml("\n".join(lines), CHAIN.menu, SEQUENCE)


def found(
    events: Sequence[Sequence[RawBank]], geometry: VeloGeometry = GEOMETRY, trigger: TriggerConfig = UNCUT
) -> list[VeloEvent]:
    """Output of the CPU form for some events, for every instruction set, after comparison with the common kernel."""
    mep = encode_mep(CHAIN, [list(banks) for banks in events])
    limits = limits_of(mep)
    limits = replace(limits, input_bytes=2 * limits.input_bytes)
    made = VeloChain(geometry, limits, None, trigger, common=True, sequence=SEQUENCE).run(mep)
    for target in LIBRARY.targets:
        others = VeloChain(geometry, limits, target, trigger, sequence=SEQUENCE).run(mep)
        assert [i for i, (one, other) in enumerate(zip(made, others, strict=True)) if not one.same_as(other)] == []
    return made


def assert_tracks_are_those_of_the_oracle(events: list[VeloEvent], geometry: VeloGeometry, cuts: Cuts = CUTS) -> None:
    for event in events:
        offset = event.module_pair_offset.tolist()
        oracle = Following(event.x, event.y, event.z, event.phi, offset, geometry.module_z, cuts, ids=event.ids)
        assert [track.tolist() for track in event.tracks] == oracle.tracks()


def test_the_sequence_has_this_search_in_place_of_search_by_triplet() -> None:
    names = [[it.name for it in algorithms_of(name)] for name in (SEQUENCE, "velo")]
    assert names[0] == [name.replace("search_by_triplet", "follow_tracks") for name in names[1]]
    for target in LIBRARY.targets:
        name = "velo_follow_tracks"
        assert LIBRARY.address(target, name) != LIBRARY.address(target, name, common=True)


@pytest.mark.timeout(300)
def test_tracks_of_real_events_are_those_of_the_oracle_in_any_order_of_their_words(shared: Path) -> None:
    geometry = VeloGeometry.load(shared / "data" / "lhcb-geometry")
    events = real_events(shared, "retina")
    made = found(events, geometry)
    assert_tracks_are_those_of_the_oracle(made[4:], geometry)
    in_disorder = found([shuffled(banks, 1) for banks in events], geometry)
    assert all(one.same_as(other) for one, other in zip(made, in_disorder, strict=True))


def test_tracks_of_simulated_events_are_those_of_the_oracle() -> None:
    made = found(list(simulate_events(2, seed=3, geometry=GEOMETRY)))
    assert min(len(event.tracks) for event in made) > 20
    assert_tracks_are_those_of_the_oracle(made, GEOMETRY)


@pytest.mark.parametrize(("n", "modules"), [(40, (0, 52)), (500, (0, 52)), (400, (20, 30))])
def test_tracks_among_random_hits_are_those_of_the_oracle(n: int, modules: tuple[int, int]) -> None:
    """Includes steep lines through hits near the beam, which cross every sector of phi."""
    banks = [encode_retina_clusters(random_clusters(n, seed, modules=modules), 3) for seed in range(3)]
    assert_tracks_are_those_of_the_oracle(found(banks), GEOMETRY)


@pytest.mark.parametrize("n_partners", [1, 2, 3, 5, 9, 10])
def test_other_numbers_of_partners(n_partners: int) -> None:
    """Few hits in a plane, a dense plane, and hits that crowd at the angle where phi wraps."""
    events = [encode_retina_clusters(random_clusters(n, n, modules=(20, 30)), 3) for n in (12, 30, 60, 400)]
    events += list(simulate_events(1, seed=3, geometry=GEOMETRY, nu=7.0))
    made = found(events, trigger=configured(seed_partners=n_partners))
    cuts = replace(CUTS, seed_partners=n_partners)
    assert_tracks_are_those_of_the_oracle(made, GEOMETRY, cuts)
    assert len(made[-1].tracks) > 20


def test_more_partners_find_more_tracks() -> None:
    events = list(simulate_events(4, seed=5, geometry=GEOMETRY))
    n_tracks = [
        sum(len(event.tracks) for event in found(events, trigger=configured(seed_partners=n))) for n in (1, 3, 8)
    ]
    assert n_tracks[0] < n_tracks[1] <= n_tracks[2]


@pytest.mark.parametrize("plane_kind", [1, 2])
@pytest.mark.parametrize("n_partners", [3, 8])
def test_halves_apart_and_single_modules(plane_kind: int, n_partners: int) -> None:
    events = [encode_retina_clusters(random_clusters(n, n, modules=(20, 30)), 3) for n in (12, 60, 400)]
    events += list(simulate_events(2, seed=3, geometry=GEOMETRY, nu=3.0))
    made = found(events, trigger=configured(plane_kind=plane_kind, seed_partners=n_partners))
    cuts = replace(CUTS, plane_kind=plane_kind, seed_partners=n_partners)
    assert_tracks_are_those_of_the_oracle(made, GEOMETRY, cuts)
    modules = [[event.ids[track] >> 20 & 63 for track in event.tracks] for event in made[3:]]
    both_sides = [len(np.unique(module % 2)) == 2 for of_event in modules for module in of_event]
    both_of_a_pair = [len(np.unique(module // 2)) < len(module) for of_event in modules for module in of_event]
    assert any(both_sides) == (plane_kind == 2)
    assert any(both_of_a_pair) == (plane_kind == 2)


def straight_line(modules: Sequence[int]) -> list[RawBank]:
    """A hit on each of some modules of one half, on a line from the beam."""
    direction = GEOMETRY.local_to_global(4 * modules[0], 300, 120) + np.array([0.0, 0.0, 300.0])
    rows: list[tuple[int, int, int, int, int]] = []
    for module in modules:
        for sensor in range(4 * module, 4 * module + 4):
            z = float(GEOMETRY.local_to_global(sensor, 300, 120)[2])
            place = direction * (z + 300.0) / direction[2] - np.array([0.0, 0.0, 300.0])
            local = GEOMETRY.global_to_local(sensor, place)
            if GEOMETRY.is_inside(local[0], local[1]) and not any(placed[0] // 4 == module for placed in rows):
                column, row, fx, fy = GEOMETRY.local_to_pixel(local[0], local[1])
                rows.append((sensor, int(column), int(row), int(4 * fx), int(4 * fy)))
    assert len(rows) == len(modules)
    sensor_, column_, row_, fraction_x, fraction_y = np.array(rows, dtype=np.uint32).T
    return encode_retina_clusters(
        RetinaClusters(sensor_, column_, row_, fraction_x, fraction_y, np.zeros(len(rows), np.uint32), 2), 3
    )


@pytest.mark.parametrize("plane_kind", [0, 1, 2])
def test_one_module_of_a_half_may_be_missing_but_not_two(plane_kind: int) -> None:
    """With single modules these are three and five planes without a hit."""
    for last, n_hits in ((38, 4), (36, 4), (34, 3)):
        (event,) = found([straight_line((44, 42, 40, last))], trigger=configured(plane_kind=plane_kind))
        assert sorted(map(len, event.tracks)) == [n_hits], last


def test_planes_of_thousands_of_hits() -> None:
    """More lines and hits than one tile of the CPU form."""
    crossings = list(simulate_events(2, seed=12, geometry=GEOMETRY, nu=60.0))
    three_planes = encode_retina_clusters(random_clusters(4_000, 1, modules=(20, 26)), 3)
    made = found([noise(9_000), crowded_in_phi(5_000, 12, GEOMETRY), overlaid(crossings), three_planes])
    assert max(len(event.tracks) for event in made) > 1000
    assert {event.flags for event in made} == {0}
    for event in made:
        assert_tracks_are_sound(event)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10])
def test_tracks_are_sound_for_any_number_of_hits(n: int) -> None:
    (event,) = found([encode_retina_clusters(random_clusters(n, seed=n), 3)])
    assert_tracks_are_sound(event)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_random_words(version: int) -> None:
    """Banks with unchecked bytes: columns that do not exist, words of the same position."""
    rng = np.random.default_rng(version)
    numbers = range(208 // (2 if version == 4 else 1))
    kind = LhcbBankType.VP_RETINA_CLUSTER
    events = [[random_bank(kind, version, i, int(rng.integers(0, most)), rng) for i in numbers] for most in (2, 12, 90)]
    for event in found(events):
        assert event.flags & EventFlag.BANK_ERROR
        assert np.all(np.isfinite(event.hits()))
        for track in event.tracks:
            assert np.all(track < len(event.ids))


@pytest.mark.timeout(300)
def test_dense_events_run_through_unharmed(shared: Path) -> None:
    geometry = VeloGeometry.load(shared / "data" / "lhcb-geometry")
    events = read_velopix(shared / "data" / "velo-truth" / "upgrade2.jsonl.gz")
    mep = encode_mep(CHAIN, [encode_velopix(event, geometry) for event, _ in zip(events, range(3), strict=False)])
    for event in VeloChain(geometry, limits_of(mep), None, UNCUT, sequence=SEQUENCE).run(mep):
        assert event.flags == 0
        assert len(event.ids) > 6000
        assert len(event.tracks) > 500
        assert_tracks_are_sound(event)
