"""The order of UT sectors, and the look-up tables of the kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.magnet import DOWN
from hltnode.processing.lhcb.geometry.ut import UtGeometry
from hltnode.processing.lhcb.geometry.ut_groups import X_BIN, X_HALF, Y_BIN, Y_HALF, UtSectorGroups
from hltnode.processing.lhcb.geometry.ut_tables import UtTables
from hltnode.processing.lhcb.ut.collections import UT_GEOMETRY, UT_TABLES


@pytest.fixture(scope="module")
def groups() -> UtSectorGroups:
    return UtSectorGroups.of(UtGeometry.builtin())


def test_layers_have_20_20_22_and_22_groups_of_sectors_at_one_x(groups: UtSectorGroups) -> None:
    assert groups.first_group.tolist() == [0, 20, 40, 62, 84]
    assert sorted(groups.sectors.tolist()) == list(range(1048))
    for begin, end in zip(groups.first_sector[:-1], groups.first_sector[1:], strict=True):
        x = groups.geometry.p0[groups.sectors[begin:end], 0]
        assert np.ptp(x) <= 2.0
        assert (np.diff(groups.y[begin:end], axis=0) > 0).all()


def test_what_kernels_get_has_the_layout_of_the_records(groups: UtSectorGroups) -> None:
    content = np.frombuffer(groups.to_bytes(), UT_GEOMETRY.dtype)[0]
    assert content["n_groups"] == 84
    assert content["first_group"].tolist() == [0, 20, 40, 62]
    assert content["first_sector"][84:].tolist() == [1048] * 44
    assert content["dx_dy"].tolist() == pytest.approx([0.0, 0.08748867, -0.0874886, 0.0])
    assert content["layer_z"].tolist() == pytest.approx([2327.5, 2372.5, 2597.5, 2642.5])
    tables = np.frombuffer(UtTables.builtin().to_bytes(DOWN), UT_TABLES.dtype)[0]
    assert tables["polarity"] == DOWN
    np.testing.assert_array_equal(tables["layer_deflection"], UtTables.builtin().dx_lay)


def test_the_look_up_finds_every_sector_that_holds_a_place(groups: UtSectorGroups) -> None:
    content = np.frombuffer(groups.to_bytes(), UT_GEOMETRY.dtype)[0]
    rng = np.random.default_rng(1)
    for sector in rng.integers(0, 1048, 400):
        group = int(np.searchsorted(groups.first_sector, sector, side="right")) - 1
        layer = int(np.searchsorted(groups.first_group, group, side="right")) - 1
        x, y = rng.uniform(*groups.x[sector]), rng.uniform(*groups.y[sector])
        first = int(content["group_of_x"][layer, int((x + X_HALF) / X_BIN)])
        assert first <= group
        assert (content["group_x"]["low"][first : group + 1] <= x).all()
        rows = content["sectors_of_y"][group, int((y + Y_HALF) / Y_BIN)]
        assert rows["first"] <= sector - groups.first_sector[group] < rows["end"]


def test_the_bending_power_is_interpolated_to_the_end_of_the_velo() -> None:
    tables = UtTables.builtin()
    np.testing.assert_allclose(tables.bdl_from(160.0), tables.bdl[2])
    np.testing.assert_allclose(tables.bdl_from(800.0), tables.bdl[10])
    np.testing.assert_allclose(
        tables.bdl_from(770.0), tables.bdl[9] + 0.625 * (tables.bdl[10] - tables.bdl[9]), rtol=1e-6
    )


def test_a_sector_that_ends_below_one_that_begins_below_it_is_refused() -> None:
    geometry = UtGeometry.builtin()
    p0, dy = geometry.p0.copy(), geometry.dy.copy()
    p0[1, 1] = p0[0, 1] + 1.0
    dy[1] = 50.0
    with pytest.raises(GeometryError, match="no order by both ends"):
        UtSectorGroups.of(replace(geometry, p0=p0, dy=dy))


def test_a_detector_of_too_many_groups_is_refused() -> None:
    geometry = UtGeometry.builtin()
    p0 = geometry.p0.copy()
    p0[:, 0] += 3.0 * (np.arange(1048) % 14)
    with pytest.raises(GeometryError, match="groups of sectors, at most 127"):
        UtSectorGroups.of(replace(geometry, p0=p0))
