"""Events as they are kept."""

from __future__ import annotations

import pytest

from hltnode.daemon.event_encoder import EventEncoder
from hltnode.processing.flags import EventFlag
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.mdf import iter_records
from hltnode.protocol.raw_bank import BankType, RawBank
from hltnode.protocol.reports import decode_dec_reports, decode_routing_bits

BANKS = [RawBank(BankType.ODIN, 7, 0, memoryview(b"o" * 40)), RawBank(BankType.VP, 4, 4096, memoryview(b"vp-data"))]


def kept(*, accepted: bool = True, lines: int = 0b101, flags: int = 0) -> tuple[list[RawBank], tuple[int, ...]]:
    record = EventEncoder(tck=0xABCD, n_lines=3).encode(
        run=7, orbit=8, bunch_id=9, banks=BANKS, accepted=accepted, lines=lines, flags=flags
    )
    (read,) = iter_records(record)
    assert (read.header.run, read.header.orbit, read.header.bunch_id) == (7, 8, 9)
    return read.banks(), read.header.routing_bits


def test_the_banks_come_back_as_they_were_followed_by_report_and_routing_bits() -> None:
    banks, _ = kept()
    assert banks[:2] == BANKS
    assert [bank.type for bank in banks[2:]] == [BankType.HLT_DEC_REPORTS, BankType.HLT_ROUTING_BITS]


def test_the_report_holds_the_tck_and_a_decision_per_line() -> None:
    banks, _ = kept(lines=0b101)
    report = decode_dec_reports(banks[2])
    assert report.tck == 0xABCD
    assert [line.decision for line in report.lines] == [True, False, True]
    assert [line.decision_id for line in report.lines] == [1, 2, 3]


@pytest.mark.parametrize(
    ("accepted", "flags", "word"),
    [
        (True, 0, 1 << 14),
        (False, EventFlag.BANK_ERROR, 1 << 25),
        (True, EventFlag.ODIN_ERROR, 1 << 14 | 1 << 25),
        (False, EventFlag.OVERFLOW | EventFlag.INCOMPLETE, 0),
    ],
)
def test_routing_bits_tell_physics_from_readout_errors(accepted: bool, flags: int, word: int) -> None:
    banks, in_header = kept(accepted=accepted, flags=flags)
    assert decode_routing_bits(banks[3]) == (word, 0, 0)
    assert in_header == (word, 0, 0, 0)


def test_a_bank_that_does_not_fit_the_format_is_a_protocol_error() -> None:
    large = RawBank(BankType.VP, 4, 1, memoryview(bytes(70_000)))
    with pytest.raises(ProtocolError):
        EventEncoder(1, 1).encode(run=1, orbit=0, bunch_id=0, banks=[large], accepted=True, lines=1, flags=0)
