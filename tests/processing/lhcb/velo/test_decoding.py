"""VELO banks to sorted hits: the kernels agree with the oracle on real, simulated and made-up banks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.velo import SuperPixels, encode_superpixels, superpixels_of_pixels
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.velo.decoding_oracle import Cluster, connected_components, retina, sorted_hits, super_pixels
from tests.processing.lhcb.velo.velo_chain import (
    UNCUT,
    VeloChain,
    VeloEvent,
    limits_of,
    real_events,
    run_velo,
    shuffled,
)

GEOMETRY = VeloGeometry.builtin()
ORACLES = {"retina": retina, "superpixel": super_pixels}
TARGET_ACCURACY = 2e-5
"""mm; float32 against float64 over half a metre."""


def assert_hits_are(event: VeloEvent, clusters: list[Cluster], geometry: VeloGeometry) -> None:
    """Check that the hits of the event are the clusters, in sorted order."""
    ids, position, offsets = sorted_hits(clusters, geometry)
    assert event.module_pair_offset.tolist() == offsets.tolist()
    by_kernel, by_oracle = np.argsort(event.ids, kind="stable"), np.argsort(ids, kind="stable")
    assert event.ids[by_kernel].tolist() == ids[by_oracle].tolist()
    if len(np.unique(ids)) == len(ids):
        np.testing.assert_allclose(event.hits()[by_kernel], position[by_oracle], atol=TARGET_ACCURACY)
    exact = np.arctan2(event.y.astype(float), event.x.astype(float)) * 32768 / np.pi
    assert np.all(np.abs((event.phi - exact + 32768) % 65536 - 32768) < 1.5)
    assert_sorted(event)


def assert_sorted(event: VeloEvent) -> None:
    """Check that (phi, id, x, y) ascends in each module pair."""
    for first, last in zip(event.module_pair_offset[:-1], event.module_pair_offset[1:], strict=True):
        keys = [
            (int(event.phi[i]), int(event.ids[i]), float(event.x[i]), float(event.y[i])) for i in range(first, last)
        ]
        assert keys == sorted(keys)


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_hits_of_the_real_events_are_those_of_the_oracle(shared: Path, encoding: str) -> None:
    geometry = VeloGeometry.load(shared / "data" / "lhcb-geometry")
    banks = real_events(shared, encoding)
    for event, of_event in zip(run_velo(encode_mep(CHAIN, banks), geometry), banks, strict=True):
        assert event.flags == 0
        assert_hits_are(event, ORACLES[encoding](of_event), geometry)


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_hits_of_simulated_events_are_those_of_the_oracle(encoding: VeloEncoding) -> None:
    banks = list(simulate_events(3, seed=11, geometry=GEOMETRY, velo_banks=encoding))
    for event, of_event in zip(run_velo(encode_mep(CHAIN, banks), GEOMETRY), banks, strict=True):
        assert_hits_are(event, ORACLES[encoding](of_event), GEOMETRY)


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_the_order_of_the_words_in_a_bank_changes_nothing(shared: Path, encoding: str) -> None:
    geometry = VeloGeometry.load(shared / "data" / "lhcb-geometry")
    banks = real_events(shared, encoding)
    expected = run_velo(encode_mep(CHAIN, banks), geometry)
    for seed in range(3):
        result = run_velo(encode_mep(CHAIN, [shuffled(event, seed) for event in banks]), geometry)
        assert all(event.same_as(other) for event, other in zip(expected, result, strict=True))


@pytest.mark.physics
def test_cluster_counts_of_the_real_events_are_those_of_plain_connected_components(shared: Path) -> None:
    geometry = VeloGeometry.load(shared / "data" / "lhcb-geometry")
    counts = [len(event.ids) for event in run_velo(encode_mep(CHAIN, real_events(shared, "superpixel")), geometry)]
    plain = [933, 1547, 1550, 2268, 718, 876]  # events 6002 to 6007, docs/physics/velo-clustering.md
    np.testing.assert_allclose(counts[1:], plain, rtol=0.02)


def super_pixel_bank(sensor: int, words: list[int], version: int = 2) -> RawBank:
    """A VP bank with these words."""
    content = np.array([len(words), *words] if version < 4 else words, dtype="<u4")
    return RawBank(LhcbBankType.VP, version, sensor, memoryview(content.tobytes()))


def retina_bank(sensor: int, words: list[int], version: int = 3) -> RawBank:
    """A VPRetinaCluster bank with these words."""
    content = np.array([len(words), *words] if version < 4 else words, dtype="<u4")
    return RawBank(LhcbBankType.VP_RETINA_CLUSTER, version, sensor, memoryview(content.tobytes()))


@pytest.mark.slow
def test_every_isolated_pattern_gives_its_connected_components() -> None:
    for pattern in range(1, 256):
        (event,) = run_velo(
            encode_mep(CHAIN, [[super_pixel_bank(5, [1 << 31 | 100 << 14 | 30 << 8 | pattern])]]), GEOMETRY
        )
        pixels = {(200 + bit // 4, 120 + bit % 4) for bit in range(8) if pattern >> bit & 1}
        centres = []
        for component in connected_components(pixels):
            column, row = (sum(pixel[i] for pixel in component) // len(component) for i in (0, 1))
            centres.append(2 << 28 | 5 << 18 | column << 8 | row)
        assert sorted(event.ids.tolist()) == sorted(centres), f"pattern {pattern:#04x}"


@st.composite
def pixel_maps(draw: st.DrawFn) -> NDArray[np.uint32]:
    """[n, 3] sensor, column, row: blobs of all sizes, also at the edges of the sensors."""
    blobs = draw(
        st.lists(
            st.tuples(
                st.integers(0, 3),
                st.sampled_from([0, 1, 254, 255, 256, 400, 766, 767]),
                st.sampled_from([0, 1, 3, 4, 120, 127, 128, 254, 255]),
                st.integers(1, 9),
                st.floats(0.1, 1.0),
                st.integers(0, 2**32 - 1),
            ),
            min_size=1,
            max_size=12,
        )
    )
    pixels = []
    for sensor, column, row, size, density, seed in blobs:
        lit = np.argwhere(np.random.default_rng(seed).random((size, 2 * size)) < density)
        for c, r in lit + np.array([column - size // 2, row - size]):
            if 0 <= c < 768 and 0 <= r < 256:
                pixels.append((sensor, c, r))
    return np.unique(np.array(pixels or [(0, 0, 0)], dtype=np.uint32), axis=0)


@settings(max_examples=60)
@given(pixel_maps(), st.booleans(), st.sampled_from([2, 3, 4]))
def test_any_map_of_pixels_is_clustered_as_by_the_oracle(
    pixels: NDArray[np.uint32], with_hints: bool, version: int
) -> None:
    found = superpixels_of_pixels(*pixels.T)
    if not with_hints:
        found = SuperPixels(found.sensor, found.column, found.row, found.pattern, np.zeros_like(found.isolated))
    banks = encode_superpixels(found, version)
    (event,) = run_velo(encode_mep(CHAIN, [banks]), GEOMETRY)
    assert event.flags == 0
    clusters = super_pixels(banks)
    assert sorted(event.ids.tolist()) == sorted(cluster.lhcb_id for cluster in clusters)
    assert_sorted(event)


@settings(max_examples=60)
@given(
    st.dictionaries(st.integers(0, 103), st.lists(st.integers(0, 2**32 - 1), max_size=30), min_size=1, max_size=8),
    st.sampled_from([2, 3, 4]),
)
def test_random_retina_words_become_hits_where_their_column_exists(banks: dict[int, list[int]], version: int) -> None:
    column_bit, row_bit = (14, 3) if version == 2 else (12, 2)
    expected, beyond = [], False
    for number, words in banks.items():
        for word in words:
            column, row = word >> column_bit & 0x3FF, word >> row_bit & 0xFF
            beyond |= column >= 768
            if word and column < 768:
                sensor = 2 * number + (word >> 22 & 1) if version == 4 else number
                expected.append((sensor, column, row))
    encoded = [retina_bank(number, words, version) for number, words in banks.items()]
    (event,) = run_velo(encode_mep(CHAIN, [encoded]), GEOMETRY)
    assert event.flags == (EventFlag.BANK_ERROR if beyond else 0)
    assert sorted((i >> 18 & 0xFF, i >> 8 & 0x3FF, i & 0xFF) for i in event.ids.tolist()) == sorted(expected)
    assert_sorted(event)


def test_words_of_the_same_super_pixel_are_merged() -> None:
    word = 100 << 14 | 30 << 8
    once = run_velo(encode_mep(CHAIN, [[super_pixel_bank(5, [word | 0x33, (word | 0x10) + (1 << 8)])]]), GEOMETRY)
    twice = run_velo(
        encode_mep(CHAIN, [[super_pixel_bank(5, [word | 0x12, (word | 0x10) + (1 << 8), word | 0x21])]]), GEOMETRY
    )
    assert once[0].ids.tolist() == twice[0].ids.tolist()
    assert len(once[0].ids) == 2


@pytest.mark.parametrize(
    "bank",
    [
        RawBank(LhcbBankType.VP, 1, 7, memoryview(bytes(8))),
        RawBank(LhcbBankType.VP_RETINA_CLUSTER, 5, 7, memoryview(bytes(8))),
        RawBank(LhcbBankType.VP_RETINA_CLUSTER, 3, 7, memoryview(np.array([3, 1 << 12], "<u4").tobytes())),
        RawBank(LhcbBankType.VP, 2, 7, memoryview(np.array([2**32 - 1, 1], "<u4").tobytes())),
        RawBank(LhcbBankType.VP_RETINA_CLUSTER, 3, 7, memoryview(b"\1")),
        RawBank(LhcbBankType.VP_RETINA_CLUSTER, 4, 7, memoryview(b"\1\2\3\4\5\6")),
        RawBank(LhcbBankType.VP_RETINA_CLUSTER, 3, 3 << 11 | 208, memoryview(np.array([1, 1 << 12], "<u4").tobytes())),
        RawBank(LhcbBankType.VP_RETINA_CLUSTER, 4, 3 << 11 | 104, memoryview(np.array([1 << 12], "<u4").tobytes())),
        RawBank(91, 3, 2 << 11 | 7, memoryview(bytes(8))),
    ],
    ids=[
        "version before the first",
        "version after the last",
        "count beyond the fragment",
        "huge count",
        "no room for the count",
        "not whole words",
        "sensor that does not exist",
        "sensor pair that does not exist",
        "type of a readout error",
    ],
)
def test_a_bank_that_cannot_be_decoded_flags_its_event_and_gives_no_hits(bank: RawBank) -> None:
    source = bank.source_id if bank.source_id >> 11 else 3 << 11 | bank.source_id
    broken = RawBank(bank.type, bank.version, source, bank.payload)
    # One super-pixel with one lit pixel, or one cluster; with both encodings in one event super-pixels are not decoded.
    good = super_pixel_bank(8, [0x4001]) if bank.type == LhcbBankType.VP else retina_bank(8, [0x4001])
    good = RawBank(good.type, good.version, 2 << 11 | 8, good.payload)
    (event,) = run_velo(encode_mep(CHAIN, [[good, broken]]), GEOMETRY)
    assert event.flags == EventFlag.BANK_ERROR
    assert len(event.ids) == 1


def test_an_event_with_more_clusters_than_16_bits_number_is_flagged_and_kept_empty() -> None:
    words = list(range(4096, 4096 + 16000))
    banks = [
        RawBank(LhcbBankType.VP_RETINA_CLUSTER, 4, 3 << 11 | n, retina_bank(n, words, 4).payload) for n in range(5)
    ]
    small = [
        RawBank(LhcbBankType.VP_RETINA_CLUSTER, 4, 3 << 11 | n, retina_bank(n, words[:3], 4).payload) for n in range(5)
    ]
    mep = encode_mep(CHAIN, [banks, small])
    large_event, small_event = VeloChain(GEOMETRY, limits_of(mep), trigger=UNCUT).run(mep)
    assert large_event.flags == EventFlag.OVERFLOW
    assert len(large_event.ids) == 0
    assert small_event.flags == 0
    assert len(small_event.ids) == 15


def test_an_event_whose_hits_crowd_in_one_place_is_flagged_and_kept_empty() -> None:
    banks = [RawBank(LhcbBankType.VP_RETINA_CLUSTER, 4, 3 << 11 | 4, retina_bank(4, [0x5000] * 3000, 4).payload)]
    (event,) = run_velo(encode_mep(CHAIN, [banks]), GEOMETRY)
    assert event.flags == EventFlag.OVERFLOW
    assert (len(event.ids), event.tracks) == (0, [])
