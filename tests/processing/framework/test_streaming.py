"""Declarations of streaming chains: lengths, margins, hits and the list of windows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hltnode.processing.framework.collections import I32, U8, U32, Collection, DeclarationError, Placement
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence, Grid
from hltnode.processing.framework.output_lists import ListValue, OutputList, result_name
from hltnode.processing.framework.streaming import MAX_SUB_SLICES, HitLayout, Streaming
from hltnode.processing.raw.chain import CHAIN
from hltnode.processing.selection.trigger_chain import TriggerChain

HIT = HitLayout(size=8, time_offset=4)
STREAMING = Streaming(sub_slice_ns=1000, margin_before=1, margin_behind=2, hit=HIT)
FOUND = Collection("found", capacity=lambda limits: limits.events, placement=Placement.fixed(1), max_per_event=1)
COUNT = FOUND.per_event("count", U32)
SIGNED, UNSIGNED, SMALL = FOUND.column("signed", I32), FOUND.column("unsigned", U32), FOUND.column("small", U8)
COLUMNS = {"start_ns": SIGNED, "end_ns": SIGNED, "lines": UNSIGNED}


def windows_of(**columns: Any) -> OutputList:
    values = {name: ListValue(column=column, text="") for name, column in {**COLUMNS, **columns}.items() if column}
    return OutputList(name="windows", text="", count=COUNT, values=values)


FIND = Algorithm(
    name="find",
    source=Path(__file__),
    grid=Grid.EVENTS,
    block_size=32,
    writes=(COUNT, SIGNED, UNSIGNED, SMALL),
)


def chain_with(**fields: Any) -> TriggerChain:
    sequence = AlgorithmSequence((*CHAIN.sequence, FIND))
    return replace(CHAIN, **{"sequence": sequence, "lists": (windows_of(),), "windows": "windows", **fields})


@pytest.mark.parametrize(
    ("make", "fields", "message"),
    [
        (HitLayout, {"size": 0, "time_offset": 0}, "size = 0 bytes, expected 1 to 65527"),
        (HitLayout, {"size": 8, "time_offset": 5}, "time_offset = 5, but a record of 8 bytes has room up to 4"),
        (HitLayout, {"size": 8, "time_offset": -1}, "time_offset = -1"),
        (HitLayout, {"size": 8, "time_offset": 0, "time_type": "<i4"}, "time_type = '<i4', expected <u2, <u4"),
        (HitLayout, {"size": 8, "time_offset": 0, "unit_ns": 0}, "unit_ns = 0, expected a positive number"),
        (HitLayout, {"size": 8, "time_offset": 0, "unit_ns": Fraction(1, 1 << 32)}, "unit_ns = 1/4294967296"),
        (Streaming, {"sub_slice_ns": 0}, "sub_slice_ns = 0, expected 1 to 2147483647"),
        (Streaming, {"margin_before": -1}, "margin_before = -1, expected 0 or more"),
        (Streaming, {"margin_behind": MAX_SUB_SLICES}, "margins of 65536 sub-slices"),
    ],
)
def test_what_cannot_be_cut_is_refused(make: Any, fields: dict[str, Any], message: str) -> None:
    usual = {"sub_slice_ns": 1000, "margin_before": 1, "margin_behind": 2, "hit": HIT} if make is Streaming else {}
    with pytest.raises(DeclarationError, match=message):
        make(**{**usual, **fields})


def test_windows_are_a_list_with_times_and_lines() -> None:
    assert chain_with(streaming=STREAMING, lists=(windows_of(extra=SMALL),)).windows == "windows"
    assert [STREAMING.core(n) for n in (2, 3, 4, 10)] == [0, 0, 1, 7]
    for fields, message in (
        ({}, "windows = 'windows', but it does not declare `streaming`"),
        ({"streaming": STREAMING, "windows": ""}, "windows = '' is none of its lists: windows"),
        ({"streaming": STREAMING, "windows": "hits"}, "windows = 'hits' is none of its lists: windows"),
        ({"streaming": STREAMING, "lists": (windows_of(lines=None),)}, "needs lines of type u4; it does not have it"),
        ({"streaming": STREAMING, "lists": (windows_of(end_ns=UNSIGNED),)}, "end_ns of type i4; it has the type u4"),
    ):
        with pytest.raises(DeclarationError, match=message):
            chain_with(**fields)


def test_lengths_are_those_of_the_constants_of_a_sequence() -> None:
    streaming = replace(STREAMING, constants={"sub_slice_ns": "length", "margin_behind": "behind"})
    found = streaming.configured({"length": {500}, "behind": [3, 3], "other": {1, 2}})
    assert (found.sub_slice_ns, found.margin_before, found.margin_behind) == (500, 1, 3)
    assert STREAMING.configured({"length": {500}}) == STREAMING
    for values, message in (
        ({"length": {500}}, "margin_behind is the constant behind, which has no value in the sequence"),
        ({"length": {500, 400}, "behind": {1}}, "constant length, which has several values: 400, 500 in the sequence"),
        ({"length": {0}, "behind": {1}}, "sub_slice_ns = 0"),
    ):
        with pytest.raises(DeclarationError, match=message):
            streaming.configured(values)


def test_windows_are_delivered_whichever_lists_a_node_names() -> None:
    chain = chain_with(streaming=STREAMING, lists=(*CHAIN.lists, windows_of()))
    trigger = CHAIN.load_trigger(None)
    for named, delivered in (((), ["windows"]), (("source_banks",), ["source_banks", "windows"])):
        assert [each.name for each in chain.with_lines(trigger, with_lists=named).lists] == delivered


def test_a_value_with_the_name_of_a_result_has_the_name_of_its_list_before_it() -> None:
    assert [result_name("windows", value) for value in ("start_ns", "lines")] == ["start_ns", "windows_lines"]
    other = OutputList(name="windows_lines", text="", count=COUNT, values={"n": ListValue(column=SMALL, text="")})
    with pytest.raises(DeclarationError, match="two results of an event have the name windows_lines"):
        chain_with(streaming=STREAMING, lists=(windows_of(), other))
