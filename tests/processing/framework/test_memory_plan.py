"""The memory plan: columns share memory if and only if they may, for sequences of every shape."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.processing.framework.collections import (
    F32,
    U8,
    U16,
    U32,
    Collection,
    Column,
    DeclarationError,
    Placement,
    Role,
)
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence, Grid, Scratch
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import ARENA_ALIGNMENT, Area, MemoryPlan, Region, plan_memory

LIMITS = BatchLimits(events=100, input_bytes=1 << 16)
HITS = Collection("hits", capacity=lambda limits: limits.events * 10, placement=Placement.fixed(10), max_per_event=10)


def an_algorithm(
    name: str,
    *,
    reads: tuple[Column, ...] = (),
    updates: tuple[Column, ...] = (),
    writes: tuple[Column, ...] = (),
    scratch: tuple[Scratch, ...] = (),
    grid: Grid = Grid.EVENTS,
    parts: int | None = None,
) -> Algorithm:
    return Algorithm(
        name=name,
        source=Path(__file__),
        grid=grid,
        block_size=32,
        reads=reads,
        updates=updates,
        writes=writes,
        scratch=scratch,
        parts=parts,
    )


def on_device(*algorithms: Algorithm, retain: tuple[str, ...] = ()) -> MemoryPlan:
    return plan_memory(AlgorithmSequence(algorithms), LIMITS, retain=retain, fuse_events=False)


def on_cpu(*algorithms: Algorithm, retain: tuple[str, ...] = ()) -> MemoryPlan:
    return plan_memory(AlgorithmSequence(algorithms), LIMITS, retain=retain, fuse_events=True)


def the(area: Area, column: Column | str) -> Region:
    region = area.region(column if isinstance(column, str) else column.name)
    assert region is not None
    return region


def overlap(one: Region, other: Region) -> bool:
    """Whether two regions share bytes while both are in use."""
    in_space = one.offset < other.offset + other.nbytes and other.offset < one.offset + one.nbytes
    in_time = one.first <= other.last and other.first <= one.last
    return in_space and in_time


def test_a_column_takes_the_memory_of_one_that_is_read_no_more() -> None:
    x, y, z = (HITS.column(name, F32) for name in "xyz")
    plan = on_device(
        an_algorithm("decode", writes=(x,)),
        an_algorithm("sort", reads=(x,), writes=(y,)),
        an_algorithm("fit", reads=(y,), writes=(z,)),
    )
    assert the(plan.arena, z).offset == the(plan.arena, x).offset
    assert not overlap(the(plan.arena, x), the(plan.arena, y))
    assert not overlap(the(plan.arena, y), the(plan.arena, z))


def test_columns_are_placed_by_size_or_by_use_whichever_needs_less() -> None:
    """The largest columns first would take the place that a later one needs as a whole."""
    a, b, c, d = (HITS.column(name, F32, width=width) for name, width in zip("abcd", (40, 30, 30, 40), strict=True))
    plan = on_device(
        an_algorithm("one", writes=(a,)),
        an_algorithm("two", reads=(a,), writes=(b,)),
        an_algorithm("three", reads=(b,), writes=(c,)),
        an_algorithm("four", reads=(c,), writes=(d,)),
    )
    in_use = max(plan.bytes_by_algorithm.values())
    assert in_use <= plan.arena.nbytes < in_use + 4 * ARENA_ALIGNMENT
    # Here the order of use would leave a gap.
    e, f = (HITS.column(name, F32, width=width) for name, width in (("e", 10), ("f", 60)))
    other = on_device(
        an_algorithm("one", writes=(e, a)),
        an_algorithm("two", reads=(e,), writes=(f,)),
    )
    assert other.arena.nbytes < max(other.bytes_by_algorithm.values()) + 4 * ARENA_ALIGNMENT


def test_a_column_that_is_updated_lives_until_then() -> None:
    x, y = (HITS.column(name, F32) for name in "xy")
    plan = on_device(
        an_algorithm("decode", writes=(x,)), an_algorithm("idle", writes=(y,)), an_algorithm("fit", updates=(x,))
    )
    assert (the(plan.arena, x).first, the(plan.arena, x).last) == (0, 2)
    assert not overlap(the(plan.arena, x), the(plan.arena, y))


def test_a_retained_column_keeps_its_memory_to_the_end() -> None:
    x, y, z = (HITS.column(name, F32) for name in "xyz")
    algorithms = (
        an_algorithm("decode", writes=(x,)),
        an_algorithm("sort", reads=(x,), writes=(y,)),
        an_algorithm("fit", reads=(y,), writes=(z,)),
    )
    plan = on_device(*algorithms, retain=("hits.x",))
    assert the(plan.arena, x).last == 2
    assert plan.readable >= {"hits.x"}
    assert "hits.y" not in plan.readable


def test_with_everything_retained_nothing_shares_memory() -> None:
    columns = [HITS.column(f"x{i}", F32) for i in range(5)]
    sequence = AlgorithmSequence(tuple(an_algorithm(f"write{i}", writes=(c,)) for i, c in enumerate(columns)))
    for fuse_events in (False, True):
        plan = plan_memory(sequence, LIMITS, retain="all", fuse_events=fuse_events)
        assert not any(overlap(one, other) for one, other in combinations(plan.arena.regions, 2))
        assert len({region.offset for region in plan.arena.regions}) == len(columns)
        assert plan.thread.nbytes == 0


def test_a_column_without_reader_has_memory_while_it_is_written() -> None:
    x, unread = HITS.column("x", F32), HITS.column("unread", F32)
    plan = on_device(an_algorithm("decode", writes=(x, unread)), an_algorithm("fit", reads=(x,)))
    assert (the(plan.arena, unread).first, the(plan.arena, unread).last) == (0, 0)
    assert not overlap(the(plan.arena, x), the(plan.arena, unread))


def test_what_is_transferred_and_constants_are_not_in_the_arena() -> None:
    given = HITS.column("given", F32, role=Role.INPUT)
    found = HITS.column("found", F32, role=Role.OUTPUT)
    table = HITS.column("table", F32, role=Role.CONSTANT)
    plan = on_device(an_algorithm("fit", reads=(given, table), writes=(found,)))
    assert plan.arena.regions == ()
    assert {given, found} <= set(plan.mirrors)
    assert plan.constants == (table,)
    assert {"hits.given", "hits.found", "hits.table", "batch"} <= plan.readable
    assert plan.constant_bytes == 4000


def test_offsets_live_as_long_as_columns_that_are_placed_by_them() -> None:
    offset = Column(name="tracks.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True)
    tracks = Collection("tracks", capacity=lambda limits: limits.events, placement=Placement(offsets=offset))
    x, y = tracks.column("x", F32), tracks.column("y", F32)
    plan = on_device(
        an_algorithm("sum", writes=(offset,)),
        an_algorithm("decode", writes=(x,)),
        an_algorithm("fit", reads=(x,), writes=(y,)),
    )
    assert the(plan.arena, offset).last == 2


def test_scratch_of_one_algorithm_shares_no_memory() -> None:
    scratch = (Scratch("x", F32, per=HITS), Scratch("y", F32, per=HITS))
    plan = on_device(an_algorithm("search", scratch=scratch))
    assert not overlap(*plan.arena.regions)


def test_on_a_cpu_columns_of_only_one_fused_stage_belong_to_the_thread() -> None:
    x, y, count = HITS.column("x", F32), HITS.column("y", U16, width=3), HITS.per_event("count", U32)
    plan = on_cpu(
        an_algorithm("decode", writes=(x, count)),
        an_algorithm("fit", reads=(x, count), writes=(y,)),
    )
    assert plan.arena.nbytes == 0
    sizes = {region.column.name: region.nbytes for region in plan.thread.regions}
    assert sizes == {"hits.x": 40, "hits.count": 4, "hits.y": 60}


def test_on_a_cpu_columns_that_another_stage_uses_belong_to_the_batch() -> None:
    x, y, z = (HITS.column(name, F32) for name in "xyz")
    plan = on_cpu(
        an_algorithm("decode", writes=(x, y)),
        an_algorithm("sum", reads=(x,), grid=Grid.ONE),
        an_algorithm("fit", writes=(z,)),
    )
    assert [region.column for region in plan.arena.regions] == [x]
    assert {region.column for region in plan.thread.regions} == {y, z}


def test_on_a_cpu_fused_algorithms_are_one_step_for_the_memory_of_the_batch() -> None:
    free = Collection("free", capacity=lambda limits: limits.events)
    x, y, z = (free.column(name, F32) for name in "xyz")
    algorithms = (
        an_algorithm("decode", writes=(x,)),
        an_algorithm("sort", reads=(x,), writes=(y,)),
        an_algorithm("fit", reads=(y,), writes=(z,)),
    )
    plan = on_cpu(*algorithms)
    assert plan.thread.nbytes == 0
    offsets = {region.offset for region in plan.arena.regions}
    assert len(offsets) == 3, "another event may be in the first algorithm while this one is in the last"
    assert len({region.offset for region in on_device(*algorithms).arena.regions}) == 2


def test_columns_without_a_place_per_event_never_belong_to_a_thread() -> None:
    sums = HITS.per_event("sums", U32, extra=1)
    unbounded = Collection("unbounded", capacity=lambda limits: limits.events, placement=Placement.fixed(1))
    unplaced = Collection("unplaced", capacity=lambda limits: limits.events, max_per_event=1)
    columns = (sums, unbounded.column("x", F32), unplaced.column("x", F32))
    plan = on_cpu(an_algorithm("decode", writes=columns))
    assert {region.column for region in plan.arena.regions} == set(columns)


def test_columns_placed_by_offsets_of_their_own_stage_never_belong_to_a_thread() -> None:
    offset = HITS.per_event("offset", U32)
    tracks = Collection(
        "tracks", capacity=lambda limits: limits.events, placement=Placement(offsets=offset), max_per_event=3
    )
    x = tracks.column("x", F32)
    plan = on_cpu(an_algorithm("sum", writes=(offset,)), an_algorithm("fit", writes=(x,)))
    assert [region.column for region in plan.arena.regions] == [x]


def test_a_retained_column_that_does_not_exist_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"no column hits\.q; there are hits\.x"):
        on_device(an_algorithm("decode", writes=(HITS.column("x", F32),)), retain=("hits.q",))


def test_the_peak_names_the_algorithm_and_the_columns() -> None:
    x, y, z = HITS.column("x", F32), HITS.column("y", F32, width=9), HITS.column("z", F32)
    plan = on_device(
        an_algorithm("decode", writes=(x,)),
        an_algorithm("combine", reads=(x,), scratch=(Scratch("pairs", F32, per=HITS, width=20),), writes=(y,)),
        an_algorithm("fit", reads=(y,), writes=(z,)),
    )
    name, regions = plan.peak
    assert name == "combine"
    assert {region.column.name for region in regions} == {"hits.x", "hits.y", "combine/pairs"}
    assert dict(plan.bytes_by_algorithm) == {"decode": 4000, "combine": 120_000, "fit": 40_000}


COLUMN_TYPES: tuple[np.dtype[Any], ...] = (U8, U16, U32, F32, np.dtype("<u8"))


@st.composite
def sequences(draw: st.DrawFn) -> tuple[AlgorithmSequence, tuple[str, ...]]:
    """A sequence of up to eight algorithms over random columns, and the names of some that are retained."""
    collections = [
        HITS,
        Collection("big", capacity=lambda limits: limits.events * 33, placement=Placement.fixed(33), max_per_event=33),
        Collection("free", capacity=lambda limits: limits.events * 7),
        Collection(
            "tiles", capacity=lambda limits: limits.events * 12, placement=Placement.fixed(3), parts=4, max_per_part=3
        ),
    ]
    written: list[Column] = []
    algorithms = []
    for index in range(draw(st.integers(1, 8))):
        new = tuple(
            draw(st.sampled_from(collections)).column(
                f"c{index}_{i}", draw(st.sampled_from(COLUMN_TYPES)), width=draw(st.integers(1, 5))
            )
            for i in range(draw(st.integers(0, 3)))
        )
        used = draw(st.lists(st.sampled_from(written), unique=True, max_size=4)) if written else []
        n_reads = draw(st.integers(0, len(used)))
        scratch = tuple(
            Scratch(
                f"s{i}",
                draw(st.sampled_from(COLUMN_TYPES)),
                per=draw(st.sampled_from(collections)),
            )
            for i in range(draw(st.integers(0, 4)))
        )
        grid = draw(st.sampled_from([Grid.EVENTS, Grid.EVENTS, Grid.PARTS, Grid.FRAGMENTS, Grid.ONE]))
        algorithms.append(
            an_algorithm(
                f"a{index}",
                reads=tuple(used[:n_reads]),
                updates=tuple(used[n_reads:]),
                writes=new,
                scratch=scratch,
                grid=grid,
                parts=draw(st.sampled_from([4, 5])) if grid is Grid.PARTS else None,
            )
        )
        written += new
    names = [column.name for column in written]
    retain = draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    return AlgorithmSequence(tuple(algorithms)), tuple(retain)


@given(sequences(), st.booleans())
def test_no_two_columns_in_use_overlap_in_any_sequence(
    drawn: tuple[AlgorithmSequence, tuple[str, ...]], fuse_events: bool
) -> None:
    sequence, retain = drawn
    plan = plan_memory(sequence, LIMITS, retain=retain, fuse_events=fuse_events)
    for area in (plan.arena, plan.thread):
        assert not any(overlap(one, other) for one, other in combinations(area.regions, 2))
        for region in area.regions:
            assert region.offset + region.nbytes <= area.nbytes
    assert all(region.offset % ARENA_ALIGNMENT == 0 for region in plan.arena.regions)
    assert all(region.offset % 64 == 0 for region in plan.thread.regions)
    users = {column: [a for a in sequence if column in a.columns] for column in sequence.columns}
    for region in plan.thread.regions:
        (algorithm, *others), column = users[region.column], region.column
        # One block at a time uses the memory of a thread: that of one event, or of a part where the column has parts.
        assert {(a.grid, a.parts) for a in others} <= {(algorithm.grid, algorithm.parts)}
        assert algorithm.grid is Grid.EVENTS or (algorithm.grid is Grid.PARTS and column.parts == algorithm.parts)
        assert column.collection is not None
        objects = {"hits": 10, "big": 33, "tiles": 3 if algorithm.grid is Grid.PARTS else 12}[column.collection.name]
        assert region.nbytes == objects * column.width * column.dtype.itemsize
    placed = [region.column for region in (*plan.arena.regions, *plan.thread.regions)]
    assert len(placed) == len(set(placed))
    assert {*placed, *plan.mirrors, *plan.accumulated, *plan.constants} >= set(sequence.columns)
    assert not {region.column.name for region in plan.thread.regions} & set(retain)
    last = len(plan.stages) - 1
    assert all(the(plan.arena, name).last == last for name in retain)
    assert plan.arena == plan_memory(sequence, LIMITS, retain=reversed(retain), fuse_events=fuse_events).arena
