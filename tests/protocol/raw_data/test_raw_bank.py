"""Raw banks."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import RawBank, RejectReason, encode_bank, encode_banks, iter_banks
from hltnode.protocol._native import MAX_BANKS_OF_EVENT, count_banks
from hltnode.protocol.errors import BankError
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from tests.protocol.strategies import raw_banks


@given(st.lists(raw_banks, max_size=10))
def test_banks_come_back_as_written(banks: list[RawBank]) -> None:
    assert list(iter_banks(encode_banks(banks))) == banks


@given(raw_banks)
def test_a_bank_is_padded_to_four_bytes_and_its_length_is_without_padding(bank: RawBank) -> None:
    encoded = encode_bank(bank)
    magic, length = struct.unpack_from("<HH", encoded)
    assert magic == 0xCBCB
    assert length == 8 + len(bank.payload)
    assert len(encoded) == (length + 3) // 4 * 4


def test_the_payload_is_a_view_into_the_buffer() -> None:
    buffer = bytearray(encode_bank(RawBank(LhcbBankType.VP, 2, 1, memoryview(b"abcd"))))
    (bank,) = iter_banks(buffer)
    buffer[8:12] = b"wxyz"
    assert bytes(bank.payload) == b"wxyz"


def test_a_payload_of_65527_bytes_fits_and_one_more_does_not() -> None:
    encode_bank(RawBank(1, 1, 1, memoryview(bytes(65527))))
    with pytest.raises(BankError) as error:
        encode_bank(RawBank(1, 1, 1, memoryview(bytes(65528))))
    assert error.value.reason is RejectReason.OVERSIZED


def test_a_source_id_beyond_16_bits_is_refused() -> None:
    with pytest.raises(BankError):
        encode_bank(RawBank(1, 1, 0x10000, memoryview(b"")))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xcb\xcb\x08\x00\x01\x01\x00", RejectReason.TRUNCATED),
        (b"\xcb\xca\x08\x00\x01\x01\x00\x00", RejectReason.BAD_MAGIC),
        (b"\xcb\xcb\x07\x00\x01\x01\x00\x00", RejectReason.BAD_SIZE),
        (b"\xcb\xcb\x00\x00\x01\x01\x00\x00", RejectReason.BAD_SIZE),
        (b"\xcb\xcb\x09\x00\x01\x01\x00\x00a", RejectReason.TRUNCATED),
        (b"\xcb\xcb\xff\xff\x01\x01\x00\x00aaaa", RejectReason.TRUNCATED),
    ],
)
def test_a_damaged_bank_is_refused_with_its_reason(data: bytes, reason: RejectReason) -> None:
    with pytest.raises(BankError) as error:
        list(iter_banks(data))
    assert error.value.reason is reason


def test_an_error_names_the_position_of_the_bank() -> None:
    with pytest.raises(BankError, match="at byte 8: magic 0xCBCB expected, 0x0000 found"):
        list(iter_banks(encode_bank(RawBank(1, 1, 1, memoryview(b""))) + bytes(8)))


def test_an_event_of_more_banks_than_any_readout_has_is_refused() -> None:
    most = encode_bank(RawBank(1, 1, 1, memoryview(b""))) * MAX_BANKS_OF_EVENT
    assert sum(1 for _ in iter_banks(most)) == MAX_BANKS_OF_EVENT
    with pytest.raises(BankError, match=f"at byte {len(most)}: more than {MAX_BANKS_OF_EVENT} banks") as error:
        list(iter_banks(most + most[:8]))
    assert error.value.reason is RejectReason.OVERSIZED


@given(st.lists(raw_banks, max_size=30), st.lists(st.integers(0, 255), max_size=4))
def test_banks_are_counted_by_type_and_version_and_those_of_given_types_picked(
    banks: list[RawBank], types: list[int]
) -> None:
    counted, picked = count_banks(banks, types)
    sizes: dict[tuple[int, int], list[int]] = {}
    for bank in banks:
        sizes.setdefault((bank.type, bank.version), []).append(len(bank.payload))
    assert counted == [(*key, len(of), sum(of)) for key, of in sorted(sizes.items())]
    assert picked == [bank for bank in banks if bank.type in types]


@pytest.mark.parametrize("bank", [(1, 2, 3), [1, 2, 3, memoryview(b"")], (256, 0, 0, memoryview(b""))])
def test_something_else_than_a_bank_is_not_counted(bank: object) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        count_banks([bank], [])  # type: ignore[list-item]
