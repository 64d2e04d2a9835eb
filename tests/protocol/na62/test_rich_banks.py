"""Banks of the RICH: the bytes on the wire, and what a reader refuses."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.protocol.errors import BankError
from hltnode.protocol.na62.rich_banks import (
    HIT,
    MAX_HITS,
    RICH_SOURCE,
    TRUE_RING,
    RichBankType,
    decode_hits,
    encode_hits,
    hits_bank,
    rings_of,
    truth_bank,
)


def hits(n: int) -> np.ndarray:
    return np.array([(300 + i, i) for i in range(n)], HIT)


def test_a_hit_is_two_bytes_of_the_tube_and_one_of_the_time() -> None:
    assert encode_hits(hits(2)) == bytes.fromhex("02 2c0100 2d0101")
    assert len(encode_hits(hits(24))) == 73


@pytest.mark.parametrize("n", [0, 1, MAX_HITS])
def test_hits_are_read_as_they_were_written(n: int) -> None:
    bank = hits_bank(hits(n))
    assert (bank.type, bank.version, bank.source_id) == (RichBankType.HITS, 1, RICH_SOURCE)
    np.testing.assert_array_equal(decode_hits(bank.payload), hits(n))


@pytest.mark.parametrize("payload", [b"", b"\1", b"\1\0\0", b"\0\0", encode_hits(hits(MAX_HITS + 1))])
def test_a_bank_of_another_size_than_its_number_tells_is_refused(payload: bytes) -> None:
    with pytest.raises(BankError, match="a RICH bank of"):
        decode_hits(payload)


def test_more_hits_than_a_byte_can_count_are_refused() -> None:
    with pytest.raises(BankError, match="256 RICH hits"):
        encode_hits(hits(256))


def test_true_rings_are_read_where_an_event_has_them() -> None:
    rings = np.array([(1.5, -2, 180, 25, 19, 2, 1)], TRUE_RING)
    np.testing.assert_array_equal(rings_of([hits_bank(hits(1)), truth_bank(rings)]), rings)
    assert rings_of([hits_bank(hits(1))]) is None
    broken = truth_bank(rings)._replace(payload=memoryview(b"123"))
    with pytest.raises(BankError, match="3 bytes of simulated rings"):
        rings_of([broken])
