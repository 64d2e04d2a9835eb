"""Every message of feeders and operators on the control socket."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol.errors import MessageError, RejectReason
from hltnode.protocol.transport.control_messages import (
    MAX_CONTROL_SIZE,
    ControlMessage,
    decode_message,
    encode_message,
)
from hltnode.protocol.transport.feeder_messages import (
    MAX_REVOKED,
    Ack,
    Credit,
    EndOfRun,
    Error,
    Goodbye,
    Held,
    Hello,
    Missed,
    Nack,
    Revoked,
    RunClosed,
    Welcome,
    split_ack,
    split_moved,
)
from hltnode.protocol.transport.messages import (
    MAX_ITEMS,
    MAX_NAME_LENGTH,
    MAX_RANGES,
    MAX_REMARK_LENGTH,
    MAX_TEXT_LENGTH,
    as_remark,
    is_name,
)
from hltnode.protocol.transport.run_control_messages import Command, CommandName, Reply, RunState
from tests.protocol.strategies import mep_ids, u16, u32, u64

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
name = st.from_regex(r"\A[A-Za-z0-9._:/-]{1,64}\Z")
ranges = st.lists(st.tuples(u64, u64).map(lambda pair: (min(pair), max(pair))), max_size=5).map(tuple)

messages = st.one_of(
    st.builds(Hello, name, name, u32, st.lists(u16, max_size=9).map(tuple), u64, u16, u32, st.booleans()),
    st.builds(Welcome, name, name, u32, u32, u64),
    st.builds(Credit, u32, u32),
    st.builds(Ack, u32, ranges),
    st.builds(Held, name, u32, ranges),
    st.builds(Nack, u32, u16, u64, st.sampled_from(RejectReason), st.booleans()),
    st.builds(Missed, u32, u16, ranges),
    st.builds(EndOfRun, u32, st.none() | mep_ids),
    st.builds(Goodbye, text),
    st.builds(Error, name, text),
    st.builds(RunClosed, u32),
    st.builds(Command, u32, st.sampled_from(CommandName), st.none() | u32),
    st.builds(Reply, u32, st.booleans(), st.sampled_from(RunState), text),
)

HELLO = {
    "v": 3,
    "type": "hello",
    "feeder": "f",
    "session": "s",
    "run": 1,
    "sources": [1],
    "first_mep": 0,
    "events_per_mep": 1,
    "max_fragment_bytes": 1,
    "supervises": False,
}
CREDIT = {"v": 3, "type": "credit", "run": 7, "meps": 100}


@given(messages)
def test_a_message_comes_back_as_written(message: ControlMessage) -> None:
    assert decode_message(encode_message(message)) == message


def test_a_message_is_a_map_with_version_and_type() -> None:
    assert msgpack.unpackb(encode_message(Credit(7, 100))) == CREDIT


def refusal(content: object) -> MessageError:
    with pytest.raises(MessageError) as error:
        decode_message(msgpack.packb(content))
    return error.value


@pytest.mark.parametrize("version", [None, 0, 2, 4, "3", 3.0, True])
def test_another_version_is_refused(version: object) -> None:
    assert refusal(CREDIT | {"v": version}).reason is RejectReason.BAD_VERSION


@pytest.mark.parametrize(
    "change",
    [
        {"type": "debit"},
        {"type": None},
        {"type": ["credit"]},
        {"run": -1},
        {"run": 1 << 32},
        {"run": 1.0},
        {"run": True},
        {"run": "7"},
        {"run": None},
        {"meps": [1]},
        {"extra": 1},
    ],
)
def test_an_invalid_field_is_refused(change: dict[str, Any]) -> None:
    assert refusal(CREDIT | change).reason is RejectReason.MALFORMED


def test_a_missing_field_is_named() -> None:
    assert "required field `meps`" in str(refusal({key: CREDIT[key] for key in ("v", "type", "run")}))


@pytest.mark.parametrize("meps", [None, 5, [5], [[1]], [[1, 2, 3]], [[2, 1]], [[1, "2"]], [[-1, 2]], {"a": 1}])
def test_an_ack_of_anything_but_ranges_is_refused(meps: object) -> None:
    assert refusal({"v": 3, "type": "ack", "run": 1, "meps": meps}).reason is RejectReason.MALFORMED


def test_a_nack_with_an_unknown_reason_is_refused() -> None:
    nack = {"v": 3, "type": "nack", "run": 1, "source": 2, "mep": 3, "reason": "mood", "resend": True}
    assert "mood" in str(refusal(nack))


@pytest.mark.parametrize("content", [[1, 2], 5, None, "credit", {1: 2}, {b"v": 3}])
def test_anything_but_a_map_of_texts_is_refused(content: object) -> None:
    assert refusal(content).reason is RejectReason.MALFORMED


def test_a_message_over_the_size_limit_is_refused_unread() -> None:
    with pytest.raises(MessageError) as error:
        decode_message(bytes(MAX_CONTROL_SIZE + 1))
    assert error.value.reason is RejectReason.OVERSIZED


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize(
    ("content", "field", "limit", "item"),
    [
        ({"v": 3, "type": "goodbye"}, "reason", MAX_REMARK_LENGTH, "€"),
        ({"v": 3, "type": "reply", "request": 1, "ok": True, "state": "idle"}, "text", MAX_TEXT_LENGTH, "x"),
        ({"v": 3, "type": "ack", "run": 1}, "meps", MAX_RANGES, [[1, 1]]),
        ({"v": 3, "type": "revoked", "run": 1}, "meps", MAX_RANGES, [[1, 1]]),
        (HELLO, "sources", MAX_ITEMS, [7]),
        (HELLO, "feeder", MAX_NAME_LENGTH, "x"),
        (HELLO, "session", MAX_NAME_LENGTH, "x"),
        ({"v": 3, "type": "error", "text": ""}, "reason", MAX_NAME_LENGTH, "x"),
    ],
    ids=["remark", "text", "ack", "revoked", "sources", "feeder", "session", "word"],
)
def test_texts_and_lists_are_read_up_to_the_limits_and_refused_over_them(
    content: dict[str, Any], field: str, limit: int, item: Any, over: bool
) -> None:
    message = content | {field: item * (limit + over)}
    if over:
        assert refusal(message).reason is RejectReason.MALFORMED
    else:
        assert len(getattr(decode_message(msgpack.packb(message)), field)) == limit


@pytest.mark.parametrize("name", ["", "a b", "a\n", "\n", "über", "a\0", "\x1b[31m", "${x}", "a;b", "x" * 4090])
@pytest.mark.parametrize("field", ["feeder", "session"])
def test_a_name_has_letters_digits_and_a_few_marks_only(field: str, name: str) -> None:
    assert not is_name(name)
    error = refusal(HELLO | {field: name})
    assert error.reason is RejectReason.MALFORMED
    assert f"`$.{field}`" in str(error)


def test_a_revocation_of_more_meps_than_a_node_reads_is_refused() -> None:
    one = {"v": 3, "type": "revoked", "run": 1}
    decode_message(msgpack.packb(one | {"meps": [[1, MAX_REVOKED]]}))
    for meps in ([[0, MAX_REVOKED]], [[1, MAX_REVOKED], [7, 7]], [[0, (1 << 64) - 1]] * 60):
        assert "at most 65536 expected" in str(refusal(one | {"meps": meps}))


def test_an_end_of_run_whose_last_mep_no_id_confirms_is_refused() -> None:
    one = {"v": 3, "type": "end_of_run", "run": 1}
    decode_message(msgpack.packb(one | {"last_mep": (1 << 64) - 2}))
    assert f"at most {(1 << 64) - 2}" in str(refusal(one | {"last_mep": (1 << 64) - 1}))


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 100_000)), max_size=40), st.sampled_from([1, 700]))
def test_any_ranges_are_split_into_messages_that_can_be_sent(pieces: list[tuple[int, int]], repeat: int) -> None:
    expected: list[tuple[int, int]] = []
    begin = 0
    for gap, length in pieces * repeat:
        begin += gap
        expected.append((begin, begin + length - 1))
        begin += length
    acks = list(split_ack(7, expected))
    assert [each for ack in acks for each in ack.meps] == expected
    short = expected[:60]
    revoked = list(split_moved(Revoked, 7, short))
    split: list[ControlMessage] = [*acks, *revoked]
    for message in split:
        assert decode_message(encode_message(message)) == message
    parts = [each for message in revoked for each in message.meps]
    assert all(before[1] < after[0] for before, after in pairwise(parts))
    assert all(any(first <= a and b <= last for first, last in short) for a, b in parts)
    assert sum(b - a for a, b in parts) + len(parts) == sum(b - a for a, b in short) + len(short)


@given(st.text(st.characters(), max_size=3000))
def test_any_text_becomes_a_remark_that_can_be_sent(text: str) -> None:
    message = Goodbye(as_remark(text))
    assert decode_message(encode_message(message)) == message


def test_a_message_that_would_be_refused_cannot_be_written() -> None:
    with pytest.raises(MessageError):
        encode_message(Credit(run=-1, meps=1))
    with pytest.raises(MessageError):
        encode_message(Credit(run=1, meps=1 << 70))
    with pytest.raises(MessageError):
        encode_message(Ack(run=1, meps=((5, 4),)))
    with pytest.raises(MessageError):
        encode_message(Goodbye("x" * (MAX_TEXT_LENGTH + 1)))


def test_an_error_text_stays_short_whatever_was_received() -> None:
    assert len(str(refusal(CREDIT | {"run": [list(range(1000))] * 1000}))) < 500
