"""Maps of a field, and their files."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.offline.field_map import FieldMap
from hltnode.processing.offline.field_map_file import FieldMapError, read_map, require_reach

REACH = ((-200.0, 200.0), (-100.0, 100.0), (0.0, 500.0))


def some_map(*, first_x: float = -200.0) -> FieldMap:
    n = (int((200.0 - first_x) / 100.0) + 1, 3, 6)
    values = np.random.default_rng(3).normal(size=(3, *n)).astype(np.float32)
    return FieldMap((first_x, -100.0, 0.0), (100.0, 100.0, 100.0), values)


def text_of(field_map: FieldMap) -> str:
    axes = [
        first + step * np.arange(n)
        for first, step, n in zip(field_map.first, field_map.step, field_map.values.shape[1:], strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"))
    points = np.concatenate([grid, field_map.values]).reshape(6, -1).T
    text = io.StringIO()
    np.savetxt(text, np.random.default_rng(1).permutation(points), fmt="%.9g", header="x y z Bx By Bz; mm, T")
    return text.getvalue()


def test_a_file_is_read_back_in_any_order_of_its_lines(tmp_path: Path) -> None:
    written, path = some_map(), tmp_path / "map.txt"
    path.write_text(text_of(written))
    found = read_map(path)
    assert (found.first, found.step, found.last) == (written.first, written.step, (200.0, 100.0, 500.0))
    assert found.digest == written.digest
    require_reach(path, found, REACH)


def test_between_points_the_field_is_interpolated_and_outside_it_is_that_of_the_edge() -> None:
    found = some_map()
    middle = found.field(-150.0, 0.0, 0.0)
    np.testing.assert_allclose(middle, found.values[:, :2, 1, 0].mean(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(found.field(9e3, 9e3, 9e3), found.field(200.0, 100.0, 500.0))


def test_a_map_from_x_0_on_is_mirrored_and_one_from_elsewhere_is_not() -> None:
    half = some_map(first_x=0.0)
    assert half.mirrored == (True, False)
    np.testing.assert_allclose(half.field(-100.0, 0.0, 100.0), half.field(100.0, 0.0, 100.0) * [-1, 1, 1])
    require_reach(Path("map.txt"), half, REACH)
    with pytest.raises(FieldMapError, match=r"map\.txt: x from 100 to 200 mm; tracks need -200 to 200, or from 0 on"):
        require_reach(Path("map.txt"), some_map(first_x=100.0), REACH)


def test_a_map_that_ends_too_early_is_refused() -> None:
    with pytest.raises(FieldMapError, match=r"z from 0 to 500 mm; tracks need 0 to 600$"):
        require_reach(Path("map.txt"), some_map(), (*REACH[:2], (0.0, 600.0)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no point"),
        ("1 2 3 4 5\n", "5 numbers in a line, expected 6"),
        ("1 2 3 4 nan 1\n", "point 1 2 3 4 nan 1"),
        ("0 0 0 0 1 0\n", "all points have the same x"),
        (text_of(some_map()).rsplit("\n", 2)[0], "89 points, expected each point of 5 x 3 x 6 once"),
    ],
)
def test_a_file_that_is_no_map_is_named_with_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "map.txt"
    path.write_text(text)
    with pytest.raises(FieldMapError, match=f"{path}.*{message}"):
        read_map(path)


def test_maps_that_differ_in_start_step_or_field_have_other_digests() -> None:
    one = some_map()
    others = [
        replace(one, first=(-200.0, -100.0, 1.0)),
        replace(one, step=(100.0, 100.0, 101.0)),
        replace(one, values=one.values * np.float32(2)),
    ]
    assert len({found.digest for found in (one, *others)}) == 4
    assert replace(one).digest == one.digest
