"""Messages of the control socket: every message of feeders and operators."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol.errors import MessageError, RejectReason
from hltnode.protocol.transport.control_messages import ControlMessage, decode_message, encode_message
from hltnode.protocol.transport.feeder_messages import Ack, Credit, EndOfRun, Error, Goodbye, Hello, Nack, Welcome
from hltnode.protocol.transport.messages import MAX_ITEMS, MAX_MESSAGE_SIZE, MAX_TEXT_LENGTH
from hltnode.protocol.transport.run_control_messages import Command, CommandName, Reply, RunState
from tests.protocol.strategies import u16, u32, u64

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
ranges = st.lists(st.tuples(u64, u64).map(lambda pair: (min(pair), max(pair))), max_size=5).map(tuple)

messages = st.one_of(
    st.builds(Hello, text, text, u32, st.lists(u16, max_size=9).map(tuple), u64, u16, u32),
    st.builds(Welcome, text, text, u32, u32),
    st.builds(Credit, u32, u32),
    st.builds(Ack, u32, ranges),
    st.builds(Nack, u32, u16, u64, st.sampled_from(RejectReason), st.booleans()),
    st.builds(EndOfRun, u32, st.none() | u64),
    st.builds(Goodbye, text),
    st.builds(Error, text, text),
    st.builds(Command, u32, st.sampled_from(CommandName), st.none() | u32),
    st.builds(Reply, u32, st.booleans(), st.sampled_from(RunState), text),
)

CREDIT = {"v": 1, "type": "credit", "run": 7, "meps": 100}


@given(messages)
def test_a_message_comes_back_as_written(message: ControlMessage) -> None:
    assert decode_message(encode_message(message)) == message


def test_a_message_is_a_map_with_version_and_type() -> None:
    assert msgpack.unpackb(encode_message(Credit(7, 100))) == CREDIT


def refusal(content: object) -> MessageError:
    with pytest.raises(MessageError) as error:
        decode_message(msgpack.packb(content))
    return error.value


@pytest.mark.parametrize("version", [None, 0, 2, "1", 1.0, True])
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
    assert refusal({"v": 1, "type": "ack", "run": 1, "meps": meps}).reason is RejectReason.MALFORMED


def test_a_nack_with_an_unknown_reason_is_refused() -> None:
    nack = {"v": 1, "type": "nack", "run": 1, "source": 2, "mep": 3, "reason": "mood", "resend": True}
    assert "mood" in str(refusal(nack))


@pytest.mark.parametrize("content", [[1, 2], 5, None, "credit", {1: 2}, {b"v": 1}])
def test_anything_but_a_map_of_texts_is_refused(content: object) -> None:
    assert refusal(content).reason is RejectReason.MALFORMED


def test_a_message_over_the_size_limit_is_refused_unread() -> None:
    with pytest.raises(MessageError) as error:
        decode_message(bytes(MAX_MESSAGE_SIZE + 1))
    assert error.value.reason is RejectReason.OVERSIZED


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize(
    ("content", "field", "limit", "item"),
    [
        ({"v": 1, "type": "goodbye"}, "reason", MAX_TEXT_LENGTH, "x"),
        ({"v": 1, "type": "ack", "run": 1}, "meps", MAX_ITEMS, [[1, 1]]),
    ],
    ids=["text", "list"],
)
def test_texts_and_lists_are_read_up_to_the_limits_and_refused_over_them(
    content: dict[str, Any], field: str, limit: int, item: Any, over: bool
) -> None:
    message = content | {field: item * (limit + over)}
    if over:
        assert refusal(message).reason is RejectReason.MALFORMED
    else:
        assert len(getattr(decode_message(msgpack.packb(message)), field)) == limit


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
