"""The geometry of the electromagnetic calorimeter."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.processing.lhcb.geometry.ecal import (
    BOARDS_VERSION,
    CARDS_VERSION,
    EMPTY_SLOT,
    GEOMETRY_FILE,
    NO_CARD,
    EcalGeometry,
)
from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.ideal_ecal import FIRST_CELLS, N_CELLS, NO_CELL, local_centres


def with_boards() -> EcalGeometry:
    """The built-in cells, read out by boards: 63 sources of three, with empty slots in the last two."""
    boards = np.arange(1, 190, dtype=np.int32).reshape(-1, 3)
    cards = np.arange(189, dtype=np.int32).reshape(-1, 3)
    cards[-1] = EMPTY_SLOT, 186, 187
    cards[-2, 2] = 185
    boards[-1, 0] = 0
    return replace(EcalGeometry.builtin(), read_out=BOARDS_VERSION, code_offset=0, boards=boards, board_cards=cards)


def with_cards() -> EcalGeometry:
    """The built-in cells, read out by cards alone."""
    return replace(EcalGeometry.builtin(), read_out=CARDS_VERSION, boards=None, board_cards=None)


@pytest.fixture(scope="module")
def content() -> bytes:
    """The built-in geometry as a file."""
    return EcalGeometry.builtin().file_bytes()


def loaded(folder: Path, content: bytes) -> EcalGeometry:
    (folder / GEOMETRY_FILE).write_bytes(content)
    return EcalGeometry.load(folder)


def assert_same(found: EcalGeometry, expected: EcalGeometry) -> None:
    for name in EcalGeometry.__slots__:
        a, b = getattr(found, name), getattr(expected, name)
        if isinstance(a, float):
            assert np.float32(a) == np.float32(b), name
        else:
            np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("geometry", [with_cards(), with_boards()], ids=["cards", "boards"])
def test_a_written_geometry_is_read_back_unchanged(tmp_path: Path, geometry: EcalGeometry) -> None:
    assert_same(loaded(tmp_path, geometry.file_bytes()), geometry)


def test_the_file_of_the_real_events_is_read_and_written_byte_by_byte(geometry_files: Path) -> None:
    real = EcalGeometry.load(geometry_files)
    assert real.file_bytes() == (geometry_files / GEOMETRY_FILE).read_bytes()
    # 221 codes: 29 without a card, four cards of light-emitting diodes.
    assert (len(real.connected), int(real.connected.sum())) == (221, 192)
    assert sorted(real.cell_of_channel[real.cell_of_channel != NO_CELL]) == list(range(N_CELLS))


def test_the_builtin_calorimeter_is_near_that_of_the_real_events(geometry_files: Path) -> None:
    real, ideal = EcalGeometry.load(geometry_files), EcalGeometry.builtin()
    assert np.abs(real.centre - ideal.centre).max() < 0.03  # mm
    assert np.abs(real.gain / ideal.gain - 1.0).max() < 0.005
    np.testing.assert_array_equal(np.sort(real.neighbours, axis=1), ideal.neighbours)
    np.testing.assert_allclose(real.planes, ideal.planes, atol=1e-3)
    np.testing.assert_allclose(real.to_local, ideal.to_local, atol=1e-5)
    assert [real.pedestal, real.module_size] == pytest.approx([ideal.pedestal, ideal.module_size], rel=1e-6)


def test_neighbours_are_the_cells_that_touch_a_cell() -> None:
    neighbours, centre = EcalGeometry.builtin().neighbours, local_centres()
    size = np.repeat(121.9 / np.array([1, 2, 3]), np.diff(FIRST_CELLS))
    pairs = {(int(a), int(b)) for a, row in enumerate(neighbours) for b in row[row != NO_CELL]}
    assert len(pairs) == 47000
    assert {(b, a) for a, b in pairs} == pairs
    first, second = np.array(sorted(pairs)).T
    apart = np.abs(centre[first] - centre[second]) - (size[first] + size[second])[:, None] / 2.0
    assert np.abs(apart.max(axis=1)).max() < 1e-9


def test_each_block_of_four_cells_is_a_set_of_neighbours() -> None:
    """So at most a quarter of the cells are larger than all their neighbours."""
    neighbours, centre = EcalGeometry.builtin().neighbours, local_centres()
    size = np.repeat(121.9 / np.array([1, 2, 3]), np.diff(FIRST_CELLS))
    block = np.floor(centre / size[:, None] / 2.0).astype(int)
    keys = [(*of_cell, int(width * 100)) for of_cell, width in zip(block.tolist(), size, strict=True)]
    blocks: dict[tuple[int, ...], list[int]] = {}
    for cell, key in enumerate(keys):
        blocks.setdefault(key, []).append(cell)
    assert {len(cells) for cells in blocks.values()} == {4}
    for cells in blocks.values():
        for cell in cells:
            assert set(cells) - {cell} <= set(neighbours[cell].tolist())


def test_slots_without_a_board_have_no_card() -> None:
    cards = with_boards().slot_cards()
    assert cards[0].tolist() == [0, 1, 2]
    assert cards[62].tolist() == [NO_CARD, 186, 187]
    assert (cards[63:] == NO_CARD).all()
    assert (with_cards().slot_cards() == NO_CARD).all()


CHANNELS_AT = 20
NEIGHBOURS_AT = CHANNELS_AT + 4 + 2 * N_CELLS
XY_AT = NEIGHBOURS_AT + 4 + 18 * N_CELLS
GAIN_AT = XY_AT + 4 + 8 * N_CELLS
PLANES_AT = GAIN_AT + 4 + 4 * N_CELLS + 4 + 48


@pytest.mark.parametrize(
    ("at", "kind", "value", "what"),
    [
        (0, "I", 2, "version is 2, expected 3 or 4"),
        (0, "I", 5, "version is 5, expected 3 or 4"),
        (8, "I", 31, "channels of a card is 31"),
        (12, "I", 6017, "number of cells is 6017"),
        (16, "f", float("nan"), "pedestal holds a value that is not finite"),
        (CHANNELS_AT, "I", 6017, "number of channels is 6017"),
        (CHANNELS_AT, "I", 257 * 32, "number of channels is 8224"),
        (CHANNELS_AT + 4, "H", 1, "cell 1 is read out by 2 channels"),
        (NEIGHBOURS_AT, "I", 0xFFFFFFFF, "number of neighbours is 4294967295"),
        (NEIGHBOURS_AT + 4, "H", 6016, "neighbours holds 6016, cells are 0 to 6015"),
        (NEIGHBOURS_AT + 4 + 18 * 7, "H", 7, "a cell that is its own neighbour"),
        (XY_AT + 4, "f", 30000.0, "x and y holds 30000"),
        (GAIN_AT + 4, "f", 0.0, "gain holds a value that is not positive"),
        (PLANES_AT + 4 + 8, "f", 0.0, "not perpendicular to the beam"),
        (-24, "f", 0.5, "module size is 0.5 mm"),
        (-4, "I", 6000, "first cell of a region is 6000"),
    ],
)
def test_a_file_with_impossible_content_is_named(
    tmp_path: Path, content: bytes, at: int, kind: str, value: float, what: str
) -> None:
    changed = bytearray(content)
    struct.pack_into(f"<{kind}", changed, at % len(changed), value)
    with pytest.raises(GeometryError, match=what) as error:
        loaded(tmp_path, bytes(changed))
    assert str(tmp_path / GEOMETRY_FILE) in str(error.value)


@pytest.mark.parametrize(
    ("word", "value", "what"),
    [
        (0, 188, "number of boards is 188"),
        (190, 186, "number of cards of boards is 186"),
        (191, 188, "a card that does not exist, there are 188"),
        (191, 0xFFFFFFFF, "a card that does not exist"),
        (191, 1, "holds a card twice"),
    ],
)
def test_lists_of_boards_with_impossible_content_are_named(tmp_path: Path, word: int, value: int, what: str) -> None:
    whole = with_boards().file_bytes()
    changed = bytearray(whole)
    struct.pack_into("<I", changed, len(whole) - 4 * 2 * 190 + 4 * word, value)
    with pytest.raises(GeometryError, match=what):
        loaded(tmp_path, bytes(changed))


@settings(max_examples=30)
@given(st.data())
def test_a_file_of_any_other_length_is_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = EcalGeometry.builtin().file_bytes()
    length = data.draw(st.integers(0, len(whole) - 1))
    folder = tmp_path_factory.mktemp("ecal")
    with pytest.raises(GeometryError, match=GEOMETRY_FILE):
        loaded(folder, whole[:length])
    with pytest.raises(GeometryError, match="bytes, expected"):
        loaded(folder, whole + b"\0" * (1 + length))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GeometryError, match=GEOMETRY_FILE):
        EcalGeometry.load(tmp_path)


def test_the_builtin_calorimeter_has_both_read_outs_and_its_file_has_cards(tmp_path: Path) -> None:
    builtin = EcalGeometry.builtin()
    assert builtin.read_out == CARDS_VERSION | BOARDS_VERSION
    cards = builtin.slot_cards()
    assert cards[cards != NO_CARD].tolist() == list(range(188))
    assert (cards[:62] != NO_CARD).all()
    assert cards[62].tolist() == [186, 187, NO_CARD]
    assert_same(loaded(tmp_path, builtin.file_bytes()), with_cards())
