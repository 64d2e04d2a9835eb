"""Messages of nodes, operators and a combiner: their bytes, and what is refused."""

from __future__ import annotations

import struct
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol.errors import MessageError
from hltnode.protocol.transport import seed_messages as seeds
from hltnode.protocol.transport.messages import Message
from hltnode.protocol.transport.seed_messages import (
    MAX_RUN_NS,
    MAX_SEED_BYTES,
    ExternalWindow,
    Join,
    Joined,
    Keep,
    KeepReply,
    NotJoined,
    SliceSeeds,
    SliceWindows,
    decode_from_combiner,
    decode_to_combiner,
    encode_from_combiner,
    encode_to_combiner,
)
from hltnode.protocol.value_lists import ListDescription

DESCRIPTION = ListDescription("w", {"n": "u2"}).to_bytes()
ROW = struct.pack("<2q2IH", 1990, 2010, 5, 1, 7)
TO_COMBINER: list[tuple[Any, str]] = [
    (
        Join("node1", "5f3e", "km3net", 7, 1 << 40),
        "87a17601a474797065a46a6f696ea46e6f6465a56e6f646531a773657373696f6ea435663365a5636861696ea66b6d336e6574"
        "a372756e07ac68656c645f66726f6d5f6e73cf0000010000000000",
    ),
    (
        SliceSeeds(7, 2, 1000, 10, 20, DESCRIPTION, ROW),
        "8aa17601a474797065ab736c6963655f7365656473a372756e07a5736c69636502a7636f72655f6e73cd03e8a96265666f72655f6e730a"
        "a9626568696e645f6e7314ab6465736372697074696f6ec4080177017502016e00a57365656473c41a"
        + ROW.hex()
        + "a577686f6c65c2",
    ),
    (
        Keep(9, 7, 5, 1 << 40),
        "86a17601a474797065a46b656570a77265717565737409a372756e07a873746172745f6e7305a6656e645f6e73cf0000010000000000",
    ),
]
FROM_COMBINER: list[tuple[Any, str]] = [
    (Joined("5f3e"), "83a17601a474797065a66a6f696e6564a773657373696f6ea435663365"),
    (NotJoined("why"), "83a17601a474797065aa6e6f745f6a6f696e6564a474657874a3776879"),
    (
        KeepReply(9, True, 7, "kept"),
        "86a17601a474797065aa6b6565705f7265706c79a77265717565737409a26f6bc3a372756e07a474657874a46b657074",
    ),
    (
        ExternalWindow(7, 5, 9),
        "85a17601a474797065af65787465726e616c5f77696e646f77a372756e07a873746172745f6e7305a6656e645f6e7309",
    ),
    (
        SliceWindows(7, 2, True, b"", ROW[:24]),
        "87a17601a474797065ad736c6963655f77696e646f7773a372756e07a5736c69636502a8636f6d706c657465c3"
        "ab6465736372697074696f6ec400a777696e646f7773c418" + ROW[:24].hex(),
    ),
]


@pytest.mark.parametrize(("message", "content"), TO_COMBINER)
def test_messages_to_the_combiner_have_these_bytes(message: Any, content: str) -> None:
    raw = encode_to_combiner(message)
    assert raw.hex() == content
    assert decode_to_combiner(raw) == message


@pytest.mark.parametrize(("message", "content"), FROM_COMBINER)
def test_messages_of_the_combiner_have_these_bytes(message: Any, content: str) -> None:
    raw = encode_from_combiner(message)
    assert raw.hex() == content
    assert decode_from_combiner(raw) == message


def test_rows_have_the_fields_of_the_format() -> None:
    rows = seeds.rows_of(DESCRIPTION, ROW)
    assert rows.dtype.itemsize == 26
    assert rows[0].item()[:4] == (1990, 2010, 5, 1)
    assert bytes(rows["columns"][0]) == b"\7\0"
    assert seeds.row_type(b"").itemsize == seeds.SEED_SIZE


def of_slice(**changes: Any) -> SliceSeeds:
    values = {"run": 7, "slice": 2, "core_ns": 1000, "before_ns": 10, "behind_ns": 20, "description": b"", "seeds": b""}
    return SliceSeeds(**{**values, **changes})


def row(start: int, end: int) -> bytes:
    return struct.pack("<2q2I", start, end, 1, 0)


@pytest.mark.parametrize(
    ("good", "bad", "text"),
    [
        (of_slice(seeds=row(1989, 3021)), of_slice(seeds=row(1988, 3021)), "outside of"),
        (of_slice(seeds=row(1989, 3021)), of_slice(seeds=row(1989, 3022)), "outside of"),
        (of_slice(seeds=row(2000, 2001)), of_slice(seeds=row(2000, 2000)), "ends before it begins"),
        (of_slice(seeds=row(2000, 2001)), of_slice(seeds=row(2000, 2001)[:-1]), "bytes of rows"),
        (of_slice(), of_slice(core_ns=0), "62 bits"),
        (
            of_slice(slice=0, core_ns=MAX_RUN_NS - 31),
            of_slice(slice=0, core_ns=MAX_RUN_NS - 30),
            "62 bits",
        ),
        (of_slice(), of_slice(description=b"\1"), "description"),
        (of_slice(description=DESCRIPTION), of_slice(description=DESCRIPTION + bytes(4)), "description of"),
        (of_slice(seeds=b""), of_slice(seeds=row(2000, 2001) * (MAX_SEED_BYTES // 24 + 1)), "at most"),
        (Keep(1, 0, 5, 6), Keep(1, 0, 5, 5), "start < end"),
        (Keep(1, 0, 5, MAX_RUN_NS), Keep(1, 0, 5, MAX_RUN_NS + 1), "start < end"),
    ],
)
def test_contents_that_contradict_themselves_are_refused(good: Any, bad: Any, text: str) -> None:
    assert decode_to_combiner(encode_to_combiner(good)) == good
    with pytest.raises(MessageError, match=text):
        encode_to_combiner(bad)


def test_an_external_window_that_ends_before_it_begins_is_refused() -> None:
    assert encode_from_combiner(ExternalWindow(1, 5, 6))
    with pytest.raises(MessageError, match="start < end"):
        encode_from_combiner(ExternalWindow(1, 6, 6))
    with pytest.raises(MessageError, match="bytes of rows"):
        encode_from_combiner(SliceWindows(1, 1, True, b"", b"\0"))
    assert encode_from_combiner(SliceWindows(1, 1, True, b"", row(-MAX_RUN_NS, MAX_RUN_NS)))
    for start, end in ((-MAX_RUN_NS - 1, 0), (0, MAX_RUN_NS + 1), (5, 5)):
        with pytest.raises(MessageError, match="62 bits"):
            encode_from_combiner(SliceWindows(1, 1, True, b"", row(start, end)))


def test_other_versions_and_the_messages_of_the_other_side_are_refused() -> None:
    raw = msgpack.unpackb(encode_to_combiner(Join("n", "s", "c")))
    with pytest.raises(MessageError, match="version 1 expected, 2 found"):
        decode_to_combiner(msgpack.packb({**raw, "v": 2}))
    with pytest.raises(MessageError, match="unknown type"):
        decode_to_combiner(encode_from_combiner(Joined("s")))
    with pytest.raises(MessageError, match="unknown type"):
        decode_from_combiner(encode_to_combiner(Join("n", "s", "c")))


MESSAGES = [encode_to_combiner(message) for message, _ in TO_COMBINER] + [
    encode_from_combiner(message) for message, _ in FROM_COMBINER
]


@given(st.sampled_from(MESSAGES), st.integers(0, 300), st.binary(max_size=6), st.integers(0, 6))
def test_damaged_messages_are_read_or_refused_and_never_anything_else(
    raw: bytes, at: int, put: bytes, removed: int
) -> None:
    damaged = raw[: at % len(raw)] + put + raw[at % len(raw) + removed :]
    for decode in (decode_to_combiner, decode_from_combiner):
        try:
            message: Message = decode(damaged)
        except MessageError:
            continue
        if isinstance(message, SliceSeeds):
            rows = seeds.rows_of(message.description, message.seeds)
            assert (rows["start_ns"] < rows["end_ns"]).all()
            assert np.abs(rows["end_ns"]).max(initial=0) <= MAX_RUN_NS


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_as_description_and_rows_are_read_or_refused(description: bytes, raw: bytes) -> None:
    try:
        rows = seeds.rows_of(description, raw)
    except ValueError:
        return
    assert rows.nbytes == len(raw)
