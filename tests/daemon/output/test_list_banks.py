"""Output lists in the banks of kept events, and in decision messages."""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.daemon.output.decision_lists import DecisionLists
from hltnode.daemon.output.event_encoder import Decided, EventEncoder
from hltnode.processing.framework.flags import EventFlag, FlagTable
from hltnode.processing.framework.output_lists import ListContent, no_words
from hltnode.processing.imaging.components.lists import FEATURES
from hltnode.processing.raw.banks.lists import SOURCE_BANKS
from hltnode.protocol.errors import ReportError
from hltnode.protocol.raw_data.bank_types import LIST_TYPES
from hltnode.protocol.raw_data.list_banks import decode_lists
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.transport.decisions import (
    MAX_DECISION_SIZE,
    MepDecision,
    decode_decision,
    encode_decision,
    room_for_lists,
)

COUNTS = [0, 3, 8000, 1, 0, 0]
FLAGS = [0, 0, 0, 0, int(EventFlag.LIST_LEFT_OUT), int(EventFlag.BACKEND_ERROR)]
PER_BANK = (65_527 - 4 * (3 + 11 + 5)) // 20
"""Elements of the list `features` in a full bank: 3 words of header, 11 of description, a padding of each value."""


def contents(seed: int = 1) -> dict[str, ListContent]:
    rng = np.random.default_rng(seed)
    offsets = np.cumsum([0, *COUNTS]).astype(np.uint32)
    found = {}
    for each in (FEATURES, SOURCE_BANKS):
        values = {name: rng.integers(0, 60_000, sum(COUNTS)).astype(value.dtype) for name, value in each.values.items()}
        found[each.name] = ListContent(offsets, values)
    return found


def decided() -> Decided:
    n = len(COUNTS)
    return Decided(
        np.ones((n, 1), np.uint32), np.array(FLAGS, np.uint32), np.zeros((n, 1), np.uint32), no_words(n), contents()
    )


def banks_of_events(lists: tuple[object, ...] = (FEATURES, SOURCE_BANKS)) -> list[list[RawBank]]:
    encoder = EventEncoder(1, np.zeros((1, 3), np.uint32), ("things",), FlagTable(), lists)  # type: ignore[arg-type]
    given = [[RawBank(192, 1, 5, memoryview(b"data")), RawBank(243, 1, 5, memoryview(b"an earlier list"))]] * len(
        COUNTS
    )
    encoded = encoder.encode_banks(given, np.arange(len(COUNTS)), decided())
    return [list(record.banks()) for record in iter_records(encoded.data)]


def test_each_event_has_its_elements_and_long_lists_have_several_banks() -> None:
    events = banks_of_events()
    for number, banks in enumerate(events):
        found = decode_lists(banks)
        if FLAGS[number]:
            assert found == {}
            continue
        for name, content in contents().items():
            for value, elements in content.values.items():
                begin, end = content.offsets[number : number + 2]
                assert found[name][value].tolist() == elements[begin:end].tolist()
                assert found[name][value].dtype == elements.dtype
    features = [bank for bank in events[2] if bank.type == 242]
    assert [struct.unpack_from("<3I", bank.payload) for bank in features] == [
        (8000, first, min(PER_BANK, 8000 - first)) for first in range(0, 8000, PER_BANK)
    ]
    assert {bank.type for bank in events[1]} - {17, 53, 54} == {192, 242, 243}
    assert {(bank.source_id, bank.version) for bank in features} == {(0xF900, 1)}
    assert [bank.type for bank in banks_of_events(())[1] if bank.type > 200] == []


def test_damaged_and_contradicting_banks_are_refused() -> None:
    banks = [bank for bank in banks_of_events()[2] if bank.type == 242]
    for wrong, reason in [
        (banks[1:], "elements"),
        (banks[:-1], "of 8000 elements"),
        ([banks[1], banks[0], *banks[2:]], "elements"),
        ([replace_bank(banks[0], version=2)], "version 2"),
        ([replace_bank(banks[0], payload=b"short")], "5 bytes"),
        ([replace_bank(banks[0], payload=bytes(banks[0].payload)[:-4])], "bytes"),
        ([replace_bank(banks[0], payload=bytes(banks[0].payload) + bytes(4)), *banks[1:]], "bytes for"),
        ([banks[0], *(replace_bank(bank, bank_type=249) for bank in banks[1:])], "elements"),
    ]:
        with pytest.raises(ReportError, match=reason):
            decode_lists(wrong)


def replace_bank(
    bank: RawBank, *, bank_type: int | None = None, version: int | None = None, payload: bytes | None = None
) -> RawBank:
    return RawBank(
        bank.type if bank_type is None else bank_type,
        bank.version if version is None else version,
        bank.source_id,
        bank.payload if payload is None else memoryview(payload),
    )


def test_tables_that_contradict_each_other_are_refused() -> None:
    encoder = EventEncoder(1, np.zeros((1, 3), np.uint32), ("things",), FlagTable(), (FEATURES,))
    n = len(COUNTS)
    good = contents()["features"]
    short = {name: values[:-1] for name, values in good.values.items()}
    descending = good.offsets.copy()
    descending[3] = 1
    for wrong in (
        ListContent(good.offsets[:-1], good.values),
        ListContent(good.offsets, short),
        ListContent(descending, good.values),
        ListContent(good.offsets + 1, good.values),
    ):
        with pytest.raises(ValueError, match="output list"):
            encoder.encode_banks([[]] * n, np.arange(n), replace(decided(), lists={"features": wrong}))


def decision(lists: bytes, n_events: int = len(COUNTS)) -> MepDecision:
    return MepDecision(
        node="n", run=1, mep=2, seq=3, first_event=4, n_events=n_events, n_lines=1, tck=5, close_reason="complete",
        missing_sources=(), accepted=bytes(-(-n_events // 8)), lines=bytes(4 * n_events), flags=bytes(4 * n_events),
        lists=lists,
    )  # fmt: skip


def test_a_message_has_the_lists_that_fit_and_marks_the_others() -> None:
    both = (FEATURES.description, SOURCE_BANKS.description)
    raw, left_out = DecisionLists(both, 1 << 20).encode(contents(), len(COUNTS), 1)
    found = decode_decision(encode_decision(decision(raw))).output_lists()
    assert left_out == 0
    for name, content in contents().items():
        lists = found[name]
        assert lists is not None
        assert lists.offsets.tolist() == content.offsets.tolist()
        assert {value: each.tolist() for value, each in lists.values.items()} == {
            value: each.tolist() for value, each in content.values.items()
        }
    # 8004 elements of 20 bytes do not fit, those of the second list do.
    raw, left_out = DecisionLists(both, 100_000).encode(contents(), len(COUNTS), 1)
    found = decision(raw).output_lists()
    assert (found["features"], left_out, len(raw) <= 100_000 + 200) == (None, 1, True)
    assert found["source_banks"] is not None
    size = len(raw)
    # The bound is exact: the marks have room of their own.
    content_of_second = size - len(DecisionLists(both, 0).encode(contents(), len(COUNTS), 1)[0])
    needed = content_of_second + len(DecisionLists(both[1:], 0).encode(contents(), len(COUNTS), 1)[0])
    assert DecisionLists(both[1:], needed).encode(contents(), len(COUNTS), 1)[1] == 0
    assert DecisionLists(both[1:], needed - 1).encode(contents(), len(COUNTS), 1)[1] == 1


def test_lists_never_make_a_message_too_large() -> None:
    n_events, n_lines = 8000, 16_000
    room = room_for_lists(n_events, n_lines)
    lines = 4 * -(-n_lines // 32) * n_events
    assert lines + 4 * n_events + n_events // 8 + room + (32 << 10) == MAX_DECISION_SIZE
    offsets = np.linspace(0, room // 20, n_events + 1).astype(np.uint32)
    values = {name: np.zeros(int(offsets[-1]), value.dtype) for name, value in FEATURES.values.items()}
    _, left_out = DecisionLists((FEATURES.description,), 16 << 20).encode(
        {"features": ListContent(offsets, values)}, n_events, n_lines
    )
    assert left_out == 1


def test_a_message_without_lists_has_the_bytes_of_earlier_versions() -> None:
    assert b"lists" not in encode_decision(decision(b""))
    assert DecisionLists().encode({}, 4, 1) == (b"", 0)


@given(st.binary(max_size=200), st.integers(0, 7), st.integers(0, 3))
def test_any_bytes_are_lists_or_refused(payload: bytes, number: int, version: int) -> None:
    with suppress(ReportError):
        found = decode_lists([RawBank(LIST_TYPES[number], version, 0xF900, memoryview(payload))])
        assert sum(values.nbytes for of_list in found.values() for values in of_list.values()) <= len(payload)
