"""The decision on a time slice: version 3, with the windows that a node keeps."""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import pytest

from hltnode.client.consumers import decisions_of
from hltnode.protocol.errors import MessageError, MessageVersionError
from hltnode.protocol.transport.decisions import (
    MepDecision,
    SliceDecision,
    decode_decision,
    decode_decisions,
    encode_decision,
)
from hltnode.protocol.value_lists import ListDescription, ValueList, encode_block

KINDS = {"start_ns": "u8", "end_ns": "u8", "lines": "u4", "charge": "f4"}
START = [1 << 40, (1 << 62) + 5, 7]
OFFSETS = np.array([0, 2, 2, 3], np.uint32)


def block(kinds: dict[str, str], *, name: str = "windows", offsets: Any = OFFSETS, longer: int = 10) -> bytes:
    columns = {
        "start_ns": START,
        "end_ns": [at + longer for at in START],
        "lines": [1, 2, 3],
        "charge": [0.5, 1.5, 2.5],
    }
    values = {key: np.array(columns[key]).astype(f"<{kind}") for key, kind in kinds.items()}
    return encode_block(ListDescription(name, kinds), ValueList(offsets, values))


def decision(windows: bytes = b"") -> SliceDecision:
    return SliceDecision("n", 7, 3, 5, 30, 3, 1, 9, "complete", (), b"\x05", bytes(12), bytes(12), windows=windows)


def test_windows_come_with_their_sub_slices_and_all_values() -> None:
    message = encode_decision(decision(block(KINDS)))
    assert msgpack.unpackb(message)["v"] == 3
    for found in (decode_decision(message), *decode_decisions(message), *decisions_of([message], shadow=False)):
        assert isinstance(found, SliceDecision)
        assert found == decision(block(KINDS))
        windows = found.time_windows()
        assert windows is not None
        assert windows.of_event(1)["lines"].tolist() == []
        assert windows.of_event(0)["start_ns"].tolist() == START[:2]
        assert windows.of_event(2)["end_ns"].tolist() == [17]
        assert windows.values["charge"].tolist() == [0.5, 1.5, 2.5]
    assert decision(block(KINDS)).nbytes == 24 + len(block(KINDS))
    left_out = encode_block(ListDescription("windows", KINDS), None)
    none = decode_decision(encode_decision(decision(left_out)))
    assert isinstance(none, SliceDecision)
    assert none.time_windows() is None


def test_version_2_has_no_windows_and_keeps_its_bytes() -> None:
    of_mep = MepDecision("n", 7, 3, 5, 30, 3, 1, 9, "complete", (), b"\x05", bytes(12), bytes(12))
    message = encode_decision(of_mep)
    assert type(decode_decision(message)) is MepDecision
    fields = msgpack.unpackb(message)
    assert list(fields) == ["v", "type", *(name for name in MepDecision.__struct_fields__ if name in fields)]
    assert fields["v"] == 2
    of_slice = msgpack.unpackb(encode_decision(SliceDecision.of(of_mep, block(KINDS))))
    assert of_slice == {**fields, "v": 3, "windows": block(KINDS)}
    for changed, message_text in (({"v": 2}, "unknown field `windows`"), ({"v": 4}, "version 2 expected, 4 found")):
        for decode in (decode_decision, decode_decisions):
            with pytest.raises(MessageError, match=message_text):
                decode(msgpack.packb({**of_slice, **changed}))
    with pytest.raises(MessageVersionError):
        decode_decision(msgpack.packb({**of_slice, "v": "3"}))


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        (b"", "one list of windows expected, 0 found"),
        (block(KINDS) + block(KINDS, name="more"), "one list of windows expected, 2 found"),
        (block(KINDS)[:-4], "bytes"),
        (block(KINDS, offsets=np.array([0, 3], np.uint32)), "1 events in"),
        (block({**KINDS, "start_ns": "f8"}), "without start_ns of type u8"),
        (block({"start_ns": "u8", "lines": "u4"}), "without end_ns of type u8"),
        (block(KINDS, longer=-1), "a window ends before its start"),
    ],
)
def test_windows_that_cannot_be_read_are_refused(windows: bytes, message: str) -> None:
    good = msgpack.unpackb(encode_decision(decision(block(KINDS))))
    with pytest.raises(MessageError, match=message):
        decode_decisions(msgpack.packb({**good, "windows": windows}))
