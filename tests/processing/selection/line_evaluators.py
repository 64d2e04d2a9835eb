"""The ways to evaluate lines on given columns: NumPy, the compiler of this machine, emulated blocks, PTX."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends import _executor
from hltnode.processing.framework.backends.cpu_compiler import compile_kernel
from hltnode.processing.framework.backends.cuda_kernels import compile_options
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.codegen import generated_source
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import Algorithm, EventSizes
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.selection.expressions.expression import Expression
from hltnode.processing.selection.lines.histogram import RecordedHistogram
from hltnode.processing.selection.lines.line import LINE_RECORD, Line
from hltnode.processing.selection.reports.selected import SELECTED_WORDS
from hltnode.processing.selection.select_lines import select_lines
from tests.processing.framework.chain_builder import compiler
from tests.processing.framework.kernel_runner import (
    Allocate,
    Launch,
    generated_kernels,
    host_memory,
    run_algorithms,
    with_block_size,
)
from tests.processing.framework.nvrtc_library import nvrtc_of
from tests.processing.selection import toy_detector as toy
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import CUDA_VERSION, machine_of
from tests.ptx.nvrtc import ptx_of_source
from tests.ptx.parser import parse

Columns = Mapping[str, NDArray[Any]]
KERNELS = KernelSources("", (PROCESSING,), "")


@dataclass(frozen=True, slots=True)
class Decided:
    """Output of the lines.

    masks: the decisions of all lines on each event as one integer. accepted: u8. unknown: selections that are undecided
    because of a NaN, u32. flags: u32. selected: the words of the selected objects of each event. counts: the counters
    of all histograms.
    """

    masks: list[int]
    accepted: list[int]
    unknown: list[int]
    flags: list[int]
    selected: list[NDArray[np.uint32]]
    counts: list[int]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decided) and (
            (self.masks, self.accepted, self.unknown, self.flags, self.counts)
            == (other.masks, other.accepted, other.unknown, other.flags, other.counts)
            and [row.tolist() for row in self.selected] == [row.tolist() for row in other.selected]
        )


@dataclass(frozen=True, slots=True)
class Case:
    """Lines, and their input columns."""

    lines: tuple[Line, ...]
    event_words: tuple[Expression, ...]
    columns: Columns
    limits: BatchLimits
    histograms: tuple[RecordedHistogram, ...] = ()

    @property
    def algorithm(self) -> Algorithm:
        return select_lines(self.lines, self.event_words, toy.REPORTS, self.histograms)

    @property
    def source(self) -> str:
        return generated_source(self.algorithm)

    @property
    def table(self) -> NDArray[np.void]:
        return np.array([line.record() for line in self.lines], dtype=LINE_RECORD.dtype)

    def run(self, launch: Launch, allocate: Allocate = host_memory) -> Decided:
        """Evaluate by a kernel."""
        given = {**self.columns, "line_table": self.table}
        result = run_algorithms([self.algorithm], given, self.limits.events, self.limits, launch, allocate=allocate)
        return _decided(result, self.limits.events)


def _decided(columns: Mapping[str, NDArray[Any]], n_events: int) -> Decided:
    words = columns["events.lines"].reshape(n_events, len(columns["events.lines"]) // max(n_events, 1))
    rows = np.array(columns["selected.words"][: n_events * SELECTED_WORDS]).reshape(n_events, SELECTED_WORDS)
    n_words = columns["selected.count"][:n_events].tolist()
    return Decided(
        [int.from_bytes(row.tobytes(), "little") for row in words],
        columns["events.accepted"][:n_events].tolist(),
        columns["events.unknown_selections"][:n_events].tolist(),
        columns["events.flags"][:n_events].tolist(),
        [row[:n] for row, n in zip(rows, n_words, strict=True)],
        columns["histograms.counts"].tolist() if "histograms.counts" in columns else [],
    )


Evaluator = Callable[[Case], Decided]


def by_numpy(case: Case) -> Decided:
    """Evaluate as on a machine without compiler."""
    algorithm, n = case.algorithm, case.limits.events
    columns = {}
    for column in algorithm.columns:
        columns[column] = np.zeros(column.count(case.limits), column.dtype)
        if column.name in case.columns:
            given = np.asarray(case.columns[column.name])
            columns[column][: len(given)] = given if given.dtype.names else given.astype(column.dtype)
    assert algorithm.generated is not None
    assert len(list(algorithm.generated.evaluate(columns, n))) >= len(case.lines), (
        "the generated code must report its progress"
    )
    return _decided({column.name: content for column, content in columns.items()}, n)


@cache
def targets() -> tuple[str, ...]:
    """The instruction sets of this machine, best first."""
    return tuple(KernelLibrary(CHAIN.kernels).targets)


def by_compiler(case: Case, target: str | None = None) -> Decided:
    """Evaluate as the CPU back end with the compiler of this machine, for its best instruction set or another one."""
    compiler()
    target = target or targets()[0]

    def launch(algorithm: Algorithm, _: EventSizes, parameters: NDArray[np.uint8], header: NDArray[np.void]) -> None:
        library = compile_kernel(algorithm.name, case.source, (PROCESSING,), target, "")
        assert library is not None
        address = ctypes.cast(library.run_block, ctypes.c_void_p).value
        assert address is not None
        step = (address, parameters.ctypes.data, int(algorithm.grid), parameters.nbytes)
        _executor.Executor(1).run(_executor.Program([step], header.ctypes.data))

    return case.run(launch)


def by_blocks(block_size: int, *, backward: bool = False) -> Evaluator:
    """Evaluate in emulated blocks of many threads."""
    return lambda case: case.run(
        with_block_size(
            block_size, backward=backward, kernels=generated_kernels(case.source, (PROCESSING,), "select_lines")
        )
    )


def by_ptx(block_size: int = 64, *, backward: bool = False) -> Evaluator:
    """Evaluate by the PTX that NVRTC makes from the kernel for a GPU."""

    def evaluate(case: Case) -> Decided:
        ptx = ptx_of_source(nvrtc_of(CUDA_VERSION), case.source, "90", *compile_options(KERNELS))
        machine = machine_of(parse(ptx), backward=backward)
        launcher = PtxLauncher(machine, block_size)
        decided = case.run(launcher, machine.allocate)
        assert [it.text for it in launcher.conflicts if not it.equal] == []
        return decided

    return evaluate


def assert_all_decide_alike(case: Case, evaluators: Sequence[Evaluator]) -> Decided:
    """Check that the evaluator gives the decisions of NumPy; returns them."""
    expected = by_numpy(case)
    for evaluator in evaluators:
        assert evaluator(case) == expected
    return expected


ALL = (by_compiler, by_blocks(1), by_blocks(32), by_blocks(100, backward=True), by_ptx())
