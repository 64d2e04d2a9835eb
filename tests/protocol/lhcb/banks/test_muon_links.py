"""Muon banks of version 3: hit maps of links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import ProtocolError, RawBank, RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.muon import MuonDigits
from hltnode.protocol.lhcb.banks.muon_links import decode_muon_links, encode_muon_links
from hltnode.protocol.lhcb.errors import MuonBankError

LINKS = [24, 0, 7, *[12] * 41]

digit = st.tuples(st.sampled_from([0, 2, 3, 43]), st.integers(0, 6), st.integers(0, 47), st.integers(0, 15)).map(
    lambda row: (row[0], 48 * row[1] + row[2], row[3])
)


def digits_of(rows: Sequence[tuple[int, int, int]]) -> MuonDigits:
    stream, address, time = np.array(rows, np.uint32).reshape(-1, 3).T
    return MuonDigits(stream, address // np.uint32(48), address, time)


def rows_of(digits: MuonDigits) -> list[tuple[int, ...]]:
    return list(zip(digits.bank.tolist(), digits.address.tolist(), digits.time.tolist(), strict=True))


def bank(content: bytes, stream: int = 0, version: int = 3) -> RawBank:
    return RawBank(LhcbBankType.MUON, version, stream, memoryview(content))


@given(st.lists(digit, max_size=80, unique_by=lambda row: row[:2]).map(sorted), st.booleans())
def test_digits_come_back_as_written_and_the_first_twelve_of_a_link_have_times(
    digits: list[tuple[int, int, int]], with_maps: bool
) -> None:
    connected = [range(min(7, n)) for n in LINKS] if with_maps else None
    banks = encode_muon_links(digits_of(digits), LINKS, connected=connected)
    assert len(banks) == 44
    expected = []
    of_link: dict[tuple[int, int], int] = {}
    for stream, address, time in digits:
        n = of_link[stream, address // 48] = of_link.get((stream, address // 48), 0) + 1
        expected.append((stream, address, time if n <= 12 else 0))
    assert rows_of(decode_muon_links(banks, LINKS)) == expected


def test_the_bits_of_a_link_are_those_of_the_format() -> None:
    # Channels 0, 4 and 47; times 9, 5 and 3.
    content = bytes([0, 0x78, 0, 0, 0, 0, 1, 0x19, 0x53]) + bytes(23)
    assert rows_of(decode_muon_links([bank(content)], LINKS)) == [(0, 0, 9), (0, 4, 5), (0, 47, 3)]


def test_a_map_says_which_links_are_there() -> None:
    content = bytes([0x20, 0x80, 0, 0x02, 0, 0x60, 0, 0, 0, 0, 0, 0x1F])
    assert rows_of(decode_muon_links([bank(content)], LINKS)) == [(0, 23 * 48, 15)]


def test_an_event_that_synchronises_has_no_digits() -> None:
    assert rows_of(decode_muon_links([bank(b"\x10\xff\xff")], LINKS)) == []


@pytest.mark.parametrize(
    ("version", "stream", "content", "reason"),
    [
        (2, 0, bytes(30), RejectReason.BAD_VERSION),
        (3, 44, bytes(30), RejectReason.UNKNOWN_SOURCE),
        (3, 0, b"", RejectReason.TRUNCATED),
        (3, 0, bytes(24), RejectReason.TRUNCATED),
        (3, 0, b"\x20\0\0", RejectReason.TRUNCATED),
        (3, 0, bytes([0, 0x60, 0, 0, 0, 0, 0]), RejectReason.TRUNCATED),
        (3, 2, bytes([0, 0x50, 0, 0, 0, 0, 0]) + bytes(20), RejectReason.BAD_SIZE),
        (3, 2, bytes([0x20, 0, 0, 0x80]) + bytes(20), RejectReason.MALFORMED),
    ],
)
def test_a_malformed_bank_is_refused(version: int, stream: int, content: bytes, reason: RejectReason) -> None:
    with pytest.raises(MuonBankError) as error:
        decode_muon_links([bank(content, stream, version)], LINKS)
    assert error.value.reason == reason


@pytest.mark.parametrize("rows", [[(0, 5, 16)], [(2, 7 * 48, 1)], [(3, 9, 1), (3, 9, 2)]])
def test_digits_that_do_not_fit_are_refused(rows: list[tuple[int, int, int]]) -> None:
    with pytest.raises(MuonBankError):
        encode_muon_links(digits_of(rows), LINKS)


@given(st.binary(max_size=60), st.integers(0, 60))
def test_any_bytes_are_decoded_or_refused(content: bytes, stream: int) -> None:
    try:
        digits = decode_muon_links([bank(content, stream)], LINKS)
    except ProtocolError:
        return
    assert (digits.address < 48 * 24).all()
