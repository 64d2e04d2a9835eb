"""rich_read_hits: positions of hits; every bank that is odd has its flag, and no other event is touched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.na62.rich.pmt_positions import (
    FILE_NAME,
    N_PMTS,
    PMTS_OF_SPOT,
    nearest_tubes,
    position_bytes,
    positions,
    spot_positions,
)
from hltnode.protocol.na62.rich_banks import HIT, MAX_HITS, RICH_SOURCE, RichBankType, encode_hits
from tests.processing.na62.rich_events import mep_of_payloads, run_chain

GOOD = np.array([(0, 3), (PMTS_OF_SPOT, 200), (N_PMTS - 1, 255), (77, 0)], HIT)


def test_a_spot_has_about_a_thousand_tubes_eighteen_millimetres_apart() -> None:
    spots = positions().reshape(2, PMTS_OF_SPOT, 2)
    assert 950 < PMTS_OF_SPOT < 1000
    np.testing.assert_array_equal(spots[0], spots[1])
    apart = np.hypot(*(spots[0][:, None] - spots[0][None]).transpose(2, 0, 1)) + 1e3 * np.eye(PMTS_OF_SPOT)
    np.testing.assert_allclose(apart.min(1), 18.0, rtol=1e-6)
    assert np.hypot(*spots[0].T).max() < 295.5


def test_a_place_belongs_to_the_nearest_tube_of_its_cell() -> None:
    places = np.random.default_rng(1).uniform(-330, 330, (3000, 2))
    away = np.hypot(*(places[:, None] - spot_positions()).transpose(2, 0, 1))
    expected = np.where(away.min(1) <= 18.0 / np.sqrt(3.0), away.argmin(1), -1)
    inside = np.hypot(*places.T) < 280
    np.testing.assert_array_equal(nearest_tubes(places)[inside], expected[inside])
    assert (nearest_tubes(places)[np.hypot(*places.T) > 310] == -1).all()
    assert (expected[inside] >= 0).sum() > 400


def test_positions_of_a_folder_replace_the_built_in_ones(tmp_path: Path) -> None:
    moved = positions() + np.float32(5.25)
    moved[3] = 1000.0, -1000.0
    np.savetxt(tmp_path / FILE_NAME, moved, fmt="%.9g", delimiter=",")
    np.testing.assert_array_equal(positions(tmp_path), moved)
    np.testing.assert_array_equal(position_bytes(tmp_path).view(np.float32), moved.reshape(-1))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1000.01,0", "at most 1000"),
        ("0,-1000.01", "at most 1000"),
        ("nan,0", "at most 1000"),
        ("0,0\n0,0", f"expected {N_PMTS} lines"),
        ("1,2,3", "columns"),
        ("one,2", "could not convert string 'one'"),
    ],
)
def test_a_file_of_positions_that_is_damaged_is_refused_by_name(tmp_path: Path, line: str, message: str) -> None:
    lines = [line] + ["0,0"] * (N_PMTS - 1)
    (tmp_path / FILE_NAME).write_text("\n".join(lines))
    with pytest.raises(ValueError, match=f"{FILE_NAME}: .*{message}"):
        positions(tmp_path)
    (tmp_path / FILE_NAME).unlink()
    with pytest.raises(ValueError, match=FILE_NAME):
        positions(tmp_path)


def test_hits_have_the_places_of_their_tubes_and_flags_only_where_a_bank_is_odd() -> None:
    out_of_range = np.array([(5, 1), (N_PMTS, 2), (65535, 3), (6, 4)], HIT)
    full = np.array([(i, 9) for i in range(MAX_HITS)], HIT)
    cases: list[tuple[bytes | None, list[str], np.ndarray]] = [
        (encode_hits(GOOD), [], GOOD),
        (None, ["NO_RICH"], GOOD[:0]),
        (b"", ["BAD_RICH_BANK"], GOOD[:0]),
        (encode_hits(GOOD)[:-1], ["BAD_RICH_BANK"], GOOD[:0]),
        (encode_hits(GOOD) + b"\0", ["BAD_RICH_BANK"], GOOD[:0]),
        (encode_hits(GOOD[:0]), [], GOOD[:0]),
        (encode_hits(out_of_range), ["BAD_PMT"], out_of_range[[0, 3]]),
        (encode_hits(full), [], full),
        (encode_hits(np.zeros(MAX_HITS + 1, HIT)), ["TOO_MANY_RICH_HITS"], GOOD[:0]),
        (encode_hits(GOOD), [], GOOD),
    ]
    first = (7 << 32) - 4
    found = run_chain(mep_of_payloads([payload for payload, _, _ in cases], first))
    table = positions()
    for i, (_, flags, expected) in enumerate(cases):
        assert found.flags[i] == flags
        np.testing.assert_array_equal(found.hit_x[i], table[expected["pmt"], 0])
        np.testing.assert_array_equal(found.hit_y[i], table[expected["pmt"], 1])
        np.testing.assert_array_equal(found.hit_time[i], expected["time"])
    numbers = found.numbers.astype(np.uint64)
    np.testing.assert_array_equal(numbers[:, 1] << np.uint64(32) | numbers[:, 0], first + np.arange(len(cases)))


def test_banks_of_another_type_version_or_source_are_not_read() -> None:
    payload = encode_hits(GOOD)
    for mep in (mep_of_payloads([payload], version=2), mep_of_payloads([payload], kind=RichBankType.SEVERAL_BANKS)):
        found = run_chain(mep)
        assert (found.flags, len(found.hit_x[0])) == ([["BAD_RICH_BANK"]], 0)
    found = run_chain(mep_of_payloads([payload], source=RICH_SOURCE + 1))
    assert (found.flags, len(found.hit_x[0])) == ([["NO_RICH"]], 0)
