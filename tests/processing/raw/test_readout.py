"""Files of any banks become MFPs by source; nothing is left out silently."""

from __future__ import annotations

import pytest

from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.raw.chain import CHAIN
from hltnode.processing.raw.readout import RAW_READOUT, RawBankType
from hltnode.protocol.raw_data.bank_types import RESERVED_TYPES, TYPES_OF_NODE, USER_TYPES
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.raw_data.raw_bank import RawBank


def bank(source: int, kind: int, payload: bytes = b"", version: int = 1) -> RawBank:
    return RawBank(kind, version, source, memoryview(payload))


def test_each_source_keeps_its_id_and_its_banks() -> None:
    events = [[bank(65535, 0, b"a"), bank(3, 254, b"bc")], [bank(3, 7, b"")]]
    mep = encode_mep(CHAIN, events, first_event_id=9)
    mfps = {source: Mfp.parse(mep.data[at : at + size].data) for source, at, size in mep.fragments}
    assert {source: [None if b is None else (b.type, bytes(b.payload)) for b in mfp.banks()]
            for source, mfp in mfps.items()} == {
        3: [(254, b"bc"), (7, b"")],
        65535: [(0, b"a"), None],
    }  # fmt: skip
    assert {mfp.event_id for mfp in mfps.values()} == {9}
    assert mep.unknown_types == frozenset()


def test_several_banks_of_a_source_become_an_error_bank_with_the_first_payload() -> None:
    mep = encode_mep(CHAIN, [[bank(3, 200, b"first"), bank(3, 201, b"second")]])
    [(_, at, size)] = mep.fragments
    [found] = Mfp.parse(mep.data[at : at + size].data).banks()
    assert found is not None
    assert (found.type, bytes(found.payload)) == (RawBankType.SEVERAL_BANKS, b"first")


@pytest.mark.parametrize("kind", sorted(TYPES_OF_NODE))
def test_banks_that_a_node_wrote_are_not_read_again(kind: int) -> None:
    mep = encode_mep(CHAIN, [[bank(3, kind), bank(4, 200)]])
    assert [source for source, _, _ in mep.fragments] == [4]


def test_the_types_of_the_chain_have_no_other_owner() -> None:
    own = {int(each) for each in RawBankType}
    assert own.isdisjoint(RESERVED_TYPES)
    assert own.isdisjoint(USER_TYPES)
    assert set(RAW_READOUT.bank_types) == own | set(USER_TYPES)
