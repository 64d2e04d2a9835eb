"""Descriptions and lists of decision messages: what is written is read again, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol.value_lists import ListDescription, ValueList, decode_blocks, encode_block, read_description

names = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True)
kinds = st.sampled_from(["u1", "u2", "u4", "u8", "i1", "i4", "f2", "f4", "f8"])
descriptions = st.builds(ListDescription, names, st.dictionaries(names, kinds, min_size=1, max_size=5))


def content(description: ListDescription, counts: list[int], seed: int) -> ValueList:
    rng = np.random.default_rng(seed)
    offsets = np.cumsum([0, *counts]).astype(np.uint32)
    values = {name: rng.integers(0, 100, sum(counts)).astype(kind) for name, kind in description.values.items()}
    return ValueList(offsets, values)


@given(descriptions, st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(0, 99))
def test_a_list_and_one_that_was_left_out_are_read_again(
    description: ListDescription, counts: list[int], seed: int
) -> None:
    text = description.to_bytes()
    assert read_description(memoryview(text + b"more")) == (description, len(text))
    other = ListDescription("Other", {"x": "u1"})
    written = content(description, counts, seed)
    raw = encode_block(description, written) + encode_block(other, None)
    assert len(raw) % 4 == 0
    found = decode_blocks(memoryview(raw), len(counts))
    assert list(found) == [description.name, "Other"]
    assert found["Other"] is None
    read = found[description.name]
    assert read is not None
    assert read.offsets.tolist() == written.offsets.tolist()
    for event in range(len(counts)):
        for name, kind in description.values.items():
            values = read.of_event(event)[name]
            assert values.dtype == np.dtype(f"<{kind}")
            assert values.tolist() == written.of_event(event)[name].tolist()


@given(st.data())
def test_no_cut_and_no_changed_byte_of_a_list_raises_anything_but_a_value_error(data: st.DataObject) -> None:
    description = ListDescription("hits", {"charge": "u2", "time": "f4"})
    raw = bytearray(encode_block(description, content(description, [2, 0, 1], 1)))
    for end in range(1, len(raw)):
        with pytest.raises(ValueError, match=r"list|bytes|description|name|value"):
            decode_blocks(memoryview(raw[:end]), 3)
    with pytest.raises(ValueError, match="4 expected"):
        decode_blocks(memoryview(raw), 4)
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode_blocks(memoryview(raw), 3)
    except ValueError:
        return


def test_two_blocks_of_one_list_and_offsets_that_descend_are_refused() -> None:
    description = ListDescription("hits", {"charge": "u1"})
    block = encode_block(description, content(description, [1], 1))
    with pytest.raises(ValueError, match="there twice"):
        decode_blocks(memoryview(block + block), 1)
    wrong = ValueList(np.array([0, 2, 1], np.uint32), {"charge": np.zeros(1, np.uint8)})
    with pytest.raises(ValueError, match="do not ascend"):
        decode_blocks(memoryview(encode_block(description, wrong)), 2)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (ListDescription("hits", {}), "0 values"),
        (ListDescription("hits", {"x": "c8"}), "type c8"),
        (ListDescription("", {"x": "u1"}), "1 to 255 letters"),
        (ListDescription("hits", {f"x{i}": "u1" for i in range(256)}), "256 values"),
    ],
)
def test_what_a_description_cannot_hold_is_refused(description: ListDescription, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        description.to_bytes()
