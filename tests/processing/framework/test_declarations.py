"""Contradictory declarations are refused; the error names the algorithm and the column."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.framework.collections import (
    F32,
    U32,
    Collection,
    Column,
    DeclarationError,
    Placement,
    Record,
    Role,
    SharedTypes,
)
from hltnode.processing.framework.declaration import (
    MAX_EVENT_SIZE,
    Algorithm,
    AlgorithmSequence,
    EventSizes,
    Grid,
    LargeEvents,
    Scratch,
)
from hltnode.processing.framework.limits import BatchLimits

HERE = Path(__file__)
HITS = Collection("hits", capacity=lambda limits: limits.events * 10, placement=Placement.fixed(10))


def a_column(name: str, role: Role = Role.ARENA) -> Column:
    return HITS.column(name, U32, role=role)


def an_algorithm(name: str, reads: tuple[Column, ...] = (), writes: tuple[Column, ...] = ()) -> Algorithm:
    return Algorithm(name=name, source=HERE, grid=Grid.EVENTS, block_size=32, reads=reads, writes=writes)


def test_a_column_that_is_read_before_it_is_written_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"fit reads hits\.x, which no earlier algorithm writes"):
        AlgorithmSequence((an_algorithm("fit", (a_column("x"),)),))


def test_a_column_of_two_writers_is_refused() -> None:
    x = a_column("x")
    with pytest.raises(DeclarationError, match=r"decode_again writes hits\.x, which decode already writes"):
        AlgorithmSequence((an_algorithm("decode", (), (x,)), an_algorithm("decode_again", (), (x,))))


def test_a_column_that_is_declared_twice_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"hits\.x is declared twice; fit uses the second one"):
        AlgorithmSequence((an_algorithm("decode", (), (a_column("x"),)), an_algorithm("fit", (a_column("x"),))))


def test_two_algorithms_of_one_name_are_refused() -> None:
    with pytest.raises(DeclarationError, match="two algorithms have the name decode"):
        AlgorithmSequence((an_algorithm("decode"), an_algorithm("decode")))


def test_a_column_that_is_read_and_written_by_one_algorithm_is_refused() -> None:
    x = a_column("x")
    with pytest.raises(DeclarationError, match=r"fit names hits\.x twice"):
        an_algorithm("fit", (x,), (x,))


def test_two_parameters_of_one_name_are_refused() -> None:
    with pytest.raises(DeclarationError, match="fit has two parameters named owner"):
        Algorithm(
            name="fit",
            source=HERE,
            grid=Grid.EVENTS,
            block_size=32,
            scratch=(Scratch("owner", U32, per=HITS), Scratch("owner", F32, per=HITS)),
        )


def test_a_block_that_no_device_can_run_is_refused() -> None:
    with pytest.raises(DeclarationError, match="fit: blocks of 1024 threads, 1 to 256 are allowed"):
        Algorithm(name="fit", source=HERE, grid=Grid.EVENTS, block_size=1024)


def test_large_events_are_launched_apart_and_every_size_is_taken_once() -> None:
    size = HITS.per_event("size", U32)
    large = LargeEvents(size, min_size=100, block_size=256)
    fit = Algorithm(name="fit", source=HERE, grid=Grid.EVENTS, block_size=32, large_events=large)
    assert fit.launches == (EventSizes(32, 0, 99), EventSizes(256, 100, MAX_EVENT_SIZE))
    assert size in fit.all_reads
    with pytest.raises(DeclarationError, match="fit: only a kernel over events can have a launch for large events"):
        Algorithm(name="fit", source=HERE, grid=Grid.ROWS, block_size=32, large_events=large)
    with pytest.raises(DeclarationError, match="fit: blocks of 512 threads, 1 to 256 are allowed"):
        Algorithm(name="fit", source=HERE, grid=Grid.EVENTS, block_size=32, large_events=replace(large, block_size=512))


def test_an_unknown_column_is_refused_with_similar_names() -> None:
    sequence = AlgorithmSequence((an_algorithm("decode", (), (a_column("x"), a_column("y"))),))
    with pytest.raises(DeclarationError, match=r"no column hits\.z; there are hits\.x, hits\.y"):
        sequence.column("hits.z")


def test_columns_stand_in_the_order_of_their_first_use() -> None:
    raw, x, y = a_column("raw", Role.INPUT), a_column("x"), a_column("y", Role.OUTPUT)
    sequence = AlgorithmSequence((an_algorithm("decode", (raw,), (x,)), an_algorithm("track", (x,), (y,))))
    assert [column.name for column in sequence.columns] == ["batch", "hits.raw", "hits.x", "hits.y"]


def test_a_record_that_a_compiler_would_pad_is_refused() -> None:
    with pytest.raises(DeclarationError, match="record odd: a C\\+\\+ compiler would pad it"):
        Record("odd", np.dtype([("a", "u1"), ("b", "<u4")]))


def test_a_comment_on_no_field_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"record point: comments on \['z'\]"):
        Record("point", np.dtype([("x", "<f4")]), {"z": "mm"})


def test_records_are_found_by_the_types_they_were_declared_with() -> None:
    record = Record("only_here", np.dtype([("x", "<f4")]))
    with pytest.raises(DeclarationError, match="no SharedTypes declare record only_here"):
        HITS.column("point", record).record and _types(record)
    types = SharedTypes(__file__, "some_types", records=(record,))
    assert _types(record) is types


def _types(record: Record) -> SharedTypes:
    from hltnode.processing.framework.collections import types_of

    return types_of(record)


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (Placement.fixed(3), [0, 3, 6]),
        (Placement(offsets=a_column("offset")), [0, 8, 21]),
        (Placement(offsets=a_column("offset"), divisor=2), [0, 4, 10]),
        (Placement(offsets=a_column("offset"), divisor=8, per_event=1, times=4), [0, 8, 16]),
    ],
)
def test_the_part_of_an_event_begins_where_the_placement_says(placement: Placement, expected: list[int]) -> None:
    offsets = None if placement.offsets is None else np.array([0, 8, 21, 30], np.uint32)
    assert placement.first(offsets, 3).tolist() == expected


def test_a_column_has_the_bytes_of_its_collection_or_of_the_events() -> None:
    limits = BatchLimits(events=7)
    assert HITS.column("x", F32, width=2).nbytes(limits) == 7 * 10 * 2 * 4
    assert HITS.per_event("offset", U32, extra=1).nbytes(limits) == (7 + 1) * 4
