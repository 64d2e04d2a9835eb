"""The SciFi geometry."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry import ideal_scifi
from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.scifi import GEOMETRY_FILE, SciFiGeometry
from hltnode.processing.lhcb.geometry.scifi_sipms import NO_SIPM
from hltnode.protocol import RawBank
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.scifi import SciFiHits, decode_scifi
from hltnode.protocol.lhcb.truth import decode_particles


@pytest.fixture(scope="module")
def ideal() -> SciFiGeometry:
    return SciFiGeometry.builtin()


def hits_of(bank: int, offset: int) -> SciFiHits:
    return SciFiHits(*(np.array([value], np.uint32) for value in (bank, offset, 0, 4)))


def test_the_builtin_fibres_agree_with_the_geometry_of_the_real_events(
    geometry_files: Path, real_events: list[list[RawBank]], ideal: SciFiGeometry
) -> None:
    real = SciFiGeometry.load(geometry_files)
    np.testing.assert_array_equal(real.first_channel, ideal.first_channel)
    for name in ("mirror_point", "ddx", "u_begin", "half_pitch", "die_gap", "sipm_pitch", "dx_dy", "dz_dy", "length_y"):
        np.testing.assert_allclose(getattr(ideal, name), getattr(real, name), atol=0.001)
    for event in real_events:
        hits = decode_scifi(event)
        expected, found = real.hits(hits), ideal.hits(hits)
        for name in ("x", "z", "y_end", "length_y"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=0.002)


@pytest.mark.physics
@pytest.mark.parametrize("source", ["loaded", "built in"])
def test_every_true_hit_of_the_real_events_is_decoded(
    source: str, geometry_files: Path, real_events: list[list[RawBank]]
) -> None:
    geometry = SciFiGeometry.load(geometry_files) if source == "loaded" else SciFiGeometry.builtin()
    n_true = n_found = 0
    for event in real_events:
        true = [lhcb_id for particle in decode_particles(event) for lhcb_id in particle.scifi_ids]
        decoded = set(geometry.hits(decode_scifi(event)).lhcb_id.tolist())
        n_true += len(true)
        n_found += sum(lhcb_id in decoded for lhcb_id in true)
    assert (n_true, n_found) == (22961, 22961)


def test_spot_values_of_event_6002(geometry_files: Path, real_events: list[list[RawBank]]) -> None:
    banks = [RawBank(b.type, 4, b.source_id, b.payload) for b in real_events[1] if b.type == LhcbBankType.FT_CLUSTER]
    words = decode_scifi(banks)
    hits = SciFiGeometry.load(geometry_files).hits(words)
    assert [int(hits.lhcb_id[i]) & 0xFFFFFFF for i in (0, 1, 2000)] == [0x40020, 0x40073, 0xD8FA9]
    assert words.fraction[[0, 1, 2000]].tolist() == [1, 0, 1]
    assert words.bank[2000] == 191
    assert hits.x[[0, 1, 2000]] == pytest.approx([-518.1100, -497.2650, -557.4924], abs=1e-3)
    assert hits.z[[0, 2000]] == pytest.approx([7826.0993, 9262.8995], abs=1e-3)
    assert hits.y_end[[0, 2000]] == pytest.approx([-1.122, -19.265], abs=1e-3)
    assert (hits.y_end + hits.length_y)[[0, 2000]] == pytest.approx([-2425.11, 2395.50], abs=0.01)


def test_layers_and_zones_follow_from_the_channel(ideal: SciFiGeometry, real_events: list[list[RawBank]]) -> None:
    hits = ideal.hits(decode_scifi(real_events[0]))
    nominal = np.add.outer(ideal_scifi.STATION_Z, ideal_scifi.LAYER_Z).ravel()
    assert np.abs(hits.z - nominal[hits.layer]).max() < 0.5
    np.testing.assert_array_equal(hits.zone % 2, hits.length_y > 0)
    np.testing.assert_array_equal(hits.zone // 2, hits.layer)


def test_channels_of_a_mat_are_a_quarter_millimetre_apart_but_for_gaps(ideal: SciFiGeometry) -> None:
    offset = np.arange(512, dtype=np.uint32)
    zero = np.zeros_like(offset)
    x = ideal.hits(SciFiHits(zero, offset, zero, zero + np.uint32(4))).x
    steps = np.round(np.diff(x), 3)
    assert set(steps.tolist()) == {0.25, 0.47, 0.73}
    assert np.flatnonzero(steps == 0.73).tolist() == [127, 255, 383]


def test_hits_outside_the_detector_are_left_out(ideal: SciFiGeometry) -> None:
    assert len(ideal.hits(hits_of(0, 127)).x) == 1
    # Quarters of station 1 have five modules.
    assert len(ideal.hits(hits_of(4, 16 * 128)).x) == 0
    assert len(ideal.hits(hits_of(239, 127 * 128 + 127)).x) == 0


def test_a_written_geometry_is_read_back_unchanged(tmp_path: Path, ideal: SciFiGeometry) -> None:
    ideal.save(tmp_path)
    loaded = SciFiGeometry.load(tmp_path)
    assert loaded.sipms is None
    for name in ideal.__slots__[:-1]:
        np.testing.assert_array_equal(getattr(loaded, name), getattr(ideal, name))
    with pytest.raises(ValueError, match="needs the SiPMs"):
        loaded.save(tmp_path, version=8)


def test_a_written_list_of_sipms_is_read_back_unchanged(tmp_path: Path, ideal: SciFiGeometry) -> None:
    ideal.save(tmp_path, version=8)
    loaded = SciFiGeometry.load(tmp_path)
    assert loaded.sipms is not None
    assert ideal.sipms is not None
    np.testing.assert_array_equal(loaded.sipms.source, ideal.sipms.source)
    np.testing.assert_array_equal(loaded.sipms.sipm, ideal.sipms.sipm)
    assert (ideal.sipms.sipm != NO_SIPM).sum() == 4096
    assert len(loaded.first_channel) == 0
    np.testing.assert_array_equal(loaded.length_y, ideal.length_y)
    with pytest.raises(ValueError, match="needs the first channels"):
        loaded.save(tmp_path)


def test_the_file_of_the_real_events_is_written_back_byte_by_byte(geometry_files: Path, tmp_path: Path) -> None:
    path = SciFiGeometry.load(geometry_files).save(tmp_path)
    assert path.read_bytes() == (geometry_files / GEOMETRY_FILE).read_bytes()


# Words of a file with lists of SiPMs: 57 of the head, 240 source ids, 24 SiPMs of each.
@pytest.mark.parametrize(
    ("at", "value", "what"),
    [
        (4 * 55, 0, "number of banks is 0, 1 to 512"),
        (4 * 55, 513, "number of banks is 513"),
        (4 * 57, 0x10000, "source ids of banks hold 65536"),
        (4 * 58, 0x4000, "source ids of banks: one is listed twice"),
        (4 * 297, 0x40080, "SiPMs of links: one is listed twice"),
        (4 * 297, 0x40001, "262145 is no SiPM"),
        (4 * 297, 0x43000, "is no SiPM"),  # a sixth module
        (4 * 297, 0xFFFFFF80, "is no SiPM"),
    ],
)
def test_an_impossible_list_of_sipms_is_named(
    tmp_path: Path, ideal: SciFiGeometry, at: int, value: int, what: str
) -> None:
    path = ideal.save(tmp_path, version=8)
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, at, value)
    path.write_bytes(content)
    with pytest.raises(GeometryError, match=what) as error:
        SciFiGeometry.load(tmp_path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("at", "value", "what"),
    [
        (0, 4, "number of stations is 4"),
        (20, 7, "modules of quarters"),
        (4 * 54, 1, "number of mats is 1"),
        (4 * 55, 239, "number of banks is 239, expected 240"),
        (4 * 57, 3, "outside the detector"),
        (4 * 297, 0xFFFFFFFF, "mat indices is 4294967295"),
        (4 * 298, 0x7F800000, "not finite"),
        (4 * (298 + 7 * 1536), 0, "1023 mats have channels"),
    ],
)
def test_a_file_with_impossible_content_is_named(
    tmp_path: Path, ideal: SciFiGeometry, at: int, value: int, what: str
) -> None:
    path = ideal.save(tmp_path)
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, at, value)
    path.write_bytes(content)
    with pytest.raises(GeometryError, match=what) as error:
        SciFiGeometry.load(tmp_path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("size", [0, 100, 81_063, 81_068])
def test_a_file_of_the_wrong_size_is_named(tmp_path: Path, ideal: SciFiGeometry, size: int) -> None:
    path = ideal.save(tmp_path)
    path.write_bytes(path.read_bytes().ljust(size, b"\0")[:size])
    with pytest.raises(GeometryError, match=GEOMETRY_FILE):
        SciFiGeometry.load(tmp_path)
