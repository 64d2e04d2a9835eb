"""Banks of hits: the bytes on the wire, and what a reader refuses."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.protocol.errors import BankError
from hltnode.protocol.km3net.hit_banks import (
    HIT,
    MAX_HITS_OF_BANK,
    TIME_OFFSET,
    TRUE_MUON,
    HitBankType,
    decode_hits,
    encode_hits,
    hits_bank,
    hits_of,
    muons_of,
    ordered_by_pmt,
    truth_bank,
)

HITS = np.array([(120, 3, 70_000), (100, 3, 5), (90, 1, 9)], HIT)


def test_a_hit_is_eight_bytes_of_charge_pmt_and_time() -> None:
    assert encode_hits(HITS[:1]) == bytes.fromhex("7800 0300 70110100")
    assert HIT.fields is not None
    assert (HIT.itemsize, HIT.fields["time"][1]) == (8, TIME_OFFSET)
    words = np.frombuffer(encode_hits(HITS), "<u8")
    assert np.argsort(words).tolist() == np.argsort(HITS["time"]).tolist()


def test_hits_are_read_as_they_were_written_by_pmt_and_time() -> None:
    ordered = ordered_by_pmt(HITS)
    assert ordered["pmt"].tolist() == [1, 3, 3]
    assert ordered["time"].tolist() == [9, 5, 70_000]
    bank = hits_bank(13, ordered)
    assert (bank.type, bank.version, bank.source_id) == (HitBankType.HITS, 1, (1 << 11) + 13)
    np.testing.assert_array_equal(decode_hits(bank.payload), ordered)
    np.testing.assert_array_equal(hits_of([bank, hits_bank(2, HITS[:1])]), np.concatenate([ordered, HITS[:1]]))
    assert len(hits_of([])) == 0


def test_a_part_of_a_hit_and_too_many_hits_are_refused() -> None:
    with pytest.raises(BankError, match="a bank of 9 bytes"):
        decode_hits(bytes(9))
    assert len(encode_hits(np.zeros(MAX_HITS_OF_BANK, HIT))) == 8 * MAX_HITS_OF_BANK
    with pytest.raises(BankError, match=f"{MAX_HITS_OF_BANK + 1} hits"):
        encode_hits(np.zeros(MAX_HITS_OF_BANK + 1, HIT))


def test_true_muons_are_read_where_a_sub_slice_has_them() -> None:
    muons = np.array([(-5, 900, 12, 12, (1, 2, 3), (0, 0, -1))], TRUE_MUON)
    np.testing.assert_array_equal(muons_of([hits_bank(1, HITS), truth_bank(muons)]), muons)
    assert muons_of([hits_bank(1, HITS)]) is None
    with pytest.raises(BankError, match="3 bytes of simulated muons"):
        muons_of([truth_bank(muons)._replace(payload=memoryview(b"123"))])
