"""CPU forms of kernels give the results of the common kernels, bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.velo.collections import HIT_PADDING, N_MODULE_PAIRS, NO_MODULE_PAIR
from hltnode.processing.lhcb.velo.tracking.sort_by_phi import sort_by_phi
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.lhcb.velo.dense_events import (
    SUPER_PIXELS,
    colliding_super_pixels,
    crowded_in_phi,
    noise,
    overlaid,
    super_pixel_noise,
)
from tests.processing.lhcb.velo.velo_chain import UNCUT, VeloChain, VeloEvent, limits_of, real_events, shuffled

GEOMETRY = VeloGeometry.builtin()
LIBRARY = KernelLibrary(CHAIN.kernels)
SENSORS = 208
FORMS = {
    "fragment_offsets",
    "velo_estimate_input_size",
    "velo_decode_retina_clusters",
    "velo_masked_clustering",
    "velo_sort_by_phi",
    "velo_search_by_triplet",
    "velo_kalman_filter",
    "pv_beamline_peaks",
    "pv_beamline_multi_fit",
    "velo_impact_parameter",
}
"""test_kalman_filter.py compares the form of the track fit, tests/processing/lhcb/primary_vertices those of the
vertices."""
TYPES_IN_MFP = 20
"""Bytes before the types of the fragments."""


def compared(mep: EncodedMep, geometry: VeloGeometry = GEOMETRY, target: str | None = None) -> list[VeloEvent]:
    """Output of the CPU forms for some events, after comparison with the common kernels."""
    limits = limits_of(mep)
    limits = replace(limits, input_bytes=2 * limits.input_bytes)  # random patterns have up to two clusters each
    found = VeloChain(geometry, limits, target, UNCUT).run(mep)
    expected = VeloChain(geometry, limits, target, UNCUT, common=True).run(mep)
    assert [i for i, (one, other) in enumerate(zip(found, expected, strict=True)) if not one.same_as(other)] == []
    return found


def encoded(events: Sequence[Sequence[RawBank]]) -> EncodedMep:
    """The events as one MEP."""
    return encode_mep(CHAIN, [list(banks) for banks in events])


def bank_of(kind: LhcbBankType, version: int, number: int, words: NDArray[np.uint32]) -> RawBank:
    """A bank with its count, or without count (version 4)."""
    count = b"" if version == 4 else len(words).to_bytes(4, "little")
    payload = count + words.astype("<u4").tobytes()
    return RawBank(kind, version, number, memoryview(payload))


def random_bank(kind: LhcbBankType, version: int, number: int, n: int, rng: np.random.Generator) -> RawBank:
    return bank_of(kind, version, number, rng.integers(0, 1 << 32, n, dtype=np.uint32))


def dense_maps(density: float, rng: np.random.Generator) -> list[RawBank]:
    """A patch of each sensor, some in its corners, whose pixels are lit with a probability; none is marked isolated."""
    return [bank_of(LhcbBankType.VP, 2, sensor, words) for sensor, words in enumerate(dense_words(density, rng))]


def dense_words(density: float, rng: np.random.Generator) -> list[NDArray[np.uint32]]:
    """Words of each sensor."""
    of_sensors = []
    for sensor in range(SENSORS):
        size = 5, 4
        corner = [int(rng.integers(0, most - n + 1)) for most, n in zip(SUPER_PIXELS[1:], size, strict=True)]
        if sensor % 3 == 0:
            corner = [(SUPER_PIXELS[1] - size[0]) * (sensor & 1), (SUPER_PIXELS[2] - size[1]) * (sensor >> 1 & 1)]
        patterns = np.packbits(rng.random((*size, 8)) < density, axis=2, bitorder="little")[..., 0].astype(np.uint32)
        column, row = (np.arange(n, dtype=np.uint32) + at for n, at in zip(size, corner, strict=True))
        words = patterns | row[None, :].astype(np.uint32) << 8 | column[:, None].astype(np.uint32) << 14
        of_sensors.append(rng.permutation(words[patterns != 0]))
    return of_sensors


def isolated_words(rng: np.random.Generator) -> NDArray[np.uint32]:
    """Each pattern at a separate place, apart from all others; any pattern may be marked isolated."""
    patterns = rng.permutation(np.arange(1, 256, dtype=np.uint32))
    place = rng.permutation(SUPER_PIXELS[1] // 3 * (SUPER_PIXELS[2] // 3))[: len(patterns)].astype(np.uint32)
    column, row = place // (SUPER_PIXELS[2] // 3) * 3, place % (SUPER_PIXELS[2] // 3) * 3
    marked = rng.integers(0, 2, len(patterns), dtype=np.uint32) << 31
    return np.asarray(patterns | row << 8 | column << 14 | marked, np.uint32)


def test_the_library_has_two_forms_of_these_kernels() -> None:
    named = {it.name for it in CHAIN.with_sequence("velo").sequence if it.cpu_form is not None}
    assert named == FORMS
    for target in LIBRARY.targets:
        for name in FORMS:
            assert LIBRARY.address(target, name) != LIBRARY.address(target, name, common=True)
        assert LIBRARY.address(target, "decode_odin") == LIBRARY.address(target, "decode_odin", common=True)


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
@pytest.mark.parametrize("target", LIBRARY.targets)
def test_real_events(shared: Path, encoding: str, target: str) -> None:
    events = real_events(shared, encoding)
    geometry = VeloGeometry.load(shared / "data" / "lhcb-geometry")
    in_order = compared(encoded(events), geometry, target)
    in_disorder = compared(encoded([shuffled(banks, 1) for banks in events]), geometry, target)
    assert all(one.same_as(other) for one, other in zip(in_order, in_disorder, strict=True))
    assert min(len(event.ids) for event in in_order) > 500


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_simulated_events_of_one_and_of_many_collisions(encoding: VeloEncoding) -> None:
    events = [
        banks
        for nu in (1.0, 8.0, 40.0)
        for banks in simulate_events(3, seed=11, geometry=GEOMETRY, nu=nu, velo_banks=encoding)
    ]
    assert {event.flags for event in compared(encoded(events))} == {0}


@pytest.mark.parametrize("target", LIBRARY.targets)
@pytest.mark.parametrize("density", [0.01, 0.05, 0.3, 0.7])
def test_random_maps_of_pixels_sparse_and_dense(density: float, target: str) -> None:
    maps = [dense_maps(density, np.random.default_rng(seed)) for seed in range(3)]
    found = compared(encoded(maps), target=target)
    assert min(len(event.ids) for event in found) > 100


@pytest.mark.parametrize("target", LIBRARY.targets)
def test_pairs_of_sensors_give_what_two_banks_give(target: str) -> None:
    """Version 4 has two sensors in a bank, in any order."""
    rng = np.random.default_rng(5)
    of_sensors = dense_words(0.1, rng)
    single = [bank_of(LhcbBankType.VP, 3, sensor, of) for sensor, of in enumerate(of_sensors)]
    pairs = []
    for number in range(SENSORS // 2):
        first, second = of_sensors[2 * number : 2 * number + 2]
        pairs.append(
            bank_of(LhcbBankType.VP, 4, number, rng.permutation(np.concatenate([first, second | np.uint32(1 << 23)])))
        )
    [one] = compared(encoded([single]), target=target)
    [other] = compared(encoded([pairs]), target=target)
    assert one.same_as(other)
    assert len(one.ids) > 1000


@pytest.mark.parametrize("target", LIBRARY.targets)
def test_every_pattern_alone(target: str) -> None:
    """Super-pixels without neighbours give the same clusters with and without the isolated mark."""
    rng = np.random.default_rng(6)
    of_sensors = {sensor: isolated_words(rng) for sensor in (0, 103, 207)}
    marked = [bank_of(LhcbBankType.VP, 2, sensor, words) for sensor, words in of_sensors.items()]
    unmarked = [
        bank_of(LhcbBankType.VP, 2, sensor, np.asarray(words & 0x7FFFFFFF, np.uint32))
        for sensor, words in of_sensors.items()
    ]
    [one], [other] = compared(encoded([marked]), target=target), compared(encoded([unmarked]), target=target)
    assert one.same_as(other)
    assert len(one.ids) > 3 * 255


@pytest.mark.parametrize("target", LIBRARY.targets)
def test_noise_and_hits_that_crowd_places_of_the_tables(target: str) -> None:
    of_super_pixels = [
        super_pixel_noise(n, isolated=isolated) for n in (100, 9_000, 40_000) for isolated in (True, False)
    ]
    colliding = [colliding_super_pixels(600, 3, n) for n in (16, 31, 33, 40, 63)]
    found = compared(encoded([*of_super_pixels, *colliding]), target=target)
    assert {event.flags for event in found} == {0, EventFlag.OVERFLOW}
    crowded = [crowded_in_phi(3_000, 1, GEOMETRY), crowded_in_phi(5_000, 12, GEOMETRY)]
    found = compared(encoded([noise(9_000), *crowded]), target=target)
    assert {event.flags for event in found} == {0, EventFlag.OVERFLOW}


@pytest.mark.parametrize("target", LIBRARY.targets)
def test_events_laid_over_one_another(shared: Path, target: str) -> None:
    for encoding in ("retina", "superpixel"):
        events = real_events(shared, encoding)
        compared(encoded([overlaid(events[:n]) for n in (2, 7)]), target=target)


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("kind", [LhcbBankType.VP, LhcbBankType.VP_RETINA_CLUSTER])
def test_random_words(kind: LhcbBankType, version: int) -> None:
    """Includes columns that do not exist, and words of the same position."""
    rng = np.random.default_rng(version)
    numbers = range(SENSORS // (2 if version == 4 else 1))
    events = [[random_bank(kind, version, i, int(rng.integers(0, most)), rng) for i in numbers] for most in (2, 12, 90)]
    found = compared(encoded(events))
    assert {event.flags & EventFlag.BANK_ERROR for event in found} == {EventFlag.BANK_ERROR}


def test_words_of_one_position_and_a_sensor_in_two_banks() -> None:
    words = np.array([0x11 | 5 << 8 | 7 << 14, 0x22 | 5 << 8 | 7 << 14, 0x80 | 4 << 8 | 7 << 14], np.uint32)
    mep = encoded([[bank_of(LhcbBankType.VP, 2, sensor, words) for sensor in (9, 150)]])
    assert [len(event.ids) for event in compared(mep)] == [2]
    (one, begin, size), other = mep.fragments
    same_number = (one & ~0x7FF) | (other[0] & 0x7FF)
    both = replace(mep, fragments=((same_number, begin, size), other))
    assert [len(event.ids) for event in compared(both)] == [1]


def test_a_count_that_lies_where_no_word_fits() -> None:
    """A bank of retina clusters with only such a count flags its event, with and without content in other banks."""
    words = np.array([0x11 | 5 << 8 | 7 << 14], np.uint32)
    lying = RawBank(LhcbBankType.VP, 2, 3, memoryview((7).to_bytes(4, "little")))
    for others in ([bank_of(LhcbBankType.VP, 2, 9, words)], []):
        mep = encoded([[lying, *others]])
        data = mep.data.copy()
        begin = next(at for source, at, _ in mep.fragments if source & 0x7FF == 3)
        assert data[begin + TYPES_IN_MFP] == LhcbBankType.VP
        data[begin + TYPES_IN_MFP] = LhcbBankType.VP_RETINA_CLUSTER
        [event] = compared(replace(mep, data=data))
        assert event.flags == EventFlag.BANK_ERROR
        assert len(event.ids) == len(others)


def unsorted_hits(n: int, angles: int, ids_of_pairs: bool, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Columns of hits with few angles, pixels and positions, so that many hits differ in only one of them."""
    pair = rng.integers(0, N_MODULE_PAIRS + 1, n).astype(np.uint8)
    pair[pair == N_MODULE_PAIRS] = NO_MODULE_PAIR
    pixel = rng.integers(0, 4, n) << 26 | rng.integers(0, 3, n) << 18 | rng.integers(766, 768, n) << 8 | 255
    of_pair = 2 << 28 | pixel + (pair.astype(np.int64) << 21)
    phi = rng.choice(rng.integers(-(1 << 15), 1 << 15, angles), n)
    columns = {name: rng.integers(0, 3, n).astype(np.float32) for name in "xyz"}
    return {
        **{name: column * np.float32(0.5) for name, column in columns.items()},
        "z": (columns["x"] + 4 * columns["y"]).astype(np.float32),  # hits of the same place are one hit
        "phi": phi.astype(np.int16),
        "id": (of_pair if ids_of_pairs else rng.integers(0, 1 << 32, n)).astype(np.uint32),
        "module_pair": pair,
    }


@pytest.mark.parametrize("ids_of_pairs", [True, False])
@pytest.mark.parametrize("target", LIBRARY.targets)
def test_the_sort_of_hits_that_are_alike(target: str, ids_of_pairs: bool) -> None:
    """Equal angles, hits on the same pixel, hits without a module pair, no hits; ids that no decoder writes."""
    rng = np.random.default_rng(7)
    sizes = [0, 1, 2, 3, 7, 8, 9, 40, 300, 3_000, 7_000, 0]
    places = np.array([n + HIT_PADDING if n else 0 for n in sizes])
    offset = np.concatenate([[0], np.cumsum(places)]).astype(np.uint32)
    given: dict[str, NDArray[Any]] = {"velo_clusters.offset": offset}
    given["velo_clusters.bound"] = given["velo_unsorted.count"] = np.array(sizes, np.uint32)
    for first, n in zip(offset, sizes, strict=False):
        for name, column in unsorted_hits(n, 4_000, ids_of_pairs, rng).items():
            of_all = given.setdefault(f"velo_unsorted.{name}", np.zeros(offset[-1], column.dtype))
            of_all[first : first + n] = column
    limits = BatchLimits(events=len(sizes), meps=1, input_bytes=4 * int(offset[-1]), rows=1)
    result, expected = (
        run_algorithms([sort_by_phi], given, len(sizes), limits, on_cpu(target, common=common))
        for common in (False, True)
    )
    assert (result["events.flags"] == expected["events.flags"]).all()
    count = expected["velo_clusters.count"]
    assert result["velo_clusters.count"].tolist() == count.tolist()
    assert count[9] > 2_000
    for first, n in zip(offset, count, strict=False):
        for name in ("x", "y", "z", "phi", "id"):
            one, other = (made[f"velo_hits.{name}"][first : first + n] for made in (result, expected))
            assert one.tobytes() == other.tobytes()
    for name in ("velo_hits.module_pair_offset", "velo_hits.phi_bin_offset"):
        assert result[name].tobytes() == expected[name].tobytes()
