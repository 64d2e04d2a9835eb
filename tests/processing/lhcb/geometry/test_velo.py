import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.velo import BEAMLINE_FILE, VELO_FILE, BeamLine, VeloGeometry


@pytest.fixture
def ideal() -> VeloGeometry:
    return VeloGeometry.builtin()


def write_geometry(directory: Path, geometry: VeloGeometry) -> Path:
    """The geometry in the layout of docs/formats/geometry-files.md."""
    parts = []
    for counts, values in (
        ((52,), geometry.module_z),
        ((768,), geometry.local_x),
        ((768,), geometry.x_pitch),
        ((208, 12), geometry.ltg),
    ):
        parts += [struct.pack(f"<{len(counts)}Q", *counts), values.astype("<f4").tobytes()]
    (directory / VELO_FILE).write_bytes(b"".join(parts))
    (directory / BEAMLINE_FILE).write_bytes(struct.pack("<2f", geometry.beamline.x, geometry.beamline.y))
    return directory


def random_pixels(n: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(7)
    return rng.integers(0, 208, n), rng.integers(0, 768, n), rng.integers(0, 256, n), rng.random(n), rng.random(n)


def test_the_builtin_pixels_agree_with_the_geometry_of_the_real_events(shared: Path, ideal: VeloGeometry) -> None:
    real = VeloGeometry.load(shared / "data" / "lhcb-geometry")
    pixels = random_pixels(20_000)
    distance = np.linalg.norm(ideal.local_to_global(*pixels) - real.local_to_global(*pixels), axis=1)
    assert distance.max() < 0.010
    assert real.beamline == ideal.beamline
    np.testing.assert_allclose(real.module_z, ideal.module_z, atol=0.010)


def test_a_written_geometry_is_read_back_unchanged(tmp_path: Path, ideal: VeloGeometry) -> None:
    assert VeloGeometry.load(write_geometry(tmp_path, ideal)).to_bytes() == ideal.to_bytes()


def test_the_file_of_the_beam_line_holds_its_position_and_no_slope(tmp_path: Path, ideal: VeloGeometry) -> None:
    write_geometry(tmp_path, replace(ideal, beamline=BeamLine(0.5, -0.25)))
    assert VeloGeometry.load(tmp_path).beamline == BeamLine(0.5, -0.25, 0.0, 0.0)


def test_a_beam_line_is_straight() -> None:
    beam = BeamLine(1.0, 2.0, 0.5, -0.25)
    np.testing.assert_array_equal(beam.at([0.0, 2.0, -4.0]), [[1.0, 2.0], [2.0, 1.5], [-1.0, 3.0]])


def test_the_bytes_for_the_kernels_hold_all_values_in_the_agreed_order(ideal: VeloGeometry) -> None:
    values = np.frombuffer(replace(ideal, beamline=BeamLine(1.0, 2.0, 3.0, 4.0)).to_bytes(), "<f4")
    # The mask of ASICs comes last.
    assert values.size == 52 + 768 + 768 + 208 * 12 + 4 + 27
    assert values[-31:-27].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert not values[-27:].any()
    assert values[0] == pytest.approx(-287.5)
    assert values[52] == pytest.approx(0.0275)
    assert values[52 + 768] == pytest.approx(0.055)
    np.testing.assert_array_equal(values[52 + 2 * 768 : -31].reshape(208, 12), ideal.ltg)


def test_sensors_keep_their_distance_from_the_beam(ideal: VeloGeometry) -> None:
    sensor, col, row = (grid.ravel() for grid in np.meshgrid(np.arange(208), np.arange(768), [0, 255], indexing="ij"))
    xyz = ideal.local_to_global(sensor, col, row)
    radius = np.hypot(xyz[:, 0], xyz[:, 1])
    assert 5.1 < radius.min() < 5.3
    assert radius.max() < 60.0


def test_even_and_odd_modules_are_the_two_halves_of_the_detector(ideal: VeloGeometry) -> None:
    corners = ideal.local_to_global(np.arange(208), 384, 128).reshape(52, 4, 3)
    assert (corners[::2, :, 0].mean(axis=1) < 0).all()
    assert (corners[1::2, :, 0].mean(axis=1) > 0).all()


def test_every_pixel_position_gives_back_its_pixel(ideal: VeloGeometry) -> None:
    sensor, col, row, fx, fy = random_pixels(20_000)
    col, row = np.minimum(col, 766), np.minimum(row, 254)
    fx, fy = 0.01 + 0.98 * fx, 0.01 + 0.98 * fy
    local = ideal.global_to_local(sensor, ideal.local_to_global(sensor, col, row, fx, fy))
    assert np.abs(local[:, 2]).max() < 1e-4
    back = ideal.local_to_pixel(local[:, 0], local[:, 1])
    np.testing.assert_array_equal(back[0], col)
    np.testing.assert_array_equal(back[1], row)
    np.testing.assert_allclose(back[2], fx, atol=1e-3)
    np.testing.assert_allclose(back[3], fy, atol=1e-3)


def test_a_place_beyond_the_edge_gets_the_pixel_at_the_edge(ideal: VeloGeometry) -> None:
    col, row, fx, fy = ideal.local_to_pixel(np.array([-1.0, 50.0]), np.array([-1.0, 20.0]))
    assert col.tolist() == [0, 767]
    assert row.tolist() == [0, 255]
    assert fx.tolist() == [0.0, 0.0]
    assert fy.tolist() == [0.0, 0.0]


def test_the_sensitive_area_ends_at_the_outer_edge_of_the_last_pixels(ideal: VeloGeometry) -> None:
    inside = ideal.is_inside(np.array([0.001, 42.569, 42.571, -0.001]), np.array([14.079, 0.001, 1.0, 1.0]))
    assert inside.tolist() == [True, True, False, False]


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4])


def _remove(path: Path) -> None:
    path.unlink()


def _put_nan(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-4:] = struct.pack("<f", float("nan"))
    path.write_bytes(content)


def _put_far_away(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-4:] = struct.pack("<f", 1e6)
    path.write_bytes(content)


@pytest.mark.parametrize("name", [VELO_FILE, BEAMLINE_FILE])
@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (_truncate, "bytes, expected"),
        (_remove, "cannot be read"),
        (_put_nan, "not finite"),
        (_put_far_away, "outside the detector"),
    ],
)
def test_a_damaged_file_is_named_with_what_is_wrong(
    tmp_path: Path, ideal: VeloGeometry, name: str, damage: Callable[[Path], None], complaint: str
) -> None:
    write_geometry(tmp_path, ideal)
    damage(tmp_path / name)
    with pytest.raises(GeometryError, match=complaint) as caught:
        VeloGeometry.load(tmp_path)
    assert name in str(caught.value)


def test_a_file_with_wrong_counts_is_refused(tmp_path: Path, ideal: VeloGeometry) -> None:
    path = write_geometry(tmp_path, ideal) / VELO_FILE
    path.write_bytes(struct.pack("<Q", 51) + path.read_bytes()[8:])
    with pytest.raises(GeometryError, match="module_z has counts"):
        VeloGeometry.load(tmp_path)


def test_columns_that_run_backwards_are_refused(tmp_path: Path, ideal: VeloGeometry) -> None:
    path = write_geometry(tmp_path, ideal) / VELO_FILE
    content = bytearray(path.read_bytes())
    start = 8 + 4 * 52 + 8
    content[start : start + 8] = content[start + 4 : start + 8] + content[start : start + 4]
    path.write_bytes(content)
    with pytest.raises(GeometryError, match="do not rise"):
        VeloGeometry.load(tmp_path)
