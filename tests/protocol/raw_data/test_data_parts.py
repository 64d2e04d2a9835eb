"""Data of an event are spread over banks and put together again; what is missing or wrong is named."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.protocol.errors import BankError
from hltnode.protocol.raw_data.data_parts import HEADER_SIZE, assemble, parse_part, split, units_of_part
from hltnode.protocol.raw_data.raw_bank import MAX_PAYLOAD_SIZE


def units_like(n: int, unit_bytes: int, seed: int = 1) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (n, unit_bytes), dtype=np.uint8)


@given(st.integers(1, 40), st.sampled_from([4, 8, 60]), st.integers(1, 12), st.randoms())
def test_split_data_are_whole_again_in_any_order(n: int, unit_bytes: int, per_part: int, random: Random) -> None:
    units = units_like(n, unit_bytes)
    parts = [parse_part(payload, 3) for payload in split(units, b"abc", per_part)]
    random.shuffle(parts)
    whole = assemble(parts)
    assert np.array_equal(whole.units, units)
    assert (whole.missing, whole.overlapping, whole.refused) == (0, 0, ())
    assert [bytes(part.own) for part in parts] == [b"abc"] * len(parts)


@pytest.mark.parametrize(
    ("unit_bytes", "own_bytes", "units"),
    [
        (1024, 8, 32),
        (4, 0, 8192),
        (32768, 0, 1),
        (65508, 3, 1),
        (21836, 3, 2),
        (21836, 4, 2),
        (16376, 7, 4),
        (16376, 8, 2),
    ],
)
def test_a_part_has_the_largest_power_of_two_of_units_that_fits(unit_bytes: int, own_bytes: int, units: int) -> None:
    assert units_of_part(unit_bytes, own_bytes) == units
    assert HEADER_SIZE + own_bytes + units * unit_bytes <= MAX_PAYLOAD_SIZE
    assert HEADER_SIZE + own_bytes + 2 * units * unit_bytes > MAX_PAYLOAD_SIZE


@pytest.mark.parametrize("unit_bytes", [0, -4, 6, 65512])
def test_units_that_fit_in_no_bank_are_refused(unit_bytes: int) -> None:
    with pytest.raises(BankError, match=str(unit_bytes)):
        units_of_part(unit_bytes, 0)


@pytest.mark.parametrize("per_part", [0, -1, 64])
def test_parts_that_fit_in_no_bank_are_refused(per_part: int) -> None:
    with pytest.raises(BankError, match=f"{per_part} units of 1024 bytes"):
        list(split(units_like(3, 1024), b"", per_part))


def header(first: int, count: int, total: int, unit_bytes: int) -> bytes:
    return np.array([first, count, total, unit_bytes], "<u4").tobytes()


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (header(0, 1, 1, 4)[:-1], "need 18 bytes, got 15"),
        (header(0, 1, 1, 4) + b"o", "need 18 bytes, got 17"),
        (header(0, 0, 1, 4) + b"oo", "0 units of 4 bytes"),
        (header(0, 1, 1, 0) + b"oo", "1 units of 0 bytes"),
        (header(0, 1, 1, 6) + b"oo" + bytes(6), "1 units of 6 bytes"),
        (header(1, 1, 1, 4) + b"oo" + bytes(4), "units 1 to 1 of 1 do not exist"),
        (header(0xFFFFFFFF, 1, 1, 4) + b"oo" + bytes(4), "do not exist"),
        (header(1, 2, 2, 4) + b"oo" + bytes(8), "units 1 to 2 of 2 do not exist"),
        (header(0, 1, 1, 4) + b"oo" + bytes(3), "1 units of 4 bytes announced, 3 bytes"),
        (header(0, 1, 1, 4) + b"oo" + bytes(5), "1 units of 4 bytes announced, 5 bytes"),
        (header(0, 1 << 30, 1 << 30, 4) + b"oo", "1073741824 units of 4 bytes announced, 0 bytes"),
    ],
)
def test_a_part_that_contradicts_itself_is_refused_with_its_numbers(payload: bytes, text: str) -> None:
    with pytest.raises(BankError, match=text):
        parse_part(payload, 2)


def test_units_in_no_part_are_zero_and_units_in_two_come_from_the_first() -> None:
    units = units_like(8, 4)
    other = np.invert(units)
    parts = [parse_part(payload, 0) for payload in split(units, b"", 2)]
    again = [parse_part(payload, 0) for payload in split(other, b"", 4)]
    whole = assemble([parts[0], parts[1], again[0]])
    assert np.array_equal(whole.units[:4], units[:4])
    assert not whole.units[4:].any()
    assert (whole.missing, whole.overlapping) == (4, 4)
    assert whole.present.tolist() == [True] * 4 + [False] * 4


def test_a_part_of_another_whole_is_left_out() -> None:
    first, second = (parse_part(payload, 1) for payload in split(units_like(4, 4), b"a", 2))
    others = [
        next(parse_part(payload, 1) for payload in split(units_like(*shape), own, 2))
        for shape, own in (((5, 4), b"a"), ((4, 8), b"a"), ((4, 4), b"b"))
    ]
    whole = assemble([first, *others, second], ["source 9: unreadable"])
    assert (whole.missing, whole.overlapping) == (0, 0)
    assert len(whole.refused) == 4
    assert whole.refused[0] == "source 9: unreadable"


def test_no_part_is_an_error() -> None:
    with pytest.raises(BankError, match="no part"):
        assemble([])
