"""Maps of the magnetic field, and their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.field_map_file import read_field_map
from hltnode.processing.lhcb.geometry.magnet import DOWN, UP, Magnet
from hltnode.processing.offline import field_map_file
from tests.processing.lhcb.geometry.field_maps import Range, field_map_of, points_of, text_of
from tests.processing.lhcb.geometry.test_magnet import points_of_flight

COARSE: tuple[Range, Range, Range] = ((0.0, 3600.0, 600.0), (0.0, 2500.0, 500.0), (-500.0, 9500.0, 500.0))
WHOLE: tuple[Range, Range, Range] = ((-3600.0, 3600.0, 600.0), (-2500.0, 2500.0, 500.0), (-500.0, 9500.0, 500.0))
POINTS = points_of(field_map_of(Magnet(DOWN), *COARSE))
TEXT = text_of(POINTS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "field_map.txt"


def test_a_map_is_the_field_within_a_few_millitesla() -> None:
    points = points_of_flight(5000)
    magnet = Magnet(DOWN)
    difference = np.abs(field_map_of(magnet).field(*points) - magnet.field(*points))
    assert difference.max() < 0.010
    assert np.quantile(difference, 0.99) < 0.002


def test_points_outside_have_the_field_of_the_edge() -> None:
    found = field_map_of(Magnet(UP), *WHOLE)
    np.testing.assert_array_equal(found.field(9000.0, 9000.0, 99_000.0), found.field(3600.0, 2500.0, 9500.0))
    np.testing.assert_array_equal(found.field(-9000.0, -9000.0, -9000.0), found.field(-3600.0, -2500.0, -500.0))
    # At a grid point the field is the value of this point.
    np.testing.assert_allclose(found.field(600.0, -500.0, 5000.0), Magnet(UP).field(600.0, -500.0, 5000.0), atol=1e-6)


@pytest.mark.parametrize("polarity", [UP, DOWN])
@pytest.mark.parametrize("ranges", [COARSE, WHOLE, (WHOLE[0], *COARSE[1:])])
def test_a_file_is_read_back_in_any_order_of_its_lines(
    path: Path, polarity: float, ranges: tuple[Range, Range, Range]
) -> None:
    written = field_map_of(Magnet(polarity), *ranges)
    path.write_text(text_of(np.random.default_rng(1).permutation(points_of(written))))
    magnet = read_field_map(path)
    assert magnet.polarity == polarity
    points = points_of_flight(300)
    np.testing.assert_allclose(magnet.field(*points), written.field(*points), atol=2e-6)


def test_one_quarter_stands_for_the_whole(path: Path) -> None:
    path.write_text(TEXT)
    points = points_of_flight(300)
    whole = field_map_of(Magnet(DOWN), *WHOLE)
    np.testing.assert_allclose(read_field_map(path).field(*points), whole.field(*points), atol=2e-6)


def test_other_fields_have_other_digests(path: Path) -> None:
    path.write_text(TEXT)
    first = read_field_map(path).digest
    points = POINTS.copy()
    points[7, 4] += 0.001
    path.write_text(text_of(points))
    assert first != read_field_map(path).digest != Magnet(DOWN).digest


def changed(row: int, column: int, value: float) -> str:
    points = POINTS.copy()
    points[row, column] = value
    return text_of(points)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no point"),
        ("# only a comment\n", "holds no point"),
        ("x y z Bx By Bz\n", "is not lines of numbers"),
        ("\xff", "is not lines of numbers"),
        ("1 2 3 4 5\n", "5 numbers in a line, expected 6"),
        ("1 2 3 4 5 6\n1 2\n", "is not lines of numbers"),
        ("1 2 3 4 nan 1\n", "point 1 2 3 4 nan 1"),
        ("1 2 3 4 inf 1\n", "point 1 2 3 4 inf 1"),
        (text_of(POINTS * np.array([1, 1, 1, 1e4, 1e4, 1e4])), "at most 100000 mm and 5 T"),
        ("0 0 0 0 1 0\n", "all points have the same x"),
        (text_of(POINTS[:-1]), r"points, expected each point of 7 x 6 x 21 once"),
        (text_of(np.concatenate([POINTS[:-1], POINTS[:1]])), "once"),
        (text_of(np.concatenate([POINTS, POINTS[:1]])), "once"),
        (changed(5, 0, 3.0), "the steps in x are not equal"),
        (changed(5, 0, 0.02), "the steps in x are not equal"),
        (text_of(POINTS * np.array([0.1, 1, 1, 1, 1, 1])), "x from 0 to 360 mm; tracks need -3200 to 3200, or from 0"),
        (text_of(POINTS + np.array([600, 0, 0, 0, 0, 0])), "x from 600 to 4200 mm"),
        (text_of(POINTS * np.array([1, -1, 1, 1, 1, 1])), "y from -2500 to 0 mm"),
        (text_of(POINTS + np.array([0, 0, 1000, 0, 0, 0])), "z from 500 to 10500 mm; tracks need 0 to 9500"),
        (text_of(POINTS * np.array([1, 1, 1, 1, 0.1, 1])), r"sums up to -0.4\d* T m; 1 to 10"),
    ],
)
def test_a_file_that_is_no_map_of_the_dipole_is_named_with_what_is_wrong(path: Path, text: str, message: str) -> None:
    path.write_text(text, encoding="latin-1")
    with pytest.raises(GeometryError, match=message) as found:
        read_field_map(path)
    assert str(path) in str(found.value)


def test_a_file_that_is_too_large_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(TEXT)
    monkeypatch.setattr(field_map_file, "MAX_POINTS", len(POINTS) - 1)
    with pytest.raises(GeometryError, match=f"more than {len(POINTS) - 1} points"):
        read_field_map(path)
    monkeypatch.setattr(field_map_file, "MAX_BYTES", len(TEXT) - 1)
    with pytest.raises(GeometryError, match=f"{len(TEXT)} bytes, at most {len(TEXT) - 1} are read"):
        read_field_map(path)


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    for place, message in (
        (tmp_path / "none", "cannot be read"),
        (tmp_path, "is no file"),
        (Path("/dev/zero"), "no file"),
    ):
        with pytest.raises(GeometryError, match=f"{place}.*{message}"):
            read_field_map(place)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(TEXT) - 1), st.integers(0, 255)), max_size=4),
    st.integers(0, len(TEXT)),
    st.binary(max_size=40),
)
def test_damaged_files_are_read_or_refused(path: Path, changes: list[tuple[int, int]], end: int, tail: bytes) -> None:
    content = bytearray(TEXT.encode())
    for at, value in changes:
        content[at] = value
    path.write_bytes((bytes(content[:end]) if len(tail) % 2 else bytes(content)) + tail)
    try:
        magnet = read_field_map(path)
    except GeometryError:
        return
    assert np.isfinite(magnet.field(10.0, 10.0, 5000.0)).all()
