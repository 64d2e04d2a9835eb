"""SparseCCL, the clustering of sequence velo_sparse_ccl: its clusters are 8-connected components of any size.

Block sizes, PTX and damaged batches: tests/processing/chains and tests/ptx/test_kernels.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.velo import SuperPixels, encode_superpixels, superpixels_of_pixels
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.velo.decoding_oracle import (
    Pixel,
    connected_components,
    connected_super_pixels,
    lit_pixels,
    masked_clusters,
    super_pixels,
    window_of,
)
from tests.processing.lhcb.velo.dense_events import colliding_super_pixels, overlaid, super_pixel_noise
from tests.processing.lhcb.velo.test_cpu_forms import bank_of, dense_maps, dense_words, isolated_words, random_bank
from tests.processing.lhcb.velo.test_decoding import assert_hits_are, pixel_maps
from tests.processing.lhcb.velo.velo_chain import (
    UNCUT,
    VeloChain,
    VeloEvent,
    algorithms_of,
    limits_of,
    real_events,
    shuffled,
)

SEQUENCE = "velo_sparse_ccl"
COMPONENTS = [3681, 933, 1547, 1550, 2268, 718, 876]
MASKED = [3682, 933, 1547, 1550, 2269, 718, 876]
"""Clusters of the real events by connected components, and by masks."""
CUT, SPLIT = 188, 2
"""Components that masks cut, and components that they split into two clusters."""
GEOMETRY = VeloGeometry.builtin()
LIBRARY = KernelLibrary(CHAIN.kernels)


def of_mep(mep: EncodedMep, geometry: VeloGeometry = GEOMETRY) -> list[VeloEvent]:
    """Output of the CPU form, for every instruction set, after comparison with the common kernel."""
    limits = limits_of(mep)
    limits = replace(limits, input_bytes=2 * limits.input_bytes)  # random patterns have up to two clusters each
    made = VeloChain(geometry, limits, None, UNCUT, common=True, sequence=SEQUENCE).run(mep)
    for target in LIBRARY.targets:
        others = VeloChain(geometry, limits, target, UNCUT, sequence=SEQUENCE).run(mep)
        assert [i for i, (one, other) in enumerate(zip(made, others, strict=True)) if not one.same_as(other)] == []
    return made


def found(events: Sequence[Sequence[RawBank]], geometry: VeloGeometry = GEOMETRY) -> list[VeloEvent]:
    return of_mep(encode_mep(CHAIN, [list(banks) for banks in events]), geometry)


def banks_of(pixels: set[Pixel], sensor: int = 7) -> list[RawBank]:
    """Banks of these pixels, none marked as isolated."""
    column, row = np.array(sorted(pixels), dtype=np.uint32).T
    made = superpixels_of_pixels(np.full(len(column), sensor, np.uint32), column, row)
    return encode_superpixels(replace(made, isolated=np.zeros_like(made.isolated)), 2)


def test_the_sequence_has_this_clustering_in_place_of_masked_clustering() -> None:
    names = [[it.name for it in algorithms_of(name)] for name in (SEQUENCE, "velo")]
    assert names[0] == [name.replace("masked_clustering", "sparse_ccl") for name in names[1]]
    for target in LIBRARY.targets:
        name = "velo_sparse_ccl"
        assert LIBRARY.address(target, name) != LIBRARY.address(target, name, common=True)


def test_clusters_of_real_events_are_their_components_in_any_order_of_words(shared: Path) -> None:
    geometry = VeloGeometry.load(shared / "data" / "lhcb-geometry")
    events = real_events(shared, "superpixel")
    made = found(events, geometry)
    for event, banks in zip(made, events, strict=True):
        assert event.flags == 0
        assert_hits_are(event, connected_super_pixels(banks), geometry)
    in_disorder = found([shuffled(banks, 1) for banks in events], geometry)
    assert all(one.same_as(other) for one, other in zip(made, in_disorder, strict=True))


def test_clusters_of_simulated_events_are_their_components() -> None:
    events = list(simulate_events(3, seed=11, geometry=GEOMETRY, velo_banks="superpixel", nu=20.0))
    for event, banks in zip(found(events), events, strict=True):
        assert_hits_are(event, connected_super_pixels(banks), GEOMETRY)


def test_masked_clustering_differs_only_where_a_cluster_leaves_its_window(shared: Path) -> None:
    """Numbers: docs/physics/velo-clustering.md."""
    n_clusters, n_others, n_parts = [], [], []
    for banks in real_events(shared, "superpixel"):
        _, lit = lit_pixels(banks)
        components = [component for pixels in lit.values() for component in connected_components(pixels)]
        for component in components:
            candidate = max(component)
            columns, rows = window_of(candidate)
            masked = list(masked_clusters(component))
            if all(c in columns and r in rows for c, r in component):
                assert masked == [component]
                continue
            assert masked
            assert all(cluster < component for cluster in masked)
            n_parts.append(len(masked))
        n_clusters.append(len(connected_super_pixels(banks)))
        n_others.append(len(super_pixels(banks)))
    assert n_clusters == COMPONENTS
    assert n_others == MASKED
    assert sorted(n_parts) == CUT * [1] + SPLIT * [2]


@settings(max_examples=25)
@given(pixel_maps(), st.booleans(), st.sampled_from([2, 3, 4]))
def test_any_map_of_pixels_gives_its_components(pixels: NDArray[np.uint32], with_hints: bool, version: int) -> None:
    made = superpixels_of_pixels(*pixels.T)
    if not with_hints:
        made = SuperPixels(made.sensor, made.column, made.row, made.pattern, np.zeros_like(made.isolated))
    banks = encode_superpixels(made, version)
    (event,) = found([banks])
    assert event.flags == 0
    assert sorted(event.ids.tolist()) == sorted(c.lhcb_id for c in connected_super_pixels(banks))


def test_links_of_two_super_pixels_in_every_direction() -> None:
    """Pairs of any patterns, apart from all other pairs: the clusters are those of the pixels."""
    rng = np.random.default_rng(2)
    n_pairs, events = 2_000, []
    for east, north in ((0, 1), (1, 1), (1, 0), (1, -1)):
        words: list[tuple[int, int, int]] = []
        for pattern in rng.permutation(65_025)[:n_pairs].tolist():
            sensor, column, row = len(words) % 208, 5 + 4 * int(rng.integers(90)), 2 + 3 * (len(words) // 208 % 20)
            one, other = column << 14 | row << 8, column + east << 14 | row + north << 8
            words.append((sensor, pattern % 255 + 1 | one, pattern // 255 + 1 | other))
        table = np.array(words, np.uint32)
        of_sensors = ((i, table[table[:, 0] == i, 1:].ravel()) for i in range(208))
        events.append([bank_of(LhcbBankType.VP, 2, i, rng.permutation(of)) for i, of in of_sensors])
    for event, banks in zip(found(events), events, strict=True):
        assert event.flags == 0
        assert sorted(event.ids.tolist()) == sorted(c.lhcb_id for c in connected_super_pixels(banks))
        assert n_pairs < len(event.ids) < 3 * n_pairs


def spiral(turns: int) -> set[Pixel]:
    """A line of one pixel that winds around its beginning with one dark pixel between its turns."""
    column, row, pixels = 380, 128, {(380, 128)}
    steps = ((1, 0), (0, 1), (-1, 0), (0, -1))
    for side in range(4 * turns):
        for _ in range(2 * (side // 2 + 1)):
            column, row = column + steps[side % 4][0], row + steps[side % 4][1]
            pixels.add((column, row))
    return pixels


def test_a_cluster_of_any_size_and_shape_is_one_cluster() -> None:
    comb = {(c, r) for c in range(0, 600) for r in range(100, 200) if r == 150 or c % 2 == 0}
    block = {(c, r) for c in range(10, 210) for r in range(0, 256)}
    stairs = {(100 + k // 2, k) for k in range(256)}
    edges = {(c, r) for c in range(768) for r in (0, 255)} | {(c, r) for c in (0, 767) for r in range(256)}
    for pixels in (spiral(20), comb, block, stairs, edges):
        (event,) = found([banks_of(pixels)])
        n, columns, rows = len(pixels), sum(c for c, _ in pixels), sum(r for _, r in pixels)
        assert event.flags == 0
        assert event.ids.tolist() == [2 << 28 | 7 << 18 | columns // n << 8 | rows // n]


def test_super_pixels_at_opposite_edges_of_a_sensor_do_not_touch() -> None:
    for pixels in ({(300, 255), (302, 0)}, {(300, 0), (302, 255)}, {(767, 100), (0, 104)}):
        (event,) = found([banks_of(pixels)])
        assert len(event.ids) == 2
    last, first = (np.array([0xFF | 20 << 8 | column << 14], np.uint32) for column in (383, 0))
    banks = [bank_of(LhcbBankType.VP, 2, 6, last), bank_of(LhcbBankType.VP, 2, 7, first)]
    assert len(found([banks])[0].ids) == 2


@pytest.mark.parametrize("density", [0.01, 0.1, 0.3, 0.7])
def test_random_maps_of_pixels_sparse_and_dense(density: float) -> None:
    maps = [dense_maps(density, np.random.default_rng(seed)) for seed in range(2)]
    for event, banks in zip(found(maps), maps, strict=True):
        assert sorted(event.ids.tolist()) == sorted(c.lhcb_id for c in connected_super_pixels(banks))


def test_pairs_of_sensors_give_what_two_banks_give() -> None:
    """Version 4 has two sensors in a bank, in any order."""
    rng = np.random.default_rng(5)
    of_sensors = dense_words(0.1, rng)
    single = [bank_of(LhcbBankType.VP, 3, sensor, of) for sensor, of in enumerate(of_sensors)]
    pairs = []
    for number in range(len(of_sensors) // 2):
        first, second = of_sensors[2 * number : 2 * number + 2]
        words = rng.permutation(np.concatenate([first, second | np.uint32(1 << 23)]))
        pairs.append(bank_of(LhcbBankType.VP, 4, number, words))
    [one], [other] = found([single]), found([pairs])
    assert one.same_as(other)
    assert len(one.ids) > 1000


def test_every_pattern_alone_with_and_without_the_isolated_mark() -> None:
    words = isolated_words(np.random.default_rng(6))
    marked = [bank_of(LhcbBankType.VP, 2, 103, words)]
    unmarked = [bank_of(LhcbBankType.VP, 2, 103, np.asarray(words & 0x7FFFFFFF, np.uint32))]
    [one], [other] = found([marked]), found([unmarked])
    assert one.same_as(other)
    assert len(one.ids) == 255 + 81


def test_words_of_one_position_and_a_sensor_in_two_banks() -> None:
    words = np.array([0x11 | 5 << 8 | 7 << 14, 0x88 | 5 << 8 | 7 << 14, 0x11 | 6 << 8 | 7 << 14], np.uint32)
    mep = encode_mep(CHAIN, [[bank_of(LhcbBankType.VP, 2, sensor, words) for sensor in (9, 150)]])
    assert [len(event.ids) for event in of_mep(mep)] == [4]
    (one, begin, size), other = mep.fragments
    both = replace(mep, fragments=(((one & ~0x7FF) | (other[0] & 0x7FF), begin, size), other))
    assert [len(event.ids) for event in of_mep(both)] == [2]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_random_words_flag_columns_that_do_not_exist(version: int) -> None:
    rng = np.random.default_rng(version)
    numbers = range(208 // (2 if version == 4 else 1))
    kind = LhcbBankType.VP
    events = [[random_bank(kind, version, i, int(rng.integers(0, most)), rng) for i in numbers] for most in (2, 12, 90)]
    assert {event.flags & EventFlag.BANK_ERROR for event in found(events)} == {EventFlag.BANK_ERROR}


def test_the_flags_of_noise_and_of_full_tables_are_those_of_masked_clustering() -> None:
    events = [super_pixel_noise(n, isolated=isolated) for n in (100, 9_000, 40_000) for isolated in (True, False)]
    events += [colliding_super_pixels(600, 3, n) for n in (16, 31, 33, 40, 63)]
    mep = encode_mep(CHAIN, [list(banks) for banks in events])
    limits = replace(limits_of(mep), input_bytes=2 * limits_of(mep).input_bytes)
    masked = VeloChain(GEOMETRY, limits, None, UNCUT).run(mep)
    made = of_mep(mep)
    assert [event.flags for event in made] == [event.flags for event in masked]
    assert {event.flags for event in made} == {0, EventFlag.OVERFLOW}


def test_events_laid_over_one_another(shared: Path) -> None:
    events = real_events(shared, "superpixel")
    made = found([overlaid(events[:n]) for n in (2, 7)])
    assert len(made[1].ids) > len(made[0].ids) > 1000
