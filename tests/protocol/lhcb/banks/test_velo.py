"""VELO banks."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import RawBank, RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.velo import (
    RetinaClusters,
    SuperPixels,
    decode_retina_clusters,
    decode_superpixels,
    encode_retina_clusters,
    encode_superpixels,
    superpixels_of_pixels,
)
from hltnode.protocol.lhcb.errors import VeloBankError
from tests.protocol import strategies


def rows(columns: SuperPixels | RetinaClusters) -> list[tuple[int, ...]]:
    arrays = [getattr(columns, field.name) for field in fields(columns) if field.name != "fraction_bits"]
    return list(zip(*(array.tolist() for array in arrays), strict=True))


def words(*values: int) -> memoryview:
    return memoryview(np.array(values, "<u4").tobytes())


@pytest.mark.parametrize("version", [2, 3, 4])
@given(superpixels=strategies.superpixels())
def test_superpixels_come_back_as_written(version: int, superpixels: SuperPixels) -> None:
    banks = encode_superpixels(superpixels, version)
    assert len(banks) == (104 if version == 4 else 208)
    decoded = decode_superpixels(banks)
    # A bank of version 4 holds two sensors in the order of their super-pixels.
    assert rows(decoded) == rows(superpixels)


@pytest.mark.parametrize("version", [2, 3, 4])
@given(data=st.data())
def test_retina_clusters_come_back_as_written(version: int, data: st.DataObject) -> None:
    clusters = data.draw(strategies.retina_clusters(version))
    decoded = decode_retina_clusters(encode_retina_clusters(clusters, version))
    assert rows(decoded) == rows(clusters)
    assert decoded.fraction_bits == clusters.fraction_bits


def test_the_bits_of_a_superpixel_word_are_those_of_the_format() -> None:
    bank = RawBank(LhcbBankType.VP, 2, 17, words(1, 1 << 31 | 383 << 14 | 63 << 8 | 0x81))
    assert rows(decode_superpixels([bank])) == [(17, 383, 63, 0x81, 1)]
    bank = RawBank(LhcbBankType.VP, 4, 2 << 11 | 8, words(1 << 23 | 5 << 14, 5 << 14))
    assert rows(decode_superpixels([bank])) == [(17, 5, 0, 0, 0), (16, 5, 0, 0, 0)]


def test_the_bits_of_a_retina_word_are_those_of_the_format() -> None:
    bank = RawBank(LhcbBankType.VP_RETINA_CLUSTER, 2, 17, words(1, 700 << 14 | 5 << 11 | 200 << 3 | 7))
    assert rows(decode_retina_clusters([bank])) == [(17, 700, 200, 5, 7, 0)]
    bank = RawBank(LhcbBankType.VP_RETINA_CLUSTER, 3, 17, words(1, 700 << 12 | 3 << 10 | 200 << 2 | 1))
    assert rows(decode_retina_clusters([bank])) == [(17, 700, 200, 3, 1, 0)]
    bank = RawBank(LhcbBankType.VP_RETINA_CLUSTER, 4, 8, words(1 << 22 | 700 << 12 | 3 << 10 | 200 << 2 | 1))
    assert rows(decode_retina_clusters([bank])) == [(17, 700, 200, 3, 1, 0)]


def test_no_bank_gives_no_hits() -> None:
    assert rows(decode_superpixels([])) == []
    assert rows(decode_retina_clusters([])) == []


@pytest.mark.parametrize(
    ("bank", "reason"),
    [
        (RawBank(LhcbBankType.VP, 1, 0, words(0)), RejectReason.BAD_VERSION),
        (RawBank(LhcbBankType.VP, 5, 0, words(0)), RejectReason.BAD_VERSION),
        (RawBank(LhcbBankType.VP, 2, 0, words()), RejectReason.BAD_SIZE),
        (RawBank(LhcbBankType.VP, 2, 0, words(2, 0)), RejectReason.BAD_SIZE),
        (RawBank(LhcbBankType.VP, 2, 0, words(0, 0)), RejectReason.BAD_SIZE),
        (RawBank(LhcbBankType.VP, 2, 0, words(0xFFFFFFFF)), RejectReason.BAD_SIZE),
        (RawBank(LhcbBankType.VP, 4, 0, memoryview(b"abc")), RejectReason.BAD_SIZE),
        (RawBank(LhcbBankType.VP, 2, 208, words(0)), RejectReason.UNKNOWN_SOURCE),
        (RawBank(LhcbBankType.VP, 4, 104, words()), RejectReason.UNKNOWN_SOURCE),
        (RawBank(LhcbBankType.VP, 2, 0, words(1, 384 << 14)), RejectReason.MALFORMED),
    ],
)
def test_a_damaged_superpixel_bank_is_refused_with_its_reason(bank: RawBank, reason: RejectReason) -> None:
    with pytest.raises(VeloBankError) as error:
        decode_superpixels([bank])
    assert error.value.reason is reason


def test_a_retina_column_outside_the_sensor_is_refused() -> None:
    with pytest.raises(VeloBankError):
        decode_retina_clusters([RawBank(LhcbBankType.VP_RETINA_CLUSTER, 3, 0, words(1, 768 << 12))])


def test_retina_banks_of_different_precision_do_not_mix() -> None:
    banks = [RawBank(LhcbBankType.VP_RETINA_CLUSTER, version, 0, words(0)) for version in (2, 3)]
    with pytest.raises(VeloBankError) as error:
        decode_retina_clusters(banks)
    assert error.value.reason is RejectReason.MISMATCH


def one_cluster(*, column: int = 0, flags: int = 0, bits: int = 2) -> RetinaClusters:
    zero = np.zeros(1, np.uint32)
    return RetinaClusters(zero, zero + np.uint32(column), zero, zero, zero, zero + np.uint32(flags), fraction_bits=bits)


@pytest.mark.parametrize(
    ("clusters", "version"),
    [
        (one_cluster(column=768), 3),
        (one_cluster(bits=3), 3),
        (one_cluster(flags=1), 4),
        (one_cluster(flags=1024), 3),
        (one_cluster(), 1),
    ],
)
def test_clusters_that_a_version_cannot_hold_are_refused(clusters: RetinaClusters, version: int) -> None:
    with pytest.raises(VeloBankError):
        encode_retina_clusters(clusters, version)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 20)), max_size=60),
    st.sampled_from([(0, 0), (750, 235)]),
)
def test_pixels_come_back_from_superpixels(pixels: list[tuple[int, int, int]], corner: tuple[int, int]) -> None:
    shifted = [(s, min(c + corner[0], 767), r + corner[1]) for s, c, r in pixels]
    shifted = [(s, c, r) for s, c, r in shifted if r < 256]
    sensor, column, row = np.array(shifted, np.uint32).reshape(-1, 3).T
    superpixels = superpixels_of_pixels(sensor, column, row)
    assert sorted(zip(*(a.tolist() for a in superpixels.pixels()), strict=True)) == sorted(set(shifted))
    lit = set(zip(superpixels.sensor.tolist(), superpixels.column.tolist(), superpixels.row.tolist(), strict=True))
    for (s, c, r), isolated in zip(
        zip(superpixels.sensor.tolist(), superpixels.column.tolist(), superpixels.row.tolist(), strict=True),
        superpixels.isolated.tolist(),
        strict=True,
    ):
        around = {(s, c + dc, r + dr) for dc in (-1, 0, 1) for dr in (-1, 0, 1)} - {(s, c, r)}
        assert bool(isolated) == around.isdisjoint(lit)


def test_real_banks_are_written_back_byte_by_byte(retina_events: list[list[RawBank]]) -> None:
    for banks in retina_events:
        for bank_type, again in (
            (LhcbBankType.VP, encode_superpixels(decode_superpixels(banks), 2)),
            (LhcbBankType.VP_RETINA_CLUSTER, encode_retina_clusters(decode_retina_clusters(banks), 3)),
        ):
            assert again == [b for b in banks if b.type == bank_type]


def test_real_events_have_the_known_numbers_of_clusters(retina_events: list[list[RawBank]]) -> None:
    counts = [len(decode_retina_clusters(banks).sensor) for banks in retina_events]
    assert counts == [3744, 984, 1586, 1575, 2340, 746, 884]


def test_superpixels_made_of_the_real_pixels_are_the_real_ones(superpixel_events: list[list[RawBank]]) -> None:
    for banks in superpixel_events:
        real = decode_superpixels(banks)
        assert sorted(rows(superpixels_of_pixels(*real.pixels()))) == sorted(rows(real))
