"""Declarations of output lists, their content, and their memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.algorithms.deliver_lists import deliver_lists
from hltnode.processing.framework.collections import (
    F32,
    U8,
    U16,
    U32,
    Collection,
    Column,
    DeclarationError,
    Placement,
    Record,
)
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence, Grid
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import plan_memory
from hltnode.processing.framework.output_lists import ListContent, ListValue, OutputList, joined_lists, no_words
from hltnode.processing.raw.banks.collections import error_bank_count
from hltnode.processing.raw.chain import CHAIN

LIMITS = BatchLimits(events=100)
POINT = Record("point", np.dtype([("x", "<f4"), ("bins", "<u2", (2,))]))
BLOBS = Collection("blobs", capacity=lambda limits: 10 * limits.events, placement=Placement.fixed(10), max_per_event=10)
OTHERS = Collection("others", capacity=lambda limits: 10 * limits.events, placement=Placement.fixed(10))
TILES = Collection("tiles", capacity=lambda limits: limits.events, placement=Placement.fixed(1), parts=4)
UNPLACED = Collection("unplaced", capacity=lambda limits: limits.events)
COUNT = BLOBS.per_event("count", U32)
AREA, KIND, WHERE = BLOBS.column("area", U32), BLOBS.column("kind", U8), BLOBS.column("where", POINT)


def value(column: Column, member: str = "") -> ListValue:
    return ListValue(column=column, member=member, text="")


def a_list(name: str = "blobs", values: Mapping[str, ListValue] | None = None, **fields: Any) -> OutputList:
    values = {"area": value(AREA)} if values is None else values
    return OutputList(**{"name": name, "text": "", "count": COUNT, "values": values, **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "Blobs"}, "'Blobs' is not a name in lower case"),
        ({"values": {"my area": value(AREA)}}, "'my area' is not a name in lower case"),
        ({"values": {}}, "list blobs has no values"),
        ({"count": AREA}, r"its count blobs\.area is not a u32 per event"),
        ({"count": BLOBS.per_event("few", U16)}, r"its count blobs\.few is not a u32 per event"),
        ({"count": BLOBS.per_event("two", U32, width=2)}, r"its count blobs\.two is not a u32 per event"),
        ({"values": {"n": value(COUNT)}}, r"value n: blobs\.count has no place for the objects of an event"),
        ({"values": {"n": value(TILES.column("n", U32))}}, r"tiles\.n has no place for the objects of an event"),
        ({"values": {"n": value(UNPLACED.column("n", U32))}}, r"unplaced\.n has no place for the objects"),
        (
            {"values": {"area": value(AREA), "n": value(OTHERS.column("n", U32))}},
            r"others\.n is not of collection",
        ),
        (
            {"values": {"pair": value(BLOBS.column("pair", F32, width=2))}},
            r"blobs\.pair has 2 elements for each",
        ),
        ({"values": {"x": value(WHERE, "z")}}, r"'z' is not a number of blobs\.where"),
        ({"values": {"x": value(WHERE)}}, r"'' is not a number of blobs\.where"),
        ({"values": {"x": value(WHERE, "bins")}}, r"'bins' is not a number of blobs\.where"),
        ({"values": {"x": value(AREA, "x")}}, r"'x' is not a number of blobs\.area"),
    ],
)
def test_a_list_that_cannot_be_delivered_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        a_list(**fields)


def test_values_of_one_column_are_delivered_together() -> None:
    of = a_list(values={"x": value(WHERE, "x"), "area": value(AREA), "again": value(WHERE, "x")})
    assert [column.name for column in of.delivered.values()] == ["delivered_blobs.where", "delivered_blobs.area"]
    assert of.columns == (COUNT, WHERE, AREA)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ((a_list(),), r"list blobs reads blobs\.count, which its sequence does not write"),
        ((replace(CHAIN.lists[0], name="banks"),), "two results of an event have the name banks"),
        ((replace(CHAIN.lists[0], name="sources"),), "a list and an input have the name sources"),
        ((CHAIN.lists[0], replace(CHAIN.lists[0], name="again")), "two results of an event have the name source"),
        (
            (
                replace(CHAIN.lists[0], values={"flags": CHAIN.lists[0].values["source"]}),
                replace(CHAIN.lists[0], name=f"{CHAIN.lists[0].name}_flags"),
            ),
            "two results of an event have the name source_banks_flags",
        ),
    ],
)
def test_a_chain_refuses_lists_that_its_results_cannot_name(lists: tuple[OutputList, ...], message: str) -> None:
    with pytest.raises(DeclarationError, match=f"chain raw: {message}"):
        replace(CHAIN, lists=lists)


def test_a_count_may_have_the_name_of_its_list() -> None:
    lists = (replace(CHAIN.lists[0], name="error_banks", count=error_bank_count),)
    assert replace(CHAIN, lists=lists).lists == lists


@pytest.mark.parametrize(
    ("words", "is_right"), [(0, True), (2, False), (3, True), (1 << 16, True), ((1 << 16) + 1, False)]
)
def test_the_largest_row_of_a_report_has_limits(words: int, is_right: bool) -> None:
    if is_right:
        assert replace(CHAIN, report_words=words).report_words == words
    else:
        with pytest.raises(DeclarationError, match=rf"report_words = {words}, expected 0 or 3 to 65536"):
            replace(CHAIN, report_words=words)


def content() -> ListContent:
    return ListContent(np.array([0, 2, 2, 5], np.uint32), {"x": np.arange(5, dtype=np.float32)})


def test_the_elements_of_each_event_are_found_by_the_offsets() -> None:
    assert content().counts.tolist() == [2, 0, 3]
    assert [of_event.tolist() for of_event in content().of_events("x")] == [[0, 1], [], [2, 3, 4]]
    part = content().part(1, 3)
    assert (part.offsets.tolist(), part.values["x"].tolist()) == ([0, 0, 3], [2, 3, 4])


def test_parts_that_are_joined_are_the_whole_again() -> None:
    joined = joined_lists([content().part(i, i + 1) for i in range(3)])
    assert joined.offsets.tolist() == content().offsets.tolist()
    assert joined.values["x"].tolist() == content().values["x"].tolist()
    assert joined_lists([no_words(2), no_words(0)]).counts.tolist() == [0, 0]


def test_a_copy_does_not_change_with_its_original() -> None:
    original = content()
    copied = original.copy()
    original.values["x"][:] = 7
    original.offsets[:] = 0
    assert copied.values["x"].tolist() == [0, 1, 2, 3, 4]
    assert copied.counts.tolist() == [2, 0, 3]


@pytest.mark.parametrize("fuses", [False, True])
def test_delivered_columns_take_memory_of_the_host_and_none_of_a_device(fuses: bool) -> None:
    of = a_list(values={"area": value(AREA), "kind": value(KIND)}, capacity=lambda limits: 3 * limits.events)
    find = Algorithm(name="find", source=Path(__file__), grid=Grid.EVENTS, block_size=32, writes=(COUNT, AREA, KIND))
    bare = plan_memory(AlgorithmSequence((find,)), LIMITS, fuse_events=fuses)
    plan = plan_memory(AlgorithmSequence((find, *deliver_lists([of]))), LIMITS, fuse_events=fuses)
    assert {column.name for column in plan.mapped} == {"delivered_blobs.area", "delivered_blobs.kind"}
    assert plan.mapped_bytes == 300 * (4 + 1)
    assert plan.memory.pinned == bare.memory.pinned + 300 * 5 + 101 * 4
    assert not any(column in plan.mirrors for column in plan.mapped)
    assert plan.slot_bytes == plan.arena.nbytes + plan.mirror_bytes + (300 * 5 if fuses else 0)
    for column in (COUNT, AREA, KIND):
        assert plan.arena.region(column.name) is not None, "the copy reads what other threads have written"
