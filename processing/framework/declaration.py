"""How an algorithm of HLT1 is declared: its kernel, its inputs and outputs, and the bound on every buffer.

A sequence is a list of such declarations. Where a buffer lies, how large it is and which pointer goes to which kernel
follow from them; nothing is wired by hand.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Flag, IntEnum, auto

import numpy as np

from hltnode.processing.framework.batch import BATCH_HEADER, EVENT_ROW, MFP_ROW, N_SUBDETECTORS, ROW_RANGE, BatchLimits

Bound = Callable[[BatchLimits], int]


class Grid(IntEnum):
    """What the blocks of a kernel run over. A kernel over EVENTS touches nothing but the data of its event."""

    ONE = 0
    ROWS = 1
    EVENTS = 2


class Role(Flag):
    """How the content of a buffer comes to the device and leaves it."""

    ARENA = 0
    """Written and read by kernels only."""
    INPUT = auto()
    """Copied to the device at the start of a batch."""
    OUTPUT = auto()
    """Copied to the host at the end of a batch."""
    CONSTANT = auto()
    """Written once, when the engine starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """An array of `dtype` with `count(limits)` elements, known by its name."""

    name: str
    dtype: np.dtype[np.generic] | np.dtype[np.void]
    count: Bound
    role: Role = Role.ARENA

    def nbytes(self, limits: BatchLimits) -> int:
        return int(self.dtype.itemsize) * self.count(limits)


@dataclass(frozen=True, slots=True)
class Constant:
    """A 4-byte value that a kernel gets by value. `value` is a float or an int (unsigned unless negative)."""

    name: str
    value: float | int

    def packed(self) -> np.uint32:
        if isinstance(self.value, float):
            return np.float32(self.value).view(np.uint32)
        return np.int64(self.value).astype(np.uint32)


@dataclass(frozen=True, slots=True)
class Capacity:
    """Elements of a buffer, as a 32-bit word, for a kernel that must not fill it beyond. No part of the TCK."""

    name: str
    count: Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """One kernel. Its struct of parameters has inputs, updates, outputs, constants and capacities in this order."""

    name: str
    grid: Grid
    block_size: int
    inputs: Sequence[Buffer]
    updates: Sequence[Buffer] = ()
    outputs: Sequence[Buffer] = ()
    constants: Sequence[Constant] = ()
    capacities: Sequence[Capacity] = ()

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return (*self.inputs, *self.updates, *self.outputs)


class SequenceError(ValueError):
    """A sequence that cannot be run: an input that nobody makes, a buffer made twice."""


@dataclass(frozen=True, slots=True)
class AlgorithmSequence:
    """Algorithms in the order in which they run. Raises SequenceError if the declarations do not fit."""

    algorithms: tuple[Algorithm, ...]
    buffers: tuple[Buffer, ...] = field(init=False)

    def __post_init__(self) -> None:
        known: dict[str, Buffer] = {}
        for algorithm in self.algorithms:
            for buffer in (*algorithm.inputs, *algorithm.updates):
                if buffer.name not in known and not buffer.role & (Role.INPUT | Role.CONSTANT):
                    raise SequenceError(f"{algorithm.name} reads {buffer.name}, which no algorithm before it makes")
                if known.setdefault(buffer.name, buffer) != buffer:
                    raise SequenceError(f"{buffer.name} is declared in two ways; {algorithm.name} uses the second")
            for buffer in algorithm.outputs:
                if buffer.name in known:
                    raise SequenceError(f"{algorithm.name} makes {buffer.name}, which is there already")
                known[buffer.name] = buffer
        object.__setattr__(self, "buffers", tuple(known.values()))

    def __iter__(self) -> Iterator[Algorithm]:
        return iter(self.algorithms)


# The batch itself (processing/framework/batch.py, kernels/batch/batch.cuh).
batch_header = Buffer(name="batch_header", dtype=BATCH_HEADER, count=lambda _: 1, role=Role.INPUT)
raw_input = Buffer(name="raw_input", dtype=np.dtype("u1"), count=lambda limits: limits.input_bytes, role=Role.INPUT)
mfp_rows = Buffer(name="mfp_rows", dtype=MFP_ROW, count=lambda limits: limits.rows, role=Role.INPUT)
mep_rows = Buffer(name="mep_rows", dtype=ROW_RANGE, count=lambda limits: limits.meps * N_SUBDETECTORS, role=Role.INPUT)
event_rows = Buffer(name="event_rows", dtype=EVENT_ROW, count=lambda limits: limits.events, role=Role.INPUT)
event_flags = Buffer(
    name="event_flags", dtype=np.dtype("<u4"), count=lambda limits: limits.events, role=Role.INPUT | Role.OUTPUT
)
