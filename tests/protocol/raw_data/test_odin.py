"""ODIN banks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from hltnode.protocol import Odin, RawBank, RejectReason, decode_odin, encode_odin, iter_records
from hltnode.protocol.errors import OdinError
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.bank_types import BankType
from tests.protocol.strategies import odins


@given(odins)
def test_version_7_keeps_every_field(odin: Odin) -> None:
    assert decode_odin(encode_odin(odin)) == odin


@given(odins)
def test_version_6_keeps_the_fields_it_has(odin: Odin) -> None:
    held = replace(
        odin,
        partition=0,
        non_zero_suppressed=False,
        tae_central=False,
        tae_half_window=0,
        step_run=False,
        trigger_type=odin.trigger_type & 7,
        tae_first=False,
        calibration_type=0,
    )
    assert decode_odin(encode_odin(held, version=6)) == held


def test_version_6_refuses_a_field_that_it_lacks() -> None:
    with pytest.raises(OdinError, match="partition"):
        encode_odin(Odin(run=1, event_id=1, partition=1), version=6)


@pytest.mark.parametrize(
    "change", [{"bunch_id": 4096}, {"crossing_type": 4}, {"trigger_type": 16}, {"run": 1 << 32}, {"event_id": -1}]
)
@pytest.mark.parametrize("version", [6, 7])
def test_a_value_that_does_not_fit_is_refused(change: dict[str, int], version: int) -> None:
    with pytest.raises(OdinError):
        encode_odin(replace(Odin(run=1, event_id=1), **change), version=version)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bank", "reason"),
    [
        (RawBank(LhcbBankType.UT, 7, 0, memoryview(bytes(40))), RejectReason.MISMATCH),
        (RawBank(BankType.ODIN, 5, 0, memoryview(bytes(40))), RejectReason.BAD_VERSION),
        (RawBank(BankType.ODIN, 7, 0, memoryview(bytes(39))), RejectReason.BAD_SIZE),
        (RawBank(BankType.ODIN, 6, 0, memoryview(bytes(44))), RejectReason.BAD_SIZE),
    ],
)
def test_another_bank_is_refused_with_its_reason(bank: RawBank, reason: RejectReason) -> None:
    with pytest.raises(OdinError) as error:
        decode_odin(bank)
    assert error.value.reason is reason


def test_a_version_that_is_not_written_is_refused() -> None:
    with pytest.raises(OdinError):
        encode_odin(Odin(run=1, event_id=1), version=5)


def test_the_simulated_events_have_their_known_numbers(superpixel_events: list[list[RawBank]]) -> None:
    decoded = [decode_odin(b) for banks in superpixel_events for b in banks if b.type == BankType.ODIN]
    assert [(odin.run, odin.event_id) for odin in decoded] == [(6718861, event) for event in range(6001, 6008)]
    assert {odin.crossing_type for odin in decoded} == {3}


def test_real_version_7_banks_decode_and_encode_byte_by_byte(run3_mdf: bytes) -> None:
    banks = [b for record in iter_records(run3_mdf) for b in record.banks() if b.type == BankType.ODIN]
    decoded = [decode_odin(b) for b in banks]
    assert [(odin.run, odin.event_id, odin.bunch_id) for odin in decoded] == [
        (328614, 3999014, 1345),
        (328614, 3999015, 1346),
    ]
    assert [encode_odin(odin).payload for odin in decoded] == [b.payload for b in banks]
