"""Detectors: the built-in towers, and detx files of every version."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.km3net.geometry.detector import DETECTOR_FILE, detector_of, table_bytes
from hltnode.processing.km3net.geometry.detx import read_detx, write_detx
from hltnode.processing.km3net.geometry.pmt_table import NO_LINE, PMT, building_block, km3net_tower, nemo_tower
from hltnode.protocol.km3net.hit_banks import MAX_PMTS

HEADERS = {
    1: "7 2\n",
    2: "7 v2\n0.0 9999999999.0\nUTM WGS84 32N 256500.0 4743000.0 -2425.0\n2\n",
    3: "# a comment\n7 v3\n0.0 9999999999.0\nUTM WGS84 32N 256500.0 4743000.0 -2425.0\n2\n\n",
    4: "7 V4\n0.0 9999999999.0\nUTM WGS84 32N 256500.0 4743000.0 -2425.0\n2\n",
    5: "# $ab$\n7 v5\n0.0 9999999999.0\nUTM WGS84 32N 256500.0 4743000.0 -2425.0\n2\n",
}
MODULE = {1: "", 2: "", 3: "", 4: " 1 2 3 1 0 0 0 0.5", 5: " 1 2 3 1 0 0 0 0.5 0"}
STATUS = {1: "", 2: "", 3: " 0", 4: " 0", 5: " 16"}


def text_of(version: int) -> str:
    """Two modules of lines 12 and 9, with two PMTs and one PMT."""
    pmt = "{} {} 2.5 3.5 0 0 1 {}" + STATUS[version] + "\n"
    return (
        HEADERS[version]
        + f"1 12 4{MODULE[version]} 2\n" + pmt.format(1, 1.5, 10) + pmt.format(2, -1.5, 20.25)
        + f"2 9 1{MODULE[version]} 1\n" + pmt.format(3, 7.0, -3)
    )  # fmt: skip


def test_files_of_every_version_give_the_same_detector(tmp_path: Path) -> None:
    file = tmp_path / DETECTOR_FILE
    for version in HEADERS:
        file.write_text(text_of(version))
        found = read_detx(file)
        np.testing.assert_array_equal(
            found.pmts,
            np.array([(1.5, 2.5, 3.5, 1, 4, 0), (-1.5, 2.5, 3.5, 1, 4, 0), (7, 2.5, 3.5, 0, 1, 0)], PMT.dtype),
        )
        assert found.t0.tolist() == [10.0, 20.25, -3.0]
        assert found.directions.tolist() == [[0, 0, 1]] * 3
    table = table_bytes(tmp_path).view(PMT.dtype)
    assert len(table) == MAX_PMTS
    assert table["line"].tolist()[:5] == [1, 1, 0, NO_LINE, NO_LINE]


def test_modules_without_floors_are_numbered_from_the_lowest_one_on(tmp_path: Path) -> None:
    module = "{0} {1} -1 2\n{0} 0 0 {2} 0 0 1 0\n{0} 0 0 {3} 0 0 1 0\n"
    rows = [(1, 4, 80, 81), (2, 4, 60, 90), (3, 4, 70, 71), (4, 2, 5, 6)]
    modules = "".join(module.format(*row) for row in rows) + "5 3 7 1\n5 0 0 9 0 0 1 0\n"
    (tmp_path / DETECTOR_FILE).write_text(HEADERS[2].replace("\n2\n", "\n5\n") + modules)
    pmts = detector_of(tmp_path).pmts
    # The means of z are 80.5, 75 and 70.5 m.
    assert pmts["floor"].tolist() == [3, 3, 2, 2, 1, 1, 1, 1, 7]
    assert not pmts["group"].any()


@pytest.mark.parametrize(("n", "fits"), [(255, True), (256, False)])
def test_at_most_255_modules_of_a_line_are_numbered(tmp_path: Path, n: int, *, fits: bool) -> None:
    module = "{0} 1 -1 1\n{0} 0 0 {0} 0 0 1 0\n"
    text = HEADERS[2].replace("\n2\n", f"\n{n}\n") + "".join(module.format(i) for i in range(1, n + 1))
    (tmp_path / DETECTOR_FILE).write_text(text)
    if fits:
        assert detector_of(tmp_path).pmts["floor"].tolist() == list(range(1, 256))
    else:
        with pytest.raises(ValueError, match="line 1 has 256 modules with floor -1"):
            detector_of(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (text_of(4).replace("V4", "v6"), "version 6"),
        (text_of(2).replace(" 7.0 ", " seven "), r"line 9: 'seven' is not a number"),
        (text_of(2).replace(" 7.0 ", " nan "), r"'nan' is not a number"),
        (text_of(2).replace("2 9 1 1", "2 9 1 1 1"), r"line 8: 5 fields, expected 4 of a module"),
        (text_of(2).replace("2 9 1 1", "2 70000 1 1"), r"line 8: line 70000"),
        (text_of(2).replace("2 9 1 1", "2 9 256 1"), r"floor 256"),
        (text_of(2).replace("2 9 1 1", "2 9 1 99999"), r"99999 PMTs"),
        (text_of(2).replace("2 9 1 1", "2 9 1 x"), r"'x' is not a whole number"),
        (text_of(2).replace("2 9 1 1", "2 12 -1 1"), r"line 12 has modules with floor -1 and others"),
        (text_of(2).replace("2 9 1 1", "2 9 -2 1"), r"line 8: line 9, floor -2"),
        (text_of(2).replace("2 9 1 1\n3 7.0 2.5 3.5 0 0 1 -3\n", "2 9 -1 0\n"), r"line 8: line 9, floor -1, 0 PMTs"),
        (text_of(2) + "3\n", r"line 10: expected the end of the file"),
        (text_of(2)[:-30], r"line 8: 1 fields, expected 4 of a module"),
        ("", "the file ends, expected the line of the detector"),
    ],
)
def test_files_that_contradict_themselves_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / DETECTOR_FILE).write_text(text)
    with pytest.raises(ValueError, match=message):
        detector_of(tmp_path)


@pytest.mark.parametrize(("n", "fits"), [(256, True), (257, False)])
def test_a_floor_has_at_most_256_modules(tmp_path: Path, n: int, *, fits: bool) -> None:
    module = "{0} 1 1 1\n{0} 0 0 {0} 0 0 1 0\n"
    text = HEADERS[2].replace("\n2\n", f"\n{n}\n") + "".join(module.format(i) for i in range(1, n + 1))
    (tmp_path / DETECTOR_FILE).write_text(text)
    if fits:
        assert detector_of(tmp_path).pmts["group"].tolist() == list(range(256))
    else:
        with pytest.raises(ValueError, match="line 1, floor 1, 1 PMTs: out of range"):
            detector_of(tmp_path)


def test_a_written_tower_is_read_with_its_adjacent_pmts(tmp_path: Path) -> None:
    tower = km3net_tower()
    write_detx(tower, tmp_path / DETECTOR_FILE)
    found = detector_of(tmp_path)
    for name in ("group", "x", "y", "z"):
        np.testing.assert_allclose(found.pmts[name], tower.pmts[name], atol=1e-4)
    np.testing.assert_array_equal(found.pmts["floor"], tower.pmts["floor"] + 1)
    np.testing.assert_allclose(found.directions, tower.directions, atol=1e-4)


def test_built_in_detectors_have_the_numbers_of_their_papers() -> None:
    for tower, floors, of_floor, distance in ((nemo_tower(), 8, 4, 40.0), (km3net_tower(), 14, 6, 20.0)):
        pmts = tower.pmts
        assert np.bincount(pmts["floor"]).tolist() == [of_floor] * floors
        assert np.unique(np.diff(np.unique(pmts["z"]))).tolist() == [distance]
        assert np.unique(pmts["group"], return_counts=True)[1].tolist() == [2 * floors] * (of_floor // 2)
    block = building_block()
    assert len(block.pmts) == 115 * 18 * 31
    assert len(np.unique(block.positions[:: 18 * 31, :2].round(), axis=0)) == 115
    np.testing.assert_allclose(np.linalg.norm(block.directions, axis=1), 1.0, atol=1e-6)
