"""The tables of mats for the kernels, compared with the geometry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.scifi import N_MATS, SciFiGeometry
from hltnode.processing.lhcb.geometry.scifi_mats import NO_PLACE, mat_table, read_out_table

IDEAL = SciFiGeometry.builtin()
FIRST_CHANNEL = 512 << 9


def mats() -> NDArray[np.int64]:
    return np.flatnonzero(IDEAL.half_pitch > 0)


@pytest.mark.parametrize("source", ["loaded", "built in"])
def test_positions_from_the_table_are_those_of_the_geometry(source: str, geometry_files: Path) -> None:
    geometry = SciFiGeometry.load(geometry_files) if source == "loaded" else IDEAL
    rng = np.random.default_rng(2)
    mat, channel, fraction = rng.choice(mats(), 5000), rng.integers(0, 512, 5000), rng.integers(0, 2, 5000)
    ids = (FIRST_CHANNEL + (mat << 9) + channel).astype(np.uint32)
    expected = geometry.positions(ids, fraction.astype(np.uint32), np.full(5000, 4, np.uint32))
    t = mat_table(geometry)[mat]
    u = (2 * (channel & 127) + fraction) * t["half_pitch"].astype(float)
    u += np.where(channel & 64, t["die_gap"], 0) + (channel >> 7) * t["sipm_pitch"]
    np.testing.assert_allclose(t["x_first"] + t["dx_du"] * u, expected.x, atol=3e-4)
    np.testing.assert_allclose(t["z_first"] + t["dz_du"] * u, expected.z, atol=6e-4)
    np.testing.assert_allclose(t["y_end_first"] + t["dy_end_du"] * u, expected.y_end, atol=1e-4)
    for name in ("length_y", "dx_dy", "dz_dy"):
        np.testing.assert_array_equal(t[name], getattr(expected, name).astype(np.float32))
    np.testing.assert_array_equal(t["zone"], expected.zone)


def test_places_are_in_the_order_of_zone_and_x() -> None:
    table, read_out = mat_table(IDEAL), read_out_table(IDEAL)[0]
    by_place = table[read_out["mat"]]
    assert by_place["place"].tolist() == list(range(N_MATS))
    assert np.all(np.diff(by_place["zone"].astype(int)) >= 0)
    for zone, (first, last) in enumerate(zip(read_out["first_place"][:24], read_out["first_place"][1:25], strict=True)):
        assert set(by_place["zone"][first:last].tolist()) == {zone}
        assert np.all(np.diff(by_place["x_first"][first:last]) > 0)
    assert set(read_out["first_place"][24:].tolist()) == {N_MATS}
    assert np.flatnonzero(table["place"] != NO_PLACE).tolist() == mats().tolist()


def test_each_mat_belongs_to_one_bank_and_stands_beside_the_others_of_it() -> None:
    table, read_out = mat_table(IDEAL), read_out_table(IDEAL)[0]
    of_banks = [range(first, first + n) for first, n in zip(read_out["first_mat"], read_out["n_mats"], strict=True)]
    assert sorted(mat for of_bank in of_banks for mat in of_bank) == mats().tolist()
    for bank, of_bank in enumerate(of_banks):
        assert set(table["bank"][list(of_bank)].tolist()) == {bank}
        assert IDEAL.first_channel[bank] == FIRST_CHANNEL + (of_bank[0] << 9)


def moved(by: float) -> SciFiGeometry:
    points = IDEAL.mirror_point.copy()
    points[1, 0] += by
    return replace(IDEAL, mirror_point=points)


def test_mats_may_be_misaligned_as_long_as_they_do_not_overlap() -> None:
    for by in (0.4, -0.4):
        assert len(mat_table(moved(by))) == len(mat_table(IDEAL))


@pytest.mark.parametrize(
    ("geometry", "what"),
    [
        (moved(1.0), "overlap in x"),
        (moved(-1.0), "overlap in x"),
        (replace(IDEAL, die_gap=-IDEAL.die_gap), "do not follow one another"),
        (replace(IDEAL, sipm_pitch=IDEAL.sipm_pitch - np.float32(1)), "do not follow one another"),
        (replace(IDEAL, ddx=np.zeros_like(IDEAL.ddx)), "do not follow one another"),
        (replace(IDEAL, first_channel=IDEAL.first_channel + np.uint32(128)), "read by no bank"),
        (replace(IDEAL, first_channel=np.where(np.arange(240) == 3, 0x41880, IDEAL.first_channel)), "inside a mat"),
        (replace(IDEAL, first_channel=np.where(np.arange(240) == 3, 0x41000, IDEAL.first_channel)), "reads no mat"),
    ],
)
def test_a_geometry_whose_hits_would_not_be_in_order_is_refused(geometry: SciFiGeometry, what: str) -> None:
    with pytest.raises(GeometryError, match=f"scifi_geometry.bin: .*{what}"):
        read_out_table(geometry)
