"""For every kind of wrong value in every field of every message, the refusal names message and field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import pytest

from hltnode.protocol.errors import MessageError, RejectReason
from hltnode.protocol.transport.assignments import (
    Assignments,
    Follow,
    decode_assignment_message,
    encode_assignment_message,
)
from hltnode.protocol.transport.control_messages import ControlMessage, decode_message, encode_message
from hltnode.protocol.transport.decisions import MepDecision, decode_decision, encode_decision
from hltnode.protocol.transport.feeder_messages import (
    Ack,
    Credit,
    EndOfRun,
    Error,
    Goodbye,
    Held,
    Hello,
    Missed,
    Nack,
    Returned,
    Revoked,
    RunClosed,
    Welcome,
)
from hltnode.protocol.transport.messages import MAX_ITEMS, MAX_TEXT_LENGTH
from hltnode.protocol.transport.requests import (
    Answer,
    Cancel,
    Refusal,
    Request,
    RequestRefusal,
    decode_answer,
    decode_request,
    encode_answer,
    encode_request,
)
from hltnode.protocol.transport.run_control_messages import Command, CommandName, Reply, RunState

Content = dict[str, Any]
Decode = Callable[[bytes], object]

CONTROL_MESSAGES: tuple[ControlMessage, ...] = (
    Hello("feeder", "s", 1, (1, 2), 0, 100, 1 << 20, False),
    Welcome("node", "s", 1, 1 << 20, 1),
    Credit(1, 2),
    Ack(1, ((0, 4), (7, 7))),
    Held("s", 1, ((0, 4), (7, 7))),
    Revoked(1, ((0, 4), (7, 7))),
    Returned(1, ((0, 4), (7, 7))),
    Nack(1, 2, 3, RejectReason.BAD_CRC, True),
    Missed(1, 2, ((0, 4), (7, 7))),
    EndOfRun(1, 5),
    Goodbye("end"),
    Error("word", "text"),
    RunClosed(1),
    Command(1, CommandName.START, 7),
    Reply(1, True, RunState.READY, "text"),
)
ASSIGNMENT_MESSAGES: tuple[Follow | Assignments, ...] = (
    Follow("feeder", 1, "tcp://a:1", "s", 0),
    Assignments("s", 2, 0, (5, 6), (0, 1), True, ""),
)
ANSWER = Answer(1, "node", "lhcb", 2, 1, 33, b"\1", bytes(8), bytes(4), ("a", "b"), bytes(8), b"")
DECISION = MepDecision("node", 1, 2, 3, 4, 1, 33, 6, "complete", (7,), b"\1", bytes(8), bytes(4))


def contents_by_type(decode: Decode, *frames: bytes) -> dict[str, tuple[Decode, Content]]:
    contents = [msgpack.unpackb(frame) for frame in frames]
    return {content["type"]: (decode, content) for content in contents}


GOOD = (
    contents_by_type(decode_message, *map(encode_message, CONTROL_MESSAGES))
    | contents_by_type(decode_assignment_message, *map(encode_assignment_message, ASSIGNMENT_MESSAGES))
    | contents_by_type(decode_decision, encode_decision(DECISION))
    | contents_by_type(decode_request, encode_request(Request(1, 5)), encode_request(Cancel(2)))
    | contents_by_type(decode_answer, encode_answer(ANSWER), encode_answer(Refusal(1, RequestRefusal.BUSY, "text")))
)

# Values that no field of the messages accepts.
FOREIGN: tuple[object, ...] = (1.0, {"a": 1}, msgpack.ExtType(1, b"x"))


def wrong_values(name: str, field: str, value: object) -> Iterator[object]:
    """Values with a wrong type or out of range, for a field with a valid value `value`."""
    yield from FOREIGN
    may_be_none = (name, field) in (("end_of_run", "last_mep"), ("command", "run"))
    if not may_be_none:
        yield None
    if isinstance(value, bool):
        yield from (0, 1, "true", b"\1", [True])
    elif isinstance(value, int):
        yield from (-1, -(1 << 63), True, False, "1", b"1", [1])
        if field not in ("mep", "seq", "first_event", "position", "next_mep", "first_mep", "last_mep", "token", "id"):
            yield (1 << 64) - 1
    elif isinstance(value, str):
        yield from (1, True, b"text", ["text"], "x" * (MAX_TEXT_LENGTH + 1))
    elif isinstance(value, bytes):
        # "YWJj" is base64.
        yield from (1, True, "text", "YWJj", ["text"])
        if field != "lists":
            yield from (value + b"\0", value[:-1])
    elif field == "collections":
        assert isinstance(value, list)
        yield from (1, True, "text", b"text", [None], [True], [1], [b"a"], value[:1], ["a"] * 257)
    else:
        assert isinstance(value, list)
        yield from (1, True, "text", b"text", [None], [True], ["1"], [-1], [1.0], [[[1, 2]]], [value[0]] * 4097)
        if isinstance(value[0], list):
            yield from ([1], [[1]], [[1, 2, 3]], [[2, 1]], [[1, "2"]], [[1, True]], [[-1, 2]], [[0, 1], [5, 4]])
        else:
            yield from ([[1]], [value[0], "2"])


@pytest.mark.parametrize("name", GOOD)
def test_the_good_message_is_read(name: str) -> None:
    decode, content = GOOD[name]
    assert decode(msgpack.packb(content)) is not None


def refusal(name: str, content: Content) -> MessageError:
    with pytest.raises(MessageError) as error:
        GOOD[name][0](msgpack.packb(content))
    assert len(str(error.value)) < 500
    return error.value


@pytest.mark.parametrize(
    ("name", "field"), [(name, field) for name, (_, content) in GOOD.items() for field in content if field != "v"]
)
def test_a_field_of_a_wrong_type_or_out_of_range_is_refused_by_name(name: str, field: str) -> None:
    content = GOOD[name][1]
    for value in wrong_values(name, field, content[field]):
        error = refusal(name, content | {field: value})
        assert error.reason is RejectReason.MALFORMED, repr(value)[:80]
        if name in ("decision", "answer") and isinstance(value, (list, dict)):
            # They have one list; the refusal names the field with one item too many.
            assert any(each in str(error) for each in ("missing_sources", "collections", "counts", field))
            continue
        assert field in str(error), (repr(value)[:80], str(error))
        if field != "type":
            assert f"message of type '{name}'" in str(error), (repr(value)[:80], str(error))


@pytest.mark.parametrize(
    ("name", "field"), [(name, field) for name, (_, content) in GOOD.items() for field in content if field != "v"]
)
def test_a_field_that_is_missing_is_named(name: str, field: str) -> None:
    error = refusal(name, {key: value for key, value in GOOD[name][1].items() if key != field})
    assert error.reason is RejectReason.MALFORMED
    assert field in str(error)


@pytest.mark.parametrize("name", GOOD)
def test_a_field_that_is_unknown_is_named(name: str) -> None:
    for field in ("extra", "Run", "", "x" * MAX_TEXT_LENGTH):
        error = refusal(name, GOOD[name][1] | {field: 1})
        assert error.reason is RejectReason.MALFORMED
        assert f"message of type '{name}'" in str(error)
        assert f"unknown field `{field[:40]}" in str(error)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("version", [None, 0, -1, 255, "1", b"1", 1.0, True])
def test_a_version_that_is_not_the_messages_own_is_refused(name: str, version: object) -> None:
    error = refusal(name, GOOD[name][1] | {"v": version})
    assert error.reason is RejectReason.BAD_VERSION
    assert "version" in str(error)


@pytest.mark.parametrize("name", GOOD)
def test_a_message_without_version_is_refused(name: str) -> None:
    without = {key: value for key, value in GOOD[name][1].items() if key != "v"}
    assert refusal(name, without).reason is RejectReason.BAD_VERSION


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (Hello("x" * (MAX_TEXT_LENGTH + 1), "s", 1, (), 0, 1, 1, False), "feeder"),
        (Hello("f", "é" * (MAX_TEXT_LENGTH // 2 + 1), 1, (), 0, 1, 1, False), "session"),
        (Hello("f", "s", 1, (1,) * (MAX_ITEMS + 1), 0, 1, 1, False), "sources"),
        (Hello("f", "s", 1, (), 0, 1, 1, False, chain="two words"), "chain"),
        (Ack(1, ((1, 1),) * (MAX_ITEMS + 1)), "meps"),
        (Ack(1, ((5, 4),)), "meps"),
        (Credit(True, 1), "run"),
        (Nack(1, 1 << 16, 3, RejectReason.LATE, True), "source"),
        (EndOfRun(1, -1), "last_mep"),
    ],
)
def test_a_message_that_a_reader_would_refuse_cannot_be_written(message: Any, field: str) -> None:
    with pytest.raises(MessageError, match=field):
        encode_message(message)


@pytest.mark.parametrize("run", [1 << 64, "\ud800"])
def test_a_value_that_msgpack_cannot_hold_cannot_be_written(run: Any) -> None:
    with pytest.raises(MessageError, match="of type 'credit': cannot be packed"):
        encode_message(Credit(run, 1))
