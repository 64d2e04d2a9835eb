"""Rows, slices and the field of the TPC, built in and from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.alice.geometry.slices import (
    global_from_local,
    local_from_global,
    side_sign,
    slice_angle,
    slice_at,
)
from hltnode.processing.alice.geometry.tpc_geometry import (
    FILE_NAME,
    GEOMETRY_FLOATS,
    SOLENOID_FIELD,
    SolenoidField,
    builtin_geometry,
    geometry_bytes,
    load_geometry,
)
from hltnode.processing.alice.readout import TPC_READOUT
from hltnode.protocol.alice.tpc_banks import CLUSTER, TpcBankType, cluster_bank, numbers_of_places, tpc_source
from hltnode.protocol.raw_data.raw_bank import RawBank


def document(**changes: Any) -> dict[str, Any]:
    geometry = builtin_geometry()
    return {
        "row_x": geometry.row_x.tolist(),
        "pad_width": geometry.pad_width.tolist(),
        "pad_length": geometry.pad_length.tolist(),
        "half_length": geometry.half_length,
        "field": [5.0, -2.0e-7, 0.0],
        **changes,
    }


def test_rows_have_the_published_places_and_fit_the_scales_of_the_bank() -> None:
    geometry = builtin_geometry()
    np.testing.assert_allclose(
        geometry.row_x[[0, 62, 63, 126, 127, 158]], [85.195, 131.695, 135.18, 198.18, 199.43, 245.93]
    )
    np.testing.assert_allclose(geometry.pad_width[[62, 63, 158]], [0.4, 0.6, 0.6])
    np.testing.assert_array_equal(geometry.pad_length, np.repeat([0.75, 1.0, 1.5], [63, 64, 32]))
    y, drift = numbers_of_places(geometry.half_width[-1:] * [-1.0, 1.0], np.array([0.0, geometry.half_length]))
    assert min(y.min(), drift.min()) >= 0
    assert max(y.max(), drift.max()) <= 0xFFFF
    assert geometry_bytes(None).size == 4 * GEOMETRY_FLOATS


def test_slices_cover_20_degrees_of_each_side() -> None:
    slices = np.arange(36)
    angle = slice_angle(slices)
    np.testing.assert_allclose(np.degrees(angle), np.tile(10.0 + 20.0 * np.arange(18), 2))
    for offset in (-9.99, 0.0, 9.99):
        turned = angle + np.radians(offset)
        np.testing.assert_array_equal(slice_at(np.cos(turned), np.sin(turned), side_sign(slices)), slices)
    x, y = global_from_local(slices, np.full(36, 100.0), np.full(36, 3.0))
    np.testing.assert_allclose(np.hypot(x, y), np.hypot(100.0, 3.0))
    assert np.degrees(np.arctan2(y[0], x[0])) == pytest.approx(10.0 + np.degrees(np.arctan2(3.0, 100.0)))
    np.testing.assert_allclose(local_from_global(slices, x, y), [[100.0] * 36, [3.0] * 36])


def test_the_field_solves_the_equation_of_laplace() -> None:
    field = SolenoidField(b0=5.0, z2=3.0e-7, z4=-2.0e-12)
    r, z, step = 130.0, 90.0, 0.5

    def bz(at_r: float, at_z: float) -> float:
        return float(field.bz(np.array(at_r**2), np.array(at_z)))

    radial = (bz(r + step, z) + bz(r - step, z) - 2 * bz(r, z)) / step**2 + (bz(r + step, z) - bz(r - step, z)) / (
        2 * step * r
    )
    along = (bz(r, z + step) + bz(r, z - step) - 2 * bz(r, z)) / step**2
    assert abs(radial) > 1e-7
    assert radial + along == pytest.approx(0.0, abs=1e-10)
    assert SOLENOID_FIELD.bz(np.array(0.0), np.array(249.7)) == pytest.approx(5.0 * (1 - 0.01247), rel=1e-5)
    assert builtin_geometry().field.bz(np.array(1e4), np.array(200.0)) == 5.0


def test_a_file_gives_the_geometry_that_it_describes(tmp_path: Path) -> None:
    pads = np.linspace(0.5, 2.0, 159)
    (tmp_path / FILE_NAME).write_text(json.dumps(document(half_length=200.0, pad_length=pads.tolist())))
    read = load_geometry(tmp_path)
    assert (read.half_length, read.field) == (200.0, SOLENOID_FIELD)
    np.testing.assert_allclose(read.as_floats()[159:], [200.0, 5.0, -2.0e-7, 0.0, *pads])
    np.testing.assert_array_equal(read.row_x, builtin_geometry().row_x)


def test_a_file_may_give_the_field_alone(tmp_path: Path) -> None:
    builtin = builtin_geometry()
    for content, field in (({"field": [-5.0, -2.0e-7, 0.0]}, SolenoidField(b0=-5.0, z2=-2.0e-7)), ({}, builtin.field)):
        (tmp_path / FILE_NAME).write_text(json.dumps(content))
        read = load_geometry(tmp_path)
        assert (read.field, read.half_length) == (field, builtin.half_length)
        np.testing.assert_array_equal(read.as_floats()[:159], builtin.as_floats()[:159])
        np.testing.assert_array_equal(read.pad_length, builtin.pad_length)
        np.testing.assert_array_equal(read.pad_width, builtin.pad_width)


def test_a_file_with_impossible_values_is_refused(tmp_path: Path) -> None:
    rows = document()["row_x"]
    cases: list[tuple[Any, str]] = [
        ([], "an object with"),
        ({"Field": [5.0, 0.0, 0.0]}, "unknown key 'Field'; there are 'row_x', .*, 'field'"),
        ({"field": None}, "'field': 3 finite"),
        (document(row_x=rows[:-1]), "'row_x': 159 finite"),
        (document(row_x=[*rows[:-1], "x"]), "'row_x': 159 finite"),
        (document(row_x=[*rows[:-1], 280.0]), "'row_x': rows from the beam outwards"),
        (document(row_x=[0.0, *rows[1:]]), "'row_x': rows from the beam outwards"),
        (document(row_x=[*rows[:-1], rows[-2]]), "'row_x': rows from the beam outwards"),
        (document(pad_width=[0.0] * 159), "'pad_width': pads of 0 to 10"),
        (document(pad_length=[1.0] * 158), "'pad_length': 159 finite"),
        (document(pad_length=[0.0] * 159), "'pad_length': pads of 0 to 10"),
        (document(pad_length=[10.0] * 159), "'pad_length': pads of 0 to 10"),
        (document(half_length=257.0), "'half_length': 0 to 256.1"),
        (document(half_length=0), "'half_length': 0 to 256.1"),
        (document(half_length=float("inf")), "'half_length': 1 finite"),
        (document(field=[0.0, 0.0, 0.0]), "'field': b0 of at most 20"),
        (document(field=[21.0, 0.0, 0.0]), "'field': b0 of at most 20"),
        (document(field=[5.0, 4.0e-6, 0.0]), "'field': b0 of at most 20"),
        (document(field=[5.0, 0.0, 1e300]), "'field': b0 of at most 20"),
    ]
    path = tmp_path / FILE_NAME
    for content, error in cases:
        path.write_text(json.dumps(content))
        with pytest.raises(ValueError, match=f"{FILE_NAME}: .*{error}"):
            load_geometry(tmp_path)
    path.write_text("{")
    with pytest.raises(ValueError, match=FILE_NAME):
        load_geometry(tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match="No such file"):
        load_geometry(tmp_path)


def test_the_readout_takes_clusters_and_leaves_truth_in_the_file() -> None:
    bank = cluster_bank(tpc_source(2, 1, 3), np.empty(0, CLUSTER))
    assert TPC_READOUT.source_of(bank) == bank.source_id
    assert TPC_READOUT.source_of(bank._replace(source_id=0x0800 + 1728)) is None
    assert TPC_READOUT.source_of(RawBank(16, 7, 99, memoryview(b""))) == 0
    for truth in (TpcBankType.TRUE_INDICES, TpcBankType.TRUE_PARTICLES, TpcBankType.TRUE_STATES):
        assert TPC_READOUT.source_of(bank._replace(type=truth)) is None
        assert not TPC_READOUT.reads(truth, "auto")
    assert TPC_READOUT.reads(TpcBankType.SEVERAL_BANKS, "auto")
