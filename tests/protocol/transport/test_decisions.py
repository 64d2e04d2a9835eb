"""The decision message."""

from __future__ import annotations

import struct
import tracemalloc

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hltnode.protocol.errors import MessageError, RejectReason
from hltnode.protocol.raw_data.reports import MAX_LINES
from hltnode.protocol.transport.decisions import (
    MAX_DECISION_SIZE,
    MepDecision,
    decode_decision,
    encode_decision,
    max_events_of_decision,
)
from hltnode.protocol.transport.messages import MAX_ITEMS, MAX_NAME_LENGTH, MAX_TEXT_LENGTH
from tests.protocol.strategies import u16, u32, u64


@st.composite
def decisions(draw: st.DrawFn) -> MepDecision:
    n = draw(st.integers(0, 40))
    n_lines = draw(st.sampled_from([0, 1, 31, 32, 33, 63, 64, 65, 500]))

    def exactly(size: int) -> bytes:
        return draw(st.binary(min_size=size, max_size=size))

    return MepDecision(
        node=draw(st.text(max_size=20)),
        run=draw(u32),
        mep=draw(u64),
        seq=draw(u64),
        first_event=draw(u64),
        n_events=n,
        n_lines=n_lines,
        tck=draw(u32),
        close_reason=draw(st.text(max_size=20)),
        missing_sources=tuple(draw(st.lists(u16, max_size=5))),
        accepted=exactly((n + 7) // 8),
        lines=exactly(4 * -(-n_lines // 32) * n),
        flags=exactly(4 * n),
        chain=draw(st.sampled_from(["", "lhcb", "alice_tpc"])),
    )


GOOD = MepDecision("node", 1, 2, 3, 4, 9, 33, 6, "timeout", (7,), b"\x15\x01", bytes(72), bytes(36))


@given(decisions())
def test_a_decision_comes_back_as_written(decision: MepDecision) -> None:
    assert decode_decision(encode_decision(decision)) == decision


@pytest.mark.parametrize(
    "decision",
    [
        replace(GOOD, accepted=b"\x15"),
        replace(GOOD, lines=bytes(71)),
        replace(GOOD, flags=bytes(40)),
        replace(GOOD, n_events=65536),
        replace(GOOD, n_lines=32),
        replace(GOOD, n_lines=65),
        replace(GOOD, n_lines=65536),
        replace(GOOD, missing_sources=(65536,)),
        replace(GOOD, tck=-1),
        replace(GOOD, chain="two words"),
        replace(GOOD, chain="c" * (MAX_NAME_LENGTH + 1)),
    ],
)
def test_a_decision_with_contradicting_fields_cannot_be_written(decision: MepDecision) -> None:
    with pytest.raises(MessageError):
        encode_decision(decision)


@pytest.mark.parametrize(
    "change",
    [{"type": "credit"}, {"more": 1}, {"accepted": "text"}, {"n_events": 10}, {"n_lines": 65}, {"chain": ""}],
)
def test_a_changed_decision_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(MessageError) as error:
        decode_decision(msgpack.packb(msgpack.unpackb(encode_decision(GOOD)) | change))
    assert error.value.reason is RejectReason.MALFORMED


def largest(n_lines: int, n_events: int) -> MepDecision:
    """A decision whose fields all have their largest size."""
    return MepDecision(
        node="n" * MAX_TEXT_LENGTH,
        run=2**32 - 1,
        mep=2**64 - 1,
        seq=2**64 - 1,
        first_event=2**64 - 1,
        n_events=n_events,
        n_lines=n_lines,
        tck=2**32 - 1,
        close_reason="r" * MAX_TEXT_LENGTH,
        missing_sources=(0xFFFF,) * MAX_ITEMS,
        accepted=b"\xff" * -(-n_events // 8),
        lines=b"\xff" * (4 * -(-n_lines // 32) * n_events),
        flags=b"\xff" * (4 * n_events),
        chain="c" * MAX_NAME_LENGTH,
    )


@pytest.mark.parametrize("n_lines", [1, 5, 32, 64, 500, 1984])
def test_a_decision_on_the_most_events_of_a_mep_fits(n_lines: int) -> None:
    assert max_events_of_decision(n_lines) == 0xFFFF
    decision = largest(n_lines, 0xFFFF)
    assert decode_decision(encode_decision(decision)) == decision


@pytest.mark.parametrize("n_lines", [1985, 5000, MAX_LINES])
def test_with_more_lines_a_decision_on_the_events_that_are_allowed_fits(n_lines: int) -> None:
    n_events = max_events_of_decision(n_lines)
    assert 8152 <= n_events < 0xFFFF
    decision = largest(n_lines, n_events)
    assert decode_decision(encode_decision(decision)) == decision


@given(st.integers(1, 500), st.integers(0, 20), st.data())
def test_the_words_of_an_event_hold_line_after_line(n_lines: int, n_events: int, data: st.DataObject) -> None:
    fired = data.draw(
        st.sets(st.tuples(st.integers(0, max(n_events - 1, 0)), st.integers(0, n_lines - 1)), max_size=30)
    )
    n_words = -(-n_lines // 32)
    expected = np.zeros((n_events, n_lines), dtype=np.uint8)
    words = [0] * (n_words * n_events)
    for event, line in fired:
        if event < n_events:
            expected[event, line] = 1
            words[event * n_words + line // 32] |= 1 << line % 32
    accepted = np.packbits(expected.any(axis=1), bitorder="little").tobytes()
    lines = struct.pack(f"<{len(words)}I", *words)
    sent = replace(GOOD, n_events=n_events, n_lines=n_lines, accepted=accepted, lines=lines, flags=bytes(4 * n_events))
    decision = decode_decision(encode_decision(sent))
    # As in docs/formats/decision-message.md.
    read = np.frombuffer(decision.lines, dtype="<u4").reshape(decision.n_events, -(-decision.n_lines // 32))
    found = np.unpackbits(read.view(np.uint8), axis=1, count=decision.n_lines, bitorder="little")
    assert (found == expected).all()
    np.testing.assert_array_equal(decision.fired(), expected.astype(np.bool_))
    np.testing.assert_array_equal(decision.accepted_events(), expected.any(axis=1))


def test_a_decision_is_shown_in_one_line_and_gives_the_flags_of_events() -> None:
    decision = replace(GOOD, flags=struct.pack("<9I", *range(8), 1 << 31))
    assert repr(decision) == "<node: run 1, MEP 2: 4 of 9 events accepted>"
    assert decision.event_flags().tolist() == [*range(8), 1 << 31]
    assert decision.fired().shape == (9, 33)


def test_a_larger_message_is_neither_written_nor_read() -> None:
    with pytest.raises(MessageError) as error:
        encode_decision(largest(MAX_LINES, 0x3000))
    assert error.value.reason is RejectReason.OVERSIZED
    with pytest.raises(MessageError) as error:
        decode_decision(bytes(MAX_DECISION_SIZE + 1))
    assert error.value.reason is RejectReason.OVERSIZED


def test_a_decision_of_version_1_is_refused_with_the_change() -> None:
    old = msgpack.unpackb(encode_decision(GOOD)) | {"v": 1, "lines": bytes(72)}
    del old["n_lines"]
    with pytest.raises(MessageError, match=r"version 2 expected, 1 found; .* n_lines .* 32 bits") as error:
        decode_decision(msgpack.packb(old))
    assert error.value.reason is RejectReason.BAD_VERSION


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x81\xa1v" + b"\xdc\x10\x00" * 3 + b"\x90" * (MAX_DECISION_SIZE - 100), id="lists"),
        pytest.param(b"\x81\xa1v" + (b"\xdc\x10\x00" + b"\x80" * 4096) * 4000, id="maps"),
        pytest.param(b"\x81\xa1v\xdc\x10\x00" + (b"\xdc\x10\x00" + b"\xcd\xff\xff" * 4096) * 1300, id="numbers"),
        pytest.param(b"\x80" + b"\x90" * (MAX_DECISION_SIZE - 1), id="bytes after the message"),
    ],
)
def test_a_large_message_of_small_items_takes_no_more_memory_than_itself(data: bytes) -> None:
    assert len(data) <= MAX_DECISION_SIZE
    tracemalloc.start()
    try:
        with pytest.raises(MessageError):
            decode_decision(data)
        assert tracemalloc.get_traced_memory()[1] < len(data) + (1 << 20)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("n_lines", [2000, 5000, MAX_LINES])
def test_the_three_arrays_of_a_decision_leave_32_kib_to_the_other_fields(n_lines: int) -> None:
    def size_of_arrays(n_events: int) -> int:
        decision = largest(n_lines, n_events)
        return len(decision.accepted) + len(decision.lines) + len(decision.flags)

    n_events = max_events_of_decision(n_lines)
    assert size_of_arrays(n_events) <= MAX_DECISION_SIZE - (32 << 10) < size_of_arrays(n_events + 8)
