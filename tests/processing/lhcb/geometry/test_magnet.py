"""The dipole field, the tables of the VELO-UT search, and the material."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.magnet import DOWN, POLARITY_FILE, UP, Magnet, bending_power
from hltnode.processing.lhcb.geometry.material import (
    BEAM_PIPE,
    SCIFI_LAYER,
    UT_LAYER,
    VELO_MODULE,
    is_hit,
    radiation_lengths,
    scattering_angle,
    slabs,
)
from hltnode.processing.lhcb.geometry.ut_tables import TABLES_FILE, UtTables
from tests.processing.lhcb.geometry.field_maps import field_map_of


def points_of_flight(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    z = rng.uniform(0.0, 9500.0, n)
    return rng.uniform(-0.3, 0.3, n) * z, rng.uniform(-0.25, 0.25, n) * z, z


@pytest.mark.parametrize(
    "magnet",
    [Magnet(UP), Magnet(DOWN), Magnet(DOWN, field_map_of(Magnet(UP), z=(0.0, 9500.0, 500.0)))],
    ids=["up", "down", "map"],
)
def test_the_field_above_the_beam_line_is_that_of_the_field_bit_for_bit(magnet: Magnet) -> None:
    _, y, z = points_of_flight(200)
    y[:3] = 0.0
    assert magnet.field_above(y, z).tobytes() == magnet.field(np.zeros_like(y), y, z)[1:].tobytes()
    assert magnet.field_above(y[:, None], z[:5]).shape == (2, 200, 5)


def test_the_bending_power_is_about_four_tesla_metres() -> None:
    field = Magnet(UP).field
    assert bending_power(field, 0.0, 9410.0) == pytest.approx(4.167, abs=0.02)
    assert bending_power(field, 0.0, 8530.0) == pytest.approx(4.06, abs=0.02)
    assert bending_power(field, 770.0, 2484.6) == pytest.approx(0.095, abs=0.005)
    assert bending_power(Magnet(DOWN).field, 0.0, 9410.0) == -bending_power(field, 0.0, 9410.0)
    # Small in the VELO, as measured.
    assert bending_power(field, 0.0, 770.0) == pytest.approx(0.0146, abs=0.002)


def test_the_kick_is_in_the_middle_of_the_magnet() -> None:
    z = np.arange(5.0, 8530.0, 10.0)
    by = Magnet(UP).field(0.0, 0.0, z)[1]
    assert np.sum(by * z) / np.sum(by) == pytest.approx(5183.0, abs=10.0)
    assert by.max() == pytest.approx(1.13, abs=0.02)


def test_the_field_has_no_divergence_and_no_rotation_in_the_region_of_tracks() -> None:
    x, y, z = points_of_flight(500)
    field = Magnet(UP).field
    step = 1.0
    gradient = [
        (field(x + step * (i == 0), y + step * (i == 1), z + step * (i == 2))
         - field(x - step * (i == 0), y - step * (i == 1), z - step * (i == 2))) / (2 * step)
        for i in range(3)
    ]  # fmt: skip
    assert np.abs(gradient[0][0] + gradient[1][1] + gradient[2][2]).max() < 2e-7
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(gradient[i][j] - gradient[j][i]).max() < 2e-7


def test_the_field_is_symmetric_about_both_planes() -> None:
    x, y, z = points_of_flight(500)
    field = Magnet(UP).field
    at = field(x, y, z)
    np.testing.assert_allclose(field(-x, y, z), at * np.array([[-1], [1], [1]]), atol=1e-9)
    np.testing.assert_allclose(field(x, -y, z), at * np.array([[-1], [1], [-1]]), atol=1e-9)


def test_polarity_is_read_from_its_file(tmp_path: Path, geometry_files: Path) -> None:
    assert Magnet.load(geometry_files) == Magnet.builtin(DOWN)
    (tmp_path / POLARITY_FILE).write_bytes(struct.pack("<f", 1.0))
    assert Magnet.load(tmp_path) == Magnet(UP)


@pytest.mark.parametrize(
    "content", [b"", b"\0\0\0", struct.pack("<2f", 1, 1), *(struct.pack("<f", v) for v in (0, 0.5, 2))]
)
def test_a_file_without_a_valid_polarity_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / POLARITY_FILE).write_bytes(content)
    with pytest.raises(GeometryError, match=POLARITY_FILE):
        Magnet.load(tmp_path)


def test_the_tables_of_the_builtin_field_are_near_the_real_ones(geometry_files: Path) -> None:
    real, ideal = UtTables.load(geometry_files), UtTables.builtin()
    np.testing.assert_allclose(ideal.dx_lay[:21], real.dx_lay[:21], rtol=0.01)
    # The range of most tracks: |ty| up to 0.16.
    np.testing.assert_allclose(ideal.bdl[:, :, 7:24], real.bdl[:, :, 7:24], atol=0.0035)


def test_written_tables_are_read_back_unchanged_and_damaged_ones_named(tmp_path: Path) -> None:
    ideal = UtTables.builtin()
    parts = [struct.pack("<3iQ", 2, 3, 30, 124), ideal.dx_lay.astype("<f4").tobytes()]
    parts += [struct.pack("<4iQ", 3, 30, 10, 10, 3751), ideal.bdl.astype("<f4").tobytes()]
    content = b"".join(parts)
    path = tmp_path / TABLES_FILE
    path.write_bytes(content)
    loaded = UtTables.load(tmp_path)
    np.testing.assert_array_equal(loaded.bdl, ideal.bdl)
    np.testing.assert_array_equal(loaded.dx_lay, ideal.dx_lay)
    for damaged in (content[:-1], content + b"\0", b"\3" + content[1:], content[:12] + b"\xff" + content[13:]):
        path.write_bytes(damaged)
        with pytest.raises(GeometryError, match=TABLES_FILE):
            UtTables.load(tmp_path)


def test_the_material_adds_up_along_the_beam() -> None:
    ordered = slabs()
    assert [slab.z for slab in ordered] == sorted(slab.z for slab in ordered)
    assert sum(slab.name == "VELO module" for slab in ordered) == 52
    # More than the published 4.5 % of the UT: fitted to the scattering of real particles.
    assert radiation_lengths(200.0, 100.0, 2300.0, 2700.0) == pytest.approx(4 * UT_LAYER)
    assert radiation_lengths(1000.0, 500.0, 7700.0, 9500.0) == pytest.approx(12 * SCIFI_LAYER)
    # A particle on one side crosses that side's modules only.
    assert radiation_lengths(20.0, 20.0, -300.0, 760.0) == pytest.approx(26 * VELO_MODULE)
    assert radiation_lengths(0.0, 0.0, -300.0, 760.0) == 0.0
    before_muons = radiation_lengths(1000.0, 500.0, 0.0, 15_000.0)
    assert 50.0 < before_muons < 60.0


def test_scattering_is_that_of_highland_with_the_logarithm_for_thick_material() -> None:
    assert scattering_angle(1000.0, 0.01) == pytest.approx(0.00136, rel=0.01)
    # The variances of thin slabs add up; the formula's logarithm counts for thick material.
    assert scattering_angle(1000.0, 0.04) == pytest.approx(2 * scattering_angle(1000.0, 0.01))
    assert scattering_angle(1000.0, 55.0) == pytest.approx(13.6e-3 * 55**0.5 * 1.152, rel=0.001)
    assert scattering_angle(2000.0, 0.01) == pytest.approx(scattering_angle(1000.0, 0.01) / 2)


def test_a_slab_covers_what_lies_between_its_hole_and_its_edge() -> None:
    (pipe,) = (slab for slab in slabs() if slab.name == "beam pipe")
    assert is_hit(pipe, [0.0, 20.0, 45.0, 47.0], 0.0).tolist() == [False, True, True, False]


def test_a_particle_along_the_beam_pipe_crosses_much_of_its_wall() -> None:
    thin, thick = BEAM_PIPE[0].thickness(np.array([0.3, 0.026]))
    assert thin < 0.02
    assert thick > 1.0


def test_the_energy_loss_in_slabs_is_that_of_minimum_ionising_particles() -> None:
    loss = {slab.name: slab.energy_loss for slab in slabs()}
    assert loss["VELO module"] == pytest.approx(0.29, abs=0.05)
    assert loss["muon filter"] == pytest.approx(915.0, rel=0.1)


def test_the_bending_power_of_a_steep_track_includes_the_field_along_the_beam() -> None:
    def field(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> np.ndarray:
        # By = 1 T and Bz = 0.5 T at y > 0, else none.
        return np.array([0.0, 1.0, 0.5])[:, None] * (np.asarray(y) > 0)

    assert bending_power(field, 0.0, 2000.0, ty=0.2) == pytest.approx((1.0 - 0.2 * 0.5) * 2.0)
    assert bending_power(field, 0.0, 2000.0, ty=-0.2) == 0.0
