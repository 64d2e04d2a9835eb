"""Run-3 source ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import (
    BankType,
    ProtocolError,
    RawBank,
    SubDetector,
    number_of,
    readout_source_id,
    source_id,
    subdetector_of,
)
from tests.protocol.strategies import raw_banks


def bank(bank_type: int, source: int, version: int = 2) -> RawBank:
    return RawBank(bank_type, version, source, memoryview(b""))


@given(st.integers(0, 31), st.integers(0, 2047))
def test_a_source_id_gives_back_its_parts(subdetector: int, number: int) -> None:
    source = source_id(subdetector, number)
    assert (subdetector_of(source), number_of(source)) == (subdetector, number)
    assert 0 <= source <= 0xFFFF


@pytest.mark.parametrize(("subdetector", "number"), [(32, 0), (0, 2048), (-1, 0), (0, -1)])
def test_parts_out_of_range_are_refused(subdetector: int, number: int) -> None:
    with pytest.raises(ProtocolError):
        source_id(subdetector, number)


@given(raw_banks)
def test_every_bank_has_a_16_bit_readout_source_or_none(any_bank: RawBank) -> None:
    source = readout_source_id(any_bank)
    assert source is None or 0 <= source <= 0xFFFF


@pytest.mark.parametrize(
    ("simulated", "expected"),
    [
        (bank(BankType.ODIN, 0, 6), (SubDetector.ODIN, 0)),
        (bank(BankType.ODIN, 1, 7), (SubDetector.ODIN, 0)),
        (bank(BankType.VP, 3), (SubDetector.VELO_C, 3)),
        (bank(BankType.VP, 4), (SubDetector.VELO_A, 4)),
        (bank(BankType.VP_RETINA_CLUSTER, 207), (SubDetector.VELO_A, 207)),
        (bank(BankType.VP, 1, 4), (SubDetector.VELO_C, 1)),
        (bank(BankType.VP, 2, 4), (SubDetector.VELO_A, 2)),
        (bank(BankType.UT, 10), (SubDetector.UT_C, 10)),
        (bank(BankType.FT_CLUSTER, 11), (SubDetector.SCIFI_A, 11)),
        (bank(BankType.MUON, 0), (SubDetector.MUON_C, 0)),
        (bank(BankType.RICH, 1349), (SubDetector.RICH1, 1349)),
        (bank(BankType.ECAL_PACKED, 27), (SubDetector.ECAL, 27)),
        (bank(BankType.HCAL_PACKED, 7), (SubDetector.HCAL, 7)),
        (bank(BankType.MC_TRACKS, 3), (SubDetector.TDET, 3)),
        (bank(BankType.MC_VERTICES, 0), (SubDetector.TDET, 1024)),
    ],
)
def test_a_simulated_bank_is_read_out_under_its_subdetector(
    simulated: RawBank, expected: tuple[SubDetector, int]
) -> None:
    assert readout_source_id(simulated) == source_id(*expected)


def test_a_bank_with_top_bits_keeps_its_source() -> None:
    assert readout_source_id(bank(BankType.TEST_DET, 0x780D)) == 0x780D


@pytest.mark.parametrize("bank_type", [BankType.DAQ, BankType.HLT_DEC_REPORTS, BankType.HLT_SEL_REPORTS])
def test_banks_of_the_trigger_are_not_read_out(bank_type: BankType) -> None:
    assert readout_source_id(bank(bank_type, 0xF900)) is None


def test_the_banks_of_a_real_event_have_distinct_sources(superpixel_events: list[list[RawBank]]) -> None:
    sources = [readout_source_id(b) for b in superpixel_events[0]]
    assert None not in sources
    assert len(set(sources)) == len(sources) == 1030
