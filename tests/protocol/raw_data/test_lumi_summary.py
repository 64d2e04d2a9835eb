"""Luminosity summaries: schema, packing, real bank of 2025."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import RawBank, RejectReason, decode_odin, iter_records
from hltnode.protocol.errors import ReportError
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.lumi_summary import (
    CounterRange,
    LumiCounter,
    LumiSchema,
    decode_lumi_summary,
    lumi_key,
)
from tests.protocol.raw_data.report_encoders import encode_lumi_summary

sizes = st.lists(st.integers(1, 32), max_size=30)
KEY = LumiCounter("encodingKey", 0, 32)


def schema_of(bits: list[int]) -> LumiSchema:
    return LumiSchema.packed([(f"c{i}", size) for i, size in enumerate(bits)])


@given(sizes, st.data())
def test_numbers_come_back_as_written(bits: list[int], data: st.DataObject) -> None:
    schema = schema_of(bits)
    numbers = {f"c{i}": data.draw(st.integers(0, 2**size - 1)) for i, size in enumerate(bits)}
    bank = encode_lumi_summary(numbers, schema)
    assert (bank.type, bank.version, bank.source_id) == (BankType.HLT_LUMI_SUMMARY, 2, 0xF900)
    assert lumi_key(bank) == schema.key
    assert decode_lumi_summary(bank, schema) == numbers


@given(sizes)
def test_counters_do_not_overlap_or_cross_words_and_the_largest_come_first(bits: list[int]) -> None:
    schema = schema_of(bits)
    taken: set[int] = set()
    for counter in schema.counters:
        places = set(range(counter.offset, counter.offset + counter.size))
        assert not taken & places
        assert len({place // 32 for place in places}) == 1
        taken |= places
    assert [c.size for c in schema.counters] == [32, *sorted(bits, reverse=True)]
    assert max(taken) // 8 < schema.size


def test_a_counter_goes_to_the_first_word_with_room() -> None:
    schema = LumiSchema.packed([("small", 4), ("large", 30), ("middle", 20), ("rest", 2), ("fits", 12)])
    assert {c.name: c.offset for c in schema.counters} == {
        **{"encodingKey": 0, "large": 32, "middle": 64},
        **{"fits": 84, "small": 96, "rest": 62},
    }


def test_a_number_that_is_too_large_becomes_the_largest_that_fits() -> None:
    schema = schema_of([4])
    assert decode_lumi_summary(encode_lumi_summary({"c0": 99}, schema), schema) == {"c0": 15}


def test_ranges_give_bits_and_of_equal_ones_the_first_comes_first() -> None:
    ranges = [CounterRange("a", 255), CounterRange("b", 256, 5, 2.0), CounterRange("c", 511), CounterRange("d", 128)]
    schema = LumiSchema.of(ranges)
    assert [(c.name, c.size, c.offset) for c in schema.counters[1:]] == [
        *(("b", 9, 32), ("c", 9, 41)),
        *(("a", 8, 50), ("d", 8, 64)),
    ]
    assert (schema.counters[1].shift, schema.counters[1].scale) == (5, 2.0)
    assert LumiSchema.of(ranges[:3]).key != schema.key != LumiSchema.of([*ranges[:3], CounterRange("d", 64)]).key
    assert LumiSchema.of([CounterRange("c0", 15)]) == schema_of([4])


@pytest.mark.parametrize("of", [("x", 0), ("x", 1 << 32), ("", 1), ("x", 1, float("nan")), ("x", 1, 0.0, 0.0)])
def test_an_impossible_range_is_refused(of: tuple[str, int]) -> None:
    with pytest.raises(ValueError, match="counter"):
        CounterRange(*of)
    assert CounterRange("x", (1 << 32) - 1).bits == 32


def test_many_banks_are_unpacked_at_once() -> None:
    schema = LumiSchema(12, (KEY, LumiCounter("z", 32, 16, 1000.0, 10.0), LumiCounter("n", 64, 32)))
    numbers = [{"z": 985, "n": 7}, {"z": 65535, "n": 2**32 - 1}]
    banks = [encode_lumi_summary(each, schema) for each in numbers]
    words = np.array([np.frombuffer(bank.payload, "<u4") for bank in banks])
    found = schema.unpack(words)
    for i, bank in enumerate(banks):
        assert {name: values[i] for name, values in found.items()} == decode_lumi_summary(bank, schema)
    assert schema.is_largest("n", words).tolist() == [False, True]
    with pytest.raises(ValueError, match="shape"):
        schema.unpack(words[:, :2])


def test_a_schema_comes_from_its_document_also_without_shifts() -> None:
    schema = LumiSchema(8, (KEY, LumiCounter("z", 32, 16, shift=3.0, scale=2.0), LumiCounter("n", 48, 4)))
    assert LumiSchema.of_document(schema.document) == schema
    counters = [{"name": "encodingKey", "offset": 0, "size": 32}, {"name": "n", "offset": 32, "size": 4}]
    assert LumiSchema.of_document({"version": 0, "size": 8, "counters": counters}).counters[1].scale == 1.0
    wrongs: tuple[object, ...] = (
        [],
        {},
        {"version": 1, "size": 8, "counters": counters},
        {"version": 0, "size": 8, "counters": [{"name": "n"}]},
        {"version": 0, "size": 4, "counters": counters},
        {"version": 0, "size": 8, "counters": [*counters, counters[1]]},
    )
    for wrong in wrongs:
        with pytest.raises(ReportError):
            LumiSchema.of_document(wrong)


def test_shift_and_scale_are_undone() -> None:
    schema = LumiSchema(8, (KEY, LumiCounter("z", 32, 16, shift=1000.0, scale=10.0)))
    assert decode_lumi_summary(encode_lumi_summary({"z": 985}, schema), schema) == {"z": -1.5}


def test_the_key_depends_on_every_counter() -> None:
    keys = {schema_of(bits).key for bits in ([], [1], [2], [1, 1], [2, 1])}
    assert len(keys) == 5


@pytest.mark.parametrize(
    "counters",
    [
        (),
        (LumiCounter("first", 0, 32),),
        (LumiCounter("encodingKey", 0, 16),),
        (KEY, LumiCounter("outside", 64, 1)),
        (KEY, LumiCounter("crosses", 30, 4)),
        (KEY, LumiCounter("empty", 32, 0)),
        (KEY, LumiCounter("no scale", 32, 1, scale=0.0)),
    ],
)
def test_an_impossible_schema_is_refused(counters: tuple[LumiCounter, ...]) -> None:
    with pytest.raises(ReportError):
        LumiSchema(8, counters)


def test_another_bank_is_refused_with_its_reason() -> None:
    schema = schema_of([8])
    good = encode_lumi_summary({"c0": 1}, schema)
    for bank, reason in (
        (good._replace(type=LhcbBankType.UT), RejectReason.MISMATCH),
        (good._replace(version=1), RejectReason.BAD_VERSION),
        (good._replace(payload=good.payload[:6]), RejectReason.BAD_SIZE),
        (good._replace(payload=good.payload[:0]), RejectReason.BAD_SIZE),
        (good._replace(payload=good.payload[:4]), RejectReason.MISMATCH),
        (encode_lumi_summary({"c0": 1}, schema_of([9])), RejectReason.MISMATCH),
    ):
        with pytest.raises(ReportError) as error:
            decode_lumi_summary(bank, schema)
        assert error.value.reason is reason


def test_a_counter_without_a_number_is_refused() -> None:
    with pytest.raises(ReportError, match="c0"):
        encode_lumi_summary({}, schema_of([8]))


def lumi_banks(mdf: bytes) -> list[tuple[RawBank, RawBank]]:
    """The ODIN bank and the luminosity summary of each event that has one."""
    found = []
    for record in iter_records(mdf):
        banks = {bank.type: bank for bank in record.banks()}
        if BankType.HLT_LUMI_SUMMARY in banks:
            found.append((banks[BankType.ODIN], banks[BankType.HLT_LUMI_SUMMARY]))
    return found


def test_the_first_words_of_a_real_summary_are_key_time_and_number_of_the_crossing(run3_mdf: bytes) -> None:
    ((odin_bank, bank),) = lumi_banks(run3_mdf)
    assert lumi_key(bank) == 0x76BF3005
    odin = decode_odin(odin_bank)
    crossings = odin.orbit * 3564 + odin.bunch_id
    t0 = odin.gps_time_us - crossings * 1000 // 40078
    words = [int.from_bytes(bank.payload[i : i + 4], "little") for i in (4, 8, 12)]
    assert words == [t0 & 0xFFFFFFFF, t0 >> 32, crossings]
