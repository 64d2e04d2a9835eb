"""Seeds and windows of a slice: from the list of windows of the chain to the rows of messages, and back.

All loops over windows are in NumPy; only parts of windows of a second or more are made in Python.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.daemon.output.time_windows import TimeWindows
from hltnode.processing.framework.collections import DeclarationError
from hltnode.processing.framework.output_lists import ListContent, OutputList
from hltnode.processing.framework.streaming import END, LINES, START, Streaming
from hltnode.protocol.transport.seed_messages import MAX_SEED_BYTES, ExternalWindow, SliceSeeds, row_type
from hltnode.protocol.value_lists import ListDescription

Rows = NDArray[np.void]

PART_NS = 1 << 30
"""Longer windows are made in parts: times of the list are relative to a sub-slice and have 32 bits."""


class WindowRows:
    """Rows of the windows of one chain.

    Raises DeclarationError for margins and sub-slices so long that the parts of a window would not fit 32 bits.
    """

    def __init__(self, streaming: Streaming, windows: OutputList) -> None:
        self._streaming = streaming
        self._windows = windows
        if streaming.sub_slice_ns * (1 + streaming.margins) > PART_NS:
            raise DeclarationError(
                f"slices with sub-slices of {streaming.sub_slice_ns} ns and {streaming.margins} of them in margins "
                f"cannot be held: at most {PART_NS} ns together"
            )
        kinds = windows.description.values
        self._others = {name: kind for name, kind in kinds.items() if name not in (START, END, LINES)}
        self.description = ListDescription(windows.name, self._others).to_bytes() if self._others else b""
        self._dtype = row_type(self.description)
        self.no_rows: Rows = np.zeros(0, self._dtype)

    def seeds(self, run: int, mep: MepRecord, content: ListContent, kept: NDArray[np.uint8]) -> SliceSeeds:
        """The message with the windows of a slice that are kept (u8 of each sub-slice) and not empty."""
        length, core, begin, end = self._times(mep)
        events = np.repeat(np.arange(mep.n_events), content.counts)
        chosen = np.flatnonzero((kept[events] != 0) & ~TimeWindows.are_empty(content))
        events = events[chosen]
        origins = begin + (events - self._streaming.margin_before) * length
        before_ns, behind_ns = (each * length for each in self._margins())
        rows = np.zeros(len(chosen), self._dtype)
        # What lies beyond the margins is not in the slice. One ns of it stays, so that the window is cut off there.
        starts = np.maximum(origins + content.values[START][chosen], begin - before_ns - 1)
        ends = np.minimum(origins + content.values[END][chosen], end + behind_ns + 1)
        rows["start_ns"], rows["end_ns"], rows["sub_slice"] = starts, ends, events
        rows["lines"] = content.values[LINES][chosen]
        if self._others:
            parts = [
                np.ascontiguousarray(content.values[name][chosen], f"<{kind}")
                .view("u1")
                .reshape(len(chosen), int(kind[1:]))
                for name, kind in self._others.items()
            ]
            rows["columns"] = np.concatenate(parts, axis=1)
        rows = rows[starts < ends]
        is_whole = rows.nbytes > MAX_SEED_BYTES
        if is_whole:
            rows = self._whole(mep, np.bitwise_or.reduce(rows["lines"]))
        return SliceSeeds(
            run, mep.mep, core * length, before_ns, behind_ns, self.description, rows.tobytes(), whole=is_whole
        )

    def empty(self, n_events: int) -> ListContent:
        """The list of sub-slices without windows."""
        return self._windows.empty(n_events)

    def content(
        self, mep: MepRecord, rows: Sequence[Rows], external: Sequence[ExternalWindow] = ()
    ) -> tuple[ListContent, int]:
        """The list of windows of a slice from rows and external windows, and the number of rows that do not fit it.

        External windows have lines 0. They end with the margin behind, so that those of neighbouring slices overlap.
        """
        length, _, begin, end = self._times(mep)
        before, behind = self._margins()
        last = end + behind * length
        parts = [*rows]
        parts += [
            self._long(mep, max(each.start_ns, begin), min(each.end_ns, last), 0)
            for each in external
            if each.start_ns < end and each.end_ns > begin
        ]
        found = np.concatenate([self.no_rows, *parts])
        numbers = found["sub_slice"].astype(np.int64)
        origins = begin + (numbers - before) * length
        starts, ends = found["start_ns"] - origins, found["end_ns"] - origins
        is_long = ends >= 2 * PART_NS
        fits = (numbers >= before) & (numbers < mep.n_events - behind)
        fits &= (starts >= -PART_NS) & (found["start_ns"] < end) & (found["end_ns"] > begin - before * length)
        if (is_long & fits).any():
            long_ones = [
                self._long(mep, max(int(row["start_ns"]), begin), min(int(row["end_ns"]), last + 1), int(row["lines"]))
                for row in found[is_long & fits]
            ]
            return self.content(mep, [found[fits & ~is_long], *long_ones])[0], int((~fits).sum())
        chosen = np.flatnonzero(fits)
        chosen = chosen[np.argsort(numbers[chosen], kind="stable")]
        counts = np.bincount(numbers[chosen], minlength=mep.n_events)
        values = {
            START: starts[chosen].astype(np.int32),
            END: ends[chosen].astype(np.int32),
            LINES: found["lines"][chosen],
        }
        at = 0
        for name, kind in self._others.items():
            size = int(kind[1:])
            raw = np.ascontiguousarray(found["columns"][chosen, at : at + size])
            values[name] = raw.reshape(-1).view(f"<{kind}")
            at += size
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.uint32)
        in_order = {name: values[name] for name in self._windows.values}
        return ListContent(offsets, in_order), int((~fits).sum())

    def _margins(self) -> tuple[int, int]:
        return self._streaming.margin_before, self._streaming.margin_behind

    def _times(self, mep: MepRecord) -> tuple[int, int, int, int]:
        """Length of a sub-slice, number of sub-slices without margins, and start and end of these in ns."""
        length, core = self._streaming.sub_slice_ns, self._streaming.core(mep.n_events)
        begin = mep.mep * core * length
        return length, core, begin, begin + core * length

    def _whole(self, mep: MepRecord, lines: int) -> Rows:
        length, _, begin, end = self._times(mep)
        rows = np.zeros(1, self._dtype)
        rows["start_ns"], rows["end_ns"] = begin, end + self._streaming.margin_behind * length
        rows["lines"], rows["sub_slice"] = lines, self._streaming.margin_before
        return rows

    def _long(self, mep: MepRecord, begin: int, end: int, lines: int) -> Rows:
        """A window without other values, in parts that overlap by 1 ns: records merge them."""
        length, _, start, stop = self._times(mep)
        starts = np.arange(begin, min(end, stop), PART_NS, dtype=np.int64)
        rows = np.zeros(len(starts), self._dtype)
        rows["start_ns"], rows["lines"] = starts, lines
        rows["end_ns"][:-1], rows["end_ns"][-1:] = starts[1:] + 1, end
        rows["sub_slice"] = self._streaming.margin_before + (starts - start) // length
        return rows
