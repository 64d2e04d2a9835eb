"""Source ids of LHCb's banks in the readout, and the choice of the VELO encoding."""

from __future__ import annotations

import pytest
from hypothesis import given

from hltnode.protocol import Mfp, RawBank, events_of_mfps, source_id
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.readout import VeloEncoding, readout_source_id, velo_encoding
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.bank_types import BankType
from tests.protocol.packed_events import mfps_of_events
from tests.protocol.strategies import raw_banks


def bank(bank_type: int, source: int, version: int = 2) -> RawBank:
    return RawBank(bank_type, version, source, memoryview(b""))


@given(raw_banks)
def test_every_bank_has_a_16_bit_readout_source_or_none(any_bank: RawBank) -> None:
    source = readout_source_id(any_bank)
    assert source is None or 0 <= source <= 0xFFFF


@pytest.mark.parametrize(
    ("simulated", "expected"),
    [
        (bank(BankType.ODIN, 0, 6), (SubDetector.ODIN, 0)),
        (bank(BankType.ODIN, 1, 7), (SubDetector.ODIN, 0)),
        (bank(LhcbBankType.VP, 3), (SubDetector.VELO_C, 3)),
        (bank(LhcbBankType.VP, 4), (SubDetector.VELO_A, 4)),
        (bank(LhcbBankType.VP_RETINA_CLUSTER, 207), (SubDetector.VELO_A, 207)),
        (bank(LhcbBankType.VP, 1, 4), (SubDetector.VELO_C, 1)),
        (bank(LhcbBankType.VP, 2, 4), (SubDetector.VELO_A, 2)),
        (bank(LhcbBankType.UT, 10), (SubDetector.UT_C, 10)),
        (bank(LhcbBankType.FT_CLUSTER, 11), (SubDetector.SCIFI_A, 11)),
        (bank(LhcbBankType.MUON, 0), (SubDetector.MUON_C, 0)),
        (bank(LhcbBankType.RICH, 1349), (SubDetector.RICH1, 1349)),
        (bank(LhcbBankType.ECAL_PACKED, 27), (SubDetector.ECAL, 27)),
        (bank(LhcbBankType.HCAL_PACKED, 7), (SubDetector.HCAL, 7)),
        (bank(LhcbBankType.MC_TRACKS, 3), (SubDetector.TDET, 3)),
        (bank(LhcbBankType.MC_VERTICES, 0), (SubDetector.TDET, 1024)),
        (bank(LhcbBankType.MC_SAMPLE, 0), (SubDetector.TDET, 1025)),
        (bank(LhcbBankType.MC_ECAL, 0), (SubDetector.TDET, 1026)),
    ],
)
def test_a_simulated_bank_is_read_out_under_its_subdetector(
    simulated: RawBank, expected: tuple[SubDetector, int]
) -> None:
    assert readout_source_id(simulated) == source_id(*expected)


def test_a_bank_with_top_bits_keeps_its_source() -> None:
    assert readout_source_id(bank(LhcbBankType.TEST_DET, 0x780D)) == 0x780D


@pytest.mark.parametrize("bank_type", [LhcbBankType.DAQ, BankType.HLT_DEC_REPORTS, BankType.HLT_SEL_REPORTS])
def test_banks_of_the_trigger_are_not_read_out(bank_type: int) -> None:
    assert readout_source_id(bank(bank_type, 0xF900)) is None


def test_the_banks_of_a_real_event_have_distinct_sources(superpixel_events: list[list[RawBank]]) -> None:
    sources = [readout_source_id(b) for b in superpixel_events[0]]
    assert None not in sources
    assert len(set(sources)) == len(sources) == 1030


def _as_read_out(banks: list[RawBank], left_out: int) -> list[RawBank]:
    kept = [
        RawBank(b.type, b.version, source, b.payload)
        for b in banks
        if b.type != left_out and (source := readout_source_id(b)) is not None
    ]
    return sorted(kept, key=lambda b: b.source_id)


@pytest.mark.parametrize(
    ("choice", "left_out"),
    [(None, LhcbBankType.VP), ("retina", LhcbBankType.VP), ("superpixel", LhcbBankType.VP_RETINA_CLUSTER)],
)
def test_real_events_are_recovered_from_their_mfps(
    retina_events: list[list[RawBank]], choice: VeloEncoding | None, left_out: LhcbBankType
) -> None:
    packets = mfps_of_events(retina_events, 6001, choice)
    assert list(packets) == sorted(packets)
    events = events_of_mfps([Mfp.parse(packet) for packet in packets.values()])
    assert events == [_as_read_out(banks, left_out) for banks in retina_events]


def test_auto_keeps_superpixels_where_there_are_no_retina_clusters(superpixel_events: list[list[RawBank]]) -> None:
    packets = mfps_of_events(superpixel_events, 6001)
    types = {bank_type for packet in packets.values() for bank_type in Mfp.parse(packet).types.tolist()}
    assert LhcbBankType.VP in types


@pytest.mark.parametrize(
    ("bank_types", "encoding"),
    [
        ((LhcbBankType.VP, LhcbBankType.VP_RETINA_CLUSTER), "retina"),
        ((LhcbBankType.VP_RETINA_CLUSTER,), "retina"),
        ((LhcbBankType.VP, LhcbBankType.UT), "superpixel"),
        ((), "superpixel"),
    ],
)
def test_retina_clusters_are_read_where_there_are_any(bank_types: tuple[LhcbBankType, ...], encoding: str) -> None:
    assert velo_encoding(bank_types) == encoding
