"""The UT geometry."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.ut import BOARDS_FILE, GEOMETRY_FILE, UtGeometry, sector_index
from hltnode.protocol import RawBank
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.ut import UtHits, decode_ut, encode_ut_v4
from hltnode.protocol.lhcb.lhcb_id import ut_channel
from hltnode.protocol.lhcb.truth import decode_particles


@pytest.fixture(scope="module")
def ideal() -> UtGeometry:
    return UtGeometry.builtin()


def write_geometry(directory: Path, geometry: UtGeometry) -> Path:
    """The geometry in the layout of docs/formats/geometry-files.md."""
    channel = ut_channel(geometry.channel_of_lane)
    used = geometry.sector_of_lane >= 0
    strips = np.where(used.reshape(240, 6).any(axis=1), 512, 0)
    fields = [
        np.where(used, getattr(channel, name), 0) for name in ("sector", "module", "face", "stave", "layer", "side")
    ]
    boards = np.concatenate([[240, 3], strips, *fields, np.full(1440, 2), geometry.channel_of_lane]).astype("<u4")
    (directory / BOARDS_FILE).write_bytes(boards.tobytes())
    columns = [geometry.pitch, geometry.dy, *geometry.dp0di.T, *geometry.p0.T, geometry.cos]
    parts = [struct.pack("<I", 1048), geometry.first_strip.astype("<u4").tobytes()]
    parts += [column.astype("<f4").tobytes() for column in columns]
    (directory / GEOMETRY_FILE).write_bytes(b"".join(parts))
    return directory


def all_strips(geometry: UtGeometry) -> UtHits:
    lane = np.repeat(np.flatnonzero(geometry.sector_of_lane >= 0), 512).astype(np.uint32)
    strip = np.tile(np.arange(1, 513, dtype=np.uint32), len(lane) // 512)
    zero = np.zeros(len(lane), np.uint32)
    return UtHits(lane // np.uint32(6), lane % np.uint32(6), strip, zero, zero, zero)


def test_the_builtin_strips_agree_with_the_geometry_of_the_real_events(geometry_files: Path, ideal: UtGeometry) -> None:
    real = UtGeometry.load(geometry_files)
    np.testing.assert_array_equal(real.sector_of_lane, ideal.sector_of_lane)
    strips = all_strips(ideal)
    expected, found = real.hits(strips), ideal.hits(strips)
    for name in ("x", "z", "y_begin", "y_end"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=0.001)
    for name in ("layer", "sector", "lhcb_id", "weight", "dx_dy"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.physics
@pytest.mark.parametrize("source", ["loaded", "built in"])
def test_every_true_hit_of_the_real_events_is_decoded(
    source: str, geometry_files: Path, real_events: list[list[RawBank]]
) -> None:
    geometry = UtGeometry.load(geometry_files) if source == "loaded" else UtGeometry.builtin()
    n_true = n_found = 0
    for event in real_events:
        true = [lhcb_id for particle in decode_particles(event) for lhcb_id in particle.ut_ids]
        decoded = set(geometry.hits(decode_ut(event)).lhcb_id.tolist())
        n_true += len(true)
        n_found += sum(lhcb_id in decoded for lhcb_id in true)
    assert (n_true, n_found) == (7662, 7662)


def test_spot_values_of_event_6002(geometry_files: Path, real_events: list[list[RawBank]]) -> None:
    hits = UtGeometry.load(geometry_files).hits(decode_ut(real_events[1]))
    columns = (hits.x, hits.y_begin, hits.y_end, hits.z)
    assert [c[0] for c in columns] == pytest.approx([-709.1400, -192.76, -95.48, 2330.2825], abs=1e-3)
    assert [c[400] for c in columns] == pytest.approx([-247.9264, 94.4957, 191.4055, 2590.2825], abs=1e-3)
    assert hits.weight[0] == pytest.approx(332.41, abs=0.005)
    assert [int(hits.lhcb_id[i]) & 0xFFFFFFF for i in (0, 400)] == [0x41C943, 0x48B4DA]
    assert [(int(hits.layer[i]), int(hits.sector[i])) for i in (0, 400)] == [(0, 5), (2, 588)]


def test_version_4_banks_give_the_positions_of_version_3(ideal: UtGeometry, real_events: list[list[RawBank]]) -> None:
    clusters = decode_ut(real_events[0])
    expected = ideal.hits(UtHits(**{n: getattr(clusters, n) for n in ("board", "lane", "strip", "flags", "adc")},
                                 fraction=np.zeros_like(clusters.fraction)))  # fmt: skip
    found = ideal.hits(decode_ut(encode_ut_v4(clusters)))
    assert sorted(found.lhcb_id.tolist()) == sorted(expected.lhcb_id.tolist())
    assert sorted(found.x.tolist()) == sorted(expected.x.tolist())


def hits_of(*places: tuple[int, int, int]) -> UtHits:
    """Hits of (board, lane, strip), whole strips without flags and charge."""
    board, lane, strip = np.array(places, np.uint32).T
    nothing = np.zeros_like(board)
    return UtHits(board, lane, strip, fraction=nothing, flags=nothing, adc=nothing)


def test_strips_of_a_rotated_sensor_count_backwards(ideal: UtGeometry) -> None:
    hits = hits_of((0, 0, 1))
    turned = replace(ideal, p0=ideal.p0 * np.array([1, 1, -1], np.float32))
    last = hits_of((0, 0, 512))
    assert turned.hits(hits).x == ideal.hits(last).x
    assert turned.hits(hits).z == ideal.hits(last).z


def test_hits_of_lanes_without_a_sensor_are_left_out(ideal: UtGeometry) -> None:
    hits = hits_of((27, 5, 1), (27, 0, 1))
    assert len(ideal.hits(hits).x) == 1


def test_every_sector_is_read_by_the_lane_that_names_it(ideal: UtGeometry) -> None:
    lanes = ideal.lane_of_sector()
    np.testing.assert_array_equal(ideal.sector_of_lane[lanes], np.arange(1048))
    np.testing.assert_array_equal(sector_index(ut_channel(ideal.channel_of_lane[lanes])), np.arange(1048))


def test_staves_overlap_so_that_no_straight_track_misses_a_layer(ideal: UtGeometry) -> None:
    rng = np.random.default_rng(3)
    tx, ty = rng.uniform(-0.25, 0.25, 5000), rng.uniform(-0.2, 0.2, 5000)
    for layer in (0, 3):
        sectors = np.flatnonzero(ideal.layer_of_sector == layer)
        p0, width = ideal.p0[sectors].astype(float), 511.0 * ideal.pitch[sectors]
        x, y = np.outer(tx, p0[:, 2]), np.outer(ty, p0[:, 2])
        inside = (x > p0[:, 0]) & (x < p0[:, 0] + width) & (y > p0[:, 1]) & (y < p0[:, 1] + ideal.dy[sectors])
        outside_beam_pipe = np.hypot(tx, ty) > 0.022
        assert inside[outside_beam_pipe].any(axis=1).mean() > 0.999


def test_a_written_geometry_is_read_back_unchanged(tmp_path: Path, ideal: UtGeometry) -> None:
    loaded = UtGeometry.load(write_geometry(tmp_path, ideal))
    for name in ideal.__slots__:
        np.testing.assert_array_equal(getattr(loaded, name), getattr(ideal, name))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GeometryError, match=BOARDS_FILE):
        UtGeometry.load(tmp_path)


@pytest.mark.parametrize(
    ("file", "at", "value", "what"),
    [
        (BOARDS_FILE, 0, 239, "number of boards is 239, expected 240"),
        (BOARDS_FILE, 4, 4, "version is 4, expected 3"),
        (BOARDS_FILE, 8, 511, "stripsPerHybrid"),
        (BOARDS_FILE, 8, 0, "no strips"),
        (BOARDS_FILE, 8 + 4 * (240 + 3 * 1440), 9, "sector that does not exist"),
        (BOARDS_FILE, 8 + 4 * (240 + 2 * 1440), 0, "read by two lanes"),
        (GEOMETRY_FILE, 0, 1047, "number of sectors is 1047"),
        (GEOMETRY_FILE, 4, 1000, "firstStrip"),
        (GEOMETRY_FILE, 4 + 4 * 1048, 0, "no pitch"),
        (GEOMETRY_FILE, 4 + 4 * 1048 * 5, 0x7FC00000, "not finite"),
        (GEOMETRY_FILE, 4 + 4 * 1048 * 5, 0x7F000000, "at most 5000"),
    ],
)
def test_a_file_with_impossible_content_is_named(
    tmp_path: Path, ideal: UtGeometry, file: str, at: int, value: int, what: str
) -> None:
    path = write_geometry(tmp_path, ideal) / file
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, at, value)
    path.write_bytes(content)
    with pytest.raises(GeometryError, match=what) as error:
        UtGeometry.load(tmp_path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("file", [BOARDS_FILE, GEOMETRY_FILE])
@pytest.mark.parametrize("change", [-1, -4, 4])
def test_a_file_of_the_wrong_size_is_named(tmp_path: Path, ideal: UtGeometry, file: str, change: int) -> None:
    path = write_geometry(tmp_path, ideal) / file
    content = path.read_bytes()
    path.write_bytes(content[:change] if change < 0 else content + bytes(change))
    with pytest.raises(GeometryError, match=file):
        UtGeometry.load(tmp_path)


def test_ut_banks_of_the_real_events_are_all_of_known_boards(
    real_events: list[list[RawBank]], ideal: UtGeometry
) -> None:
    for event in real_events:
        hits = decode_ut([bank for bank in event if bank.type == LhcbBankType.UT])
        assert len(ideal.hits(hits).x) == len(hits.board)
