"""Encoding of kept events."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.daemon.output.event_encoder import EventEncoder
from hltnode.daemon.output.output_stage import encoded_banks
from hltnode.processing.framework.flags import EventFlag
from hltnode.protocol.errors import ReportError
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.mfp import NO_BANK, Mfp, encode_mfp
from hltnode.protocol.raw_data.raw_bank import HEADER_SIZE, MAX_PAYLOAD_SIZE, BankType, RawBank, encode_banks
from hltnode.protocol.raw_data.reports import MAX_LINES, decode_dec_reports, decode_routing_bits

BANKS = [RawBank(BankType.ODIN, 7, 0, memoryview(b"o" * 40)), RawBank(BankType.VP, 4, 4096, memoryview(b"vp-data"))]


def kept(
    *, accepted: bool = True, lines: int = 0b101, n_lines: int = 3, flags: int = 0
) -> tuple[list[RawBank], tuple[int, ...]]:
    words = lines.to_bytes(4 * -(-n_lines // 32), "little")
    record = EventEncoder(tck=0xABCD, n_lines=n_lines).encode(
        run=7, orbit=8, bunch_id=9, banks=encode_banks(BANKS), accepted=accepted, lines=words, flags=flags
    )
    (read,) = iter_records(record)
    assert (read.header.run, read.header.orbit, read.header.bunch_id) == (7, 8, 9)
    return read.banks(), read.header.routing_bits


def test_the_banks_are_kept_unchanged_followed_by_report_and_routing_bits() -> None:
    banks, _ = kept()
    assert banks[:2] == BANKS
    assert [bank.type for bank in banks[2:]] == [BankType.HLT_DEC_REPORTS, BankType.HLT_ROUTING_BITS]


def test_the_report_holds_the_tck_and_a_decision_per_line() -> None:
    banks, _ = kept(lines=0b101)
    report = decode_dec_reports(banks[2])
    assert report.tck == 0xABCD
    assert [line.decision for line in report.lines] == [True, False, True]
    assert [line.decision_id for line in report.lines] == [1, 2, 3]


def test_the_report_holds_500_lines() -> None:
    fired = {0, 31, 32, 33, 63, 64, 65, 498, 499}
    banks, _ = kept(lines=sum(1 << line for line in fired), n_lines=500)
    report = decode_dec_reports(banks[2])
    assert {i for i, line in enumerate(report.lines) if line.decision} == fired
    assert [line.decision_id for line in report.lines] == list(range(1, 501))


def test_the_report_of_the_largest_menu_fits_in_its_bank() -> None:
    banks, _ = kept(lines=1 << MAX_LINES - 1, n_lines=MAX_LINES)
    report = decode_dec_reports(banks[2])
    assert [line.decision_id for line in report.lines if line.decision] == [MAX_LINES]
    with pytest.raises(ReportError, match=f"{MAX_LINES + 1} lines, at most {MAX_LINES} fit"):
        EventEncoder(tck=1, n_lines=MAX_LINES + 1)


@pytest.mark.parametrize(
    ("accepted", "flags", "word"),
    [
        (True, 0, 1 << 14),
        (False, EventFlag.BANK_ERROR, 1 << 25),
        (True, EventFlag.ODIN_ERROR, 1 << 14 | 1 << 25),
        (False, EventFlag.OVERFLOW | EventFlag.INCOMPLETE, 0),
    ],
)
def test_routing_bits_distinguish_physics_from_readout_errors(accepted: bool, flags: int, word: int) -> None:
    banks, in_header = kept(accepted=accepted, flags=flags)
    assert decode_routing_bits(banks[3]) == (word, 0, 0)
    assert in_header == (word, 0, 0, 0)


def test_the_banks_of_some_events_equal_those_of_the_bank_encoder() -> None:
    mfps = [
        Mfp.parse(
            encode_mfp(
                source_id=source,
                event_id=0,
                version=version,
                types=[BankType.VP, NO_BANK, BankType.VP, BankType.TEST_DET],
                fragments=[b"x" * size, b"", b"y", b""],
                align=align,
            )
        )
        for source, version, size, align in ((4096, 4, 7, 2), (6144, 2, 8, 3), (0xFFFF, 255, 1001, 6))
    ]
    too_large, bodies = encoded_banks(mfps, np.array([0, 1, 3]))
    columns = [mfp.banks() for mfp in mfps]
    assert too_large == 0
    assert bodies == [encode_banks(bank for c in columns if (bank := c[event]) is not None) for event in (0, 1, 3)]


def test_a_fragment_too_large_for_a_bank_is_left_out_and_counted() -> None:
    fragments = [bytes(MAX_PAYLOAD_SIZE), bytes(MAX_PAYLOAD_SIZE + 1)]
    mfp = encode_mfp(source_id=1, event_id=0, version=1, types=[BankType.VP] * 2, fragments=fragments)
    too_large, bodies = encoded_banks([Mfp.parse(mfp)], np.array([0, 1]))
    assert too_large == 1
    assert [len(body) for body in bodies] == [MAX_PAYLOAD_SIZE + HEADER_SIZE + 1, 0]
