"""Detectors without a trigger signal: the declaration of time slices, of their hits and of the windows that are kept.

A MEP of a streaming chain is a time slice. Its id is the number of the slice since the start of the run, and its events
are sub-slices of a fixed length. The first and the last sub-slices are margins: they repeat the last sub-slices of the
slice before and the first ones of the slice behind, so kernels see the hits around a border. No window begins in a
margin. All slices of a run have the same number of sub-slices.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import DeclarationError
from hltnode.processing.framework.output_lists import OutputList
from hltnode.protocol.raw_data.source_id import number_of, subdetector_of

START, END, LINES = "start_ns", "end_ns", "lines"
"""Values of a list of windows that every streaming chain has."""
WINDOW_VALUES = {START: np.dtype("<i4"), END: np.dtype("<i4"), LINES: np.dtype("<u4")}
MAX_SUB_SLICE_NS = (1 << 31) - 1
"""Times relative to a sub-slice are i32."""
MAX_SUB_SLICES = 0xFFFF
"""Most events of a MEP."""
MAX_HIT_BYTES = 0xFFF7
"""Most bytes of a bank in a file."""
TIME_TYPES = ("<u2", "<u4", ">u2", ">u4")


@dataclass(frozen=True, slots=True, kw_only=True)
class HitLayout:
    """The record of a hit in the fragment of a source for a sub-slice. A fragment has whole records and nothing else.

    size: bytes of a record. time_offset, time_type: place and type of the time since the start of the sub-slice, one of
    TIME_TYPES. unit_ns: the unit of this time in ns, a whole number or a fraction.

    Raises DeclarationError for a time outside of the record, another type, or a unit that is not positive.
    """

    size: int
    time_offset: int
    time_type: str = "<u4"
    unit_ns: Fraction | int = 1

    def __post_init__(self) -> None:
        if not 0 < self.size <= MAX_HIT_BYTES:
            raise DeclarationError(f"hit layout: size = {self.size} bytes, expected 1 to {MAX_HIT_BYTES}")
        if self.time_type not in TIME_TYPES:
            raise DeclarationError(f"hit layout: time_type = {self.time_type!r}, expected {', '.join(TIME_TYPES)}")
        last = self.size - np.dtype(self.time_type).itemsize
        if not 0 <= self.time_offset <= last:
            raise DeclarationError(
                f"hit layout: time_offset = {self.time_offset}, but a record of {self.size} bytes has room up to {last}"
            )
        unit = Fraction(self.unit_ns)
        if not 0 < unit.numerator <= 0xFFFF_FFFF or unit.denominator > 0xFFFF_FFFF:
            raise DeclarationError(f"hit layout: unit_ns = {self.unit_ns}, expected a positive number of 32 bits")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffsets:
    """How the kernels of a chain correct the clocks of sources.

    column: the constant column with i32 ns that are added to the times of a source, by the number of the source. A hit
    that leaves its sub-slice so belongs to the one before or behind. size: its elements. reach_ns: time before and
    behind a sub-slice in which its candidates and windows have hits, at most.
    """

    column: str
    size: int
    reach_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Streaming:
    """How a chain cuts time.

    sub_slice_ns: length of a sub-slice in ns. margin_before, margin_behind: sub-slices at the start and the end of each
    slice that repeat those of its neighbours. hit: the record of a hit. subdetectors: those whose fragments are hits
    (top five bits of a source id), None: all. constants: the constants of the sequence that have the values of fields,
    by the names of the fields; a configuration that changes them changes how the chain cuts time. clock_offsets: how
    the kernels correct clocks; None: they do not. sub_slices: usual number of those of a slice, without its margins.

    Raises DeclarationError for a length outside of 1 to MAX_SUB_SLICE_NS, and for margins that leave no sub-slice.
    """

    sub_slice_ns: int
    margin_before: int
    margin_behind: int
    hit: HitLayout
    subdetectors: frozenset[int] | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    clock_offsets: ClockOffsets | None = None
    sub_slices: int = 510

    def __post_init__(self) -> None:
        if not 0 < self.sub_slice_ns <= MAX_SUB_SLICE_NS:
            raise DeclarationError(f"streaming: sub_slice_ns = {self.sub_slice_ns}, expected 1 to {MAX_SUB_SLICE_NS}")
        for name in ("margin_before", "margin_behind"):
            if getattr(self, name) < 0:
                raise DeclarationError(f"streaming: {name} = {getattr(self, name)}, expected 0 or more")
        if self.margins >= MAX_SUB_SLICES:
            raise DeclarationError(
                f"streaming: margins of {self.margins} sub-slices, but a slice has {MAX_SUB_SLICES} at most"
            )

    @property
    def margins(self) -> int:
        """Number of sub-slices of a slice that its neighbours have too."""
        return self.margin_before + self.margin_behind

    def configured(self, values: Mapping[str, Collection[int]]) -> Self:
        """The same with the values of its constants in a sequence, by the names of constants.

        Raises DeclarationError for a constant that the sequence does not have, and for one with two values in it.
        """
        changed: dict[str, Any] = {}
        for name, constant in self.constants.items():
            found = set(values.get(constant, ()))
            if len(found) != 1:
                has = f"several values: {', '.join(map(str, sorted(found)))}" if found else "no value"
                raise DeclarationError(f"streaming: {name} is the constant {constant}, which has {has} in the sequence")
            changed[name] = found.pop()
        return replace(self, **changed)

    @property
    def max_clock_offset_ns(self) -> int:
        """Largest clock offset of a source. Beyond it, hits of a window could lie outside of the margins.

        Kernels correct by less than a sub-slice: they read the hits of its two neighbours.
        """
        if self.clock_offsets is None or min(self.margin_before, self.margin_behind) == 0:
            return 0
        return max(0, self.sub_slice_ns - self.clock_offsets.reach_ns)

    def core(self, n_events: int) -> int:
        """Number of sub-slices of a slice of `n_events` events without its margins; 0 if it has margins only."""
        return max(0, n_events - self.margins)


def clock_offset_constants(
    chain: str, streaming: Streaming | None, offsets: Mapping[int, int]
) -> dict[str, NDArray[np.uint8]]:
    """The constant column with the clock offsets of sources (ns, by source id); none without offsets.

    Raises ValueError, which names the source, for an offset that the chain cannot correct.
    """
    if not offsets:
        return {}
    if streaming is None:
        raise ValueError(f"chain {chain} has no time slices, so no clocks of sources are corrected")
    if streaming.clock_offsets is None:
        raise ValueError(f"the kernels of chain {chain} correct no clocks")
    table = np.zeros(streaming.clock_offsets.size, np.int32)
    most, hit = streaming.max_clock_offset_ns, streaming.hit
    for source, offset in offsets.items():
        if streaming.subdetectors is not None and subdetector_of(source) not in streaming.subdetectors:
            raise ValueError(f"source {source}: chain {chain} takes no hits from sub-detector {subdetector_of(source)}")
        number = number_of(source)
        if number >= len(table):
            raise ValueError(f"source {source}: chain {chain} corrects the clocks of sources 0 to {len(table) - 1}")
        if abs(offset) > most:
            raise ValueError(
                f"source {source}: {offset} ns, but with these sub-slices and margins the largest clock offset of "
                f"chain {chain} is {most} ns"
            )
        if (offset / Fraction(hit.unit_ns)).denominator != 1:
            raise ValueError(f"source {source}: {offset} ns is no whole number of units of {hit.unit_ns} ns")
        table[number] = offset
    return {streaming.clock_offsets.column: table.view(np.uint8)}


def check_windows(chain: str, streaming: Streaming | None, windows: str, lists: Sequence[OutputList]) -> None:
    """Raise DeclarationError unless a streaming chain, and no other, names a list with the values of windows."""
    if streaming is None:
        if windows:
            raise DeclarationError(f"chain {chain}: windows = {windows!r}, but it does not declare `streaming`")
        return
    found = next((each for each in lists if each.name == windows), None)
    if found is None:
        raise DeclarationError(
            f"chain {chain}: windows = {windows!r} is none of its lists: {', '.join(each.name for each in lists)}"
        )
    for name, dtype in WINDOW_VALUES.items():
        value = found.values.get(name)
        if value is None or value.dtype != dtype:
            has = "does not have it" if value is None else f"has the type {value.dtype.str[1:]}"
            raise DeclarationError(
                f"chain {chain}: the list of windows {windows} needs {name} of type {dtype.str[1:]}; it {has}"
            )
