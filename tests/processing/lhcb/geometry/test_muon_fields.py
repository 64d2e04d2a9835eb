"""The fields of interest of the muon stations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.muon_fields import FIELDS_FILE, FieldsOfInterest


def assert_equal(found: FieldsOfInterest, expected: FieldsOfInterest) -> None:
    for name in ("a", "b", "c"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_the_builtin_fields_are_those_of_the_file(shared: Path) -> None:
    assert_equal(FieldsOfInterest.load(shared / "data/lhcb-parameters"), FieldsOfInterest.builtin())


def test_a_folder_without_the_file_has_the_builtin_fields(tmp_path: Path) -> None:
    assert_equal(FieldsOfInterest.load(tmp_path), FieldsOfInterest.builtin())


def test_a_file_is_read_by_station_parameter_axis_and_region(tmp_path: Path) -> None:
    values = np.arange(96, dtype="<f4").reshape(4, 3, 2, 4)
    values.tofile(tmp_path / FIELDS_FILE)
    fields = FieldsOfInterest.load(tmp_path)
    np.testing.assert_array_equal(fields.b, values[:, 1])
    by_axis = np.frombuffer(fields.to_bytes(), "<f4").reshape(3, 2, 4, 4)
    np.testing.assert_array_equal(by_axis, values.transpose(1, 2, 0, 3))


def test_fields_shrink_with_momentum() -> None:
    sizes = FieldsOfInterest.builtin().half_sizes(np.zeros(2, int), np.zeros(2, int), np.array([1e4, 1e7]))
    assert sizes[0] == pytest.approx([5.2 + 31 * np.exp(-0.6), 3.3 + 17 * np.exp(-1.3)])
    assert sizes[1] == pytest.approx([5.2, 3.3])


@pytest.mark.parametrize("value", [np.nan, -1.0, 1e4])
def test_a_file_with_impossible_values_is_named(tmp_path: Path, value: float) -> None:
    np.full(96, value, "<f4").tofile(tmp_path / FIELDS_FILE)
    with pytest.raises(GeometryError, match=FIELDS_FILE):
        FieldsOfInterest.load(tmp_path)


def test_a_file_of_the_wrong_size_is_named(tmp_path: Path) -> None:
    np.ones(97, "<f4").tofile(tmp_path / FIELDS_FILE)
    with pytest.raises(GeometryError, match=FIELDS_FILE):
        FieldsOfInterest.load(tmp_path)
