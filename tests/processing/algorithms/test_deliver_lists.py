"""Output lists: elements of all events one after the other, for every placement, type and number of threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.algorithms.deliver_lists import deliver_lists
from hltnode.processing.framework.batch import events
from hltnode.processing.framework.codegen import parameter_columns
from hltnode.processing.framework.collections import (
    F32,
    U8,
    U16,
    U32,
    U64,
    Collection,
    Column,
    Placement,
    Record,
)
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.output_lists import ListContent, ListValue, OutputList
from hltnode.processing.raw.chain import CHAIN
from tests.processing.framework.kernel_runner import (
    Allocate,
    Launch,
    host_memory,
    on_cpu,
    run_algorithms,
    with_block_size,
)
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import machine_of, module_of

LIMITS = BatchLimits(events=300)
MAX = 20
"""Most objects of an event."""
RECORD = Record("found", np.dtype([("area", "<u4"), ("sum", "<u4"), ("x", "<u2"), ("y", "<u2")]))
DTYPES: tuple[np.dtype[Any] | Record, ...] = (U8, U16, U32, U64, F32, RECORD)

offsets = Column(name="objects.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True)
PLACEMENTS = {
    "fixed": Placement.fixed(MAX),
    "offsets": Placement(offsets=offsets),
    "offsets and gaps": Placement(offsets=offsets, divisor=2, per_event=3, times=2),
}


@dataclass(frozen=True)
class Case:
    """A list with a column of each type, and the content of its columns."""

    of: OutputList
    given: dict[str, NDArray[Any]]
    counts: NDArray[np.int64]
    first: NDArray[np.int64]

    @property
    def expected(self) -> dict[str, NDArray[Any]]:
        """The elements by value, in plain Python."""
        found = {}
        for name, value in self.of.values.items():
            content = self.given[value.column.name]
            parts = [content[first : first + n] for first, n in zip(self.first, self.counts, strict=True)]
            elements = np.concatenate(parts)
            found[name] = elements[value.member] if value.member else elements
        return found

    def run(self, launch: Launch, allocate: Allocate = host_memory) -> tuple[ListContent, NDArray[np.uint32]]:
        """The list and the flags of events."""
        given = {**self.given, "objects.count": self.counts}
        made = run_algorithms(
            deliver_lists([self.of]), given, len(self.counts), LIMITS, launch, allocate=allocate, fill=0xA5
        )
        delivered = {column: made[column.name] for column in self.of.delivered.values()}
        flags = made["events.flags"][: len(self.counts)]
        return self.of.content(made[self.of.offsets.name][: len(self.counts) + 1], delivered), flags


def case_of(placement: Placement, n_events: int, capacity: int | None = None, seed: int = 1) -> Case:
    """A list of random objects; some events have none."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, MAX + 1, n_events) * (rng.random(n_events) < 0.7)
    collection = Collection(
        "objects",
        capacity=lambda limits: 8 * MAX * limits.events,
        placement=placement,
        max_per_event=MAX,
    )
    columns = [collection.column(f"c{i}", dtype) for i, dtype in enumerate(DTYPES)]
    members = {column: column.dtype.names or ("",) for column in columns}
    of = OutputList(
        name="objects",
        text="",
        count=collection.per_event("count", U32),
        values={
            f"{column.short_name}{member}": ListValue(column=column, member=member, text="")
            for column in columns
            for member in members[column]
        },
        capacity=None if capacity is None else lambda _: capacity,
    )
    begin = np.concatenate([[0], np.cumsum(2 * counts)])
    first = placement.first(begin if placement.offsets is not None else None, n_events)
    given: dict[str, NDArray[Any]] = {"objects.offset": begin, "events.flags": np.zeros(n_events)}
    if placement.offsets is None:
        del given["objects.offset"]
    for column in columns:
        content = rng.bytes(column.dtype.itemsize * int(max(first.max(initial=0) + MAX, 1)))
        given[column.name] = np.frombuffer(content, column.dtype)
    return Case(of, given, counts, first)


def by_ptx(block_size: int | None) -> Callable[[Case], tuple[ListContent, NDArray[np.uint32]]]:
    """By the machine that runs PTX, without unordered accesses."""

    def run(case: Case) -> tuple[ListContent, NDArray[np.uint32]]:
        machine = machine_of(module_of("90", CHAIN.kernels))
        launcher = PtxLauncher(machine, block_size)
        found = case.run(launcher, machine.allocate)
        assert not launcher.conflicts
        return found

    return run


WAYS: dict[str, Callable[[Case], tuple[ListContent, NDArray[np.uint32]]]] = {
    "cpu": lambda case: case.run(on_cpu(kernels=CHAIN.kernels)),
    "32 threads": lambda case: case.run(with_block_size(32, kernels=CHAIN.kernels)),
    "100 threads, backward": lambda case: case.run(with_block_size(100, backward=True, kernels=CHAIN.kernels)),
    "256 threads": lambda case: case.run(with_block_size(256, kernels=CHAIN.kernels)),
    "ptx": by_ptx(None),
}


def assert_equal(found: ListContent, expected: dict[str, NDArray[Any]], n: int) -> None:
    assert found.values.keys() == expected.keys()
    for name, values in expected.items():
        assert found.values[name].tobytes() == values[:n].tobytes(), name


@pytest.mark.timeout(300)
@pytest.mark.parametrize("n_events", [0, 1, 7, 300])
@pytest.mark.parametrize("placement", PLACEMENTS.values(), ids=PLACEMENTS)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_all_elements_are_delivered_in_the_order_of_events(
    way: Callable[[Case], tuple[ListContent, NDArray[np.uint32]]], placement: Placement, n_events: int
) -> None:
    case = case_of(placement, n_events)
    found, flags = way(case)
    assert found.counts.tolist() == case.counts.tolist()
    assert not flags.any()
    if n_events:
        assert_equal(found, case.expected, int(case.counts.sum()))
    assert n_events < 7 or case.counts.sum() > n_events


@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("spare", [-1, 0, 1])
@pytest.mark.parametrize("last", [0, 3, 280])
def test_the_first_elements_fit_and_events_with_others_are_flagged(
    way: Callable[[Case], tuple[ListContent, NDArray[np.uint32]]], last: int, spare: int
) -> None:
    """The capacity ends one element before, at and after the end of an event; `spare` elements then remain."""
    everything = case_of(PLACEMENTS["fixed"], 300)
    (with_objects,) = np.nonzero(everything.counts[: last + 20])
    last = int(with_objects[with_objects >= last][0])
    capacity = int(everything.counts[: last + 1].sum()) + spare
    case = case_of(PLACEMENTS["fixed"], 300, capacity)
    found, flags = way(case)
    ends = np.cumsum(case.counts)
    expected = np.minimum(ends, capacity) - np.minimum(ends - case.counts, capacity)
    assert found.counts.tolist() == expected.tolist()
    assert len(found.values["c0"]) == capacity
    assert_equal(found, case.expected, capacity)
    assert flags.tolist() == [
        int(EventFlag.LIST_LEFT_OUT) if n > got else 0 for n, got in zip(case.counts, expected, strict=True)
    ]
    assert bool(flags[last]) == (spare < 0)


def test_nothing_behind_the_last_element_is_written() -> None:
    case = case_of(PLACEMENTS["fixed"], 300)
    launch = on_cpu(kernels=CHAIN.kernels)
    made = run_algorithms(
        deliver_lists([case.of]), {**case.given, "objects.count": case.counts}, 300, LIMITS, launch, fill=0xA5
    )
    n = int(case.counts.sum())
    for column in case.of.delivered.values():
        behind = made[column.name][n:].tobytes()
        assert behind.count(0xA5) == len(behind) > 0


def test_a_kernel_on_other_columns_reads_and_writes_them_in_the_places_of_its_own() -> None:
    case = case_of(PLACEMENTS["offsets"], 1)
    offsets_made, *copies = deliver_lists([case.of])
    assert [column.name for column in parameter_columns(offsets_made)] == [
        "batch",
        "objects.count",
        "delivered_objects.offset",
        "events.flags",
    ]
    assert [column.name for column in parameter_columns(copies[0])] == [
        "batch",
        "delivered_objects.offset",
        "objects.offset",
        "objects.c0",
        "delivered_objects.c0",
    ]
    assert {copy.kernel for copy in copies} == {"copy_list"}
    assert len({copy.name for copy in copies}) == len(copies) == len(DTYPES)
    assert offsets in copies[0].all_reads, "the plan must keep the offsets until the copy"
    assert offsets_made.updates[0].collection is events
