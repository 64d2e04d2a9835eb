"""Windows of time of a streaming chain: which are kept, their times in a decision message, and their records.

The windows of a sub-slice are kept if the lines accept the sub-slice. All loops over windows, fragments and hits are
compiled (protocol/window_records.cpp, protocol/window_list.cpp); Python sees slices.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import CloseReason, StreamTime, WindowCount, WindowFault
from hltnode.daemon.compute.results import Results
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.processing.framework.output_lists import ListContent, OutputList
from hltnode.processing.framework.streaming import END, START, Streaming
from hltnode.protocol._native import WindowLayout, window_list
from hltnode.protocol.raw_data.source_id import NUMBER_BITS
from hltnode.protocol.transport.decisions import SliceDecision
from hltnode.protocol.transport.seed_messages import MAX_RUN_NS
from hltnode.protocol.value_lists import ListDescription, encode_block

LOG_INTERVAL_NS = 10_000_000_000
_NO_BYTES = np.zeros((0, 8), np.uint8)

log = get_logger("time_windows")


def is_late(mep: MepRecord) -> bool:
    """Whether a slice was closed by its deadline, before a source had sent its part."""
    return mep.close_reason is CloseReason.TIMEOUT and bool(mep.missing)


@dataclass(frozen=True, slots=True)
class WindowTally:
    """What became of the windows of one batch."""

    counts: Mapping[WindowCount, int]
    faults: Mapping[WindowFault, int]
    times: Mapping[StreamTime, int] = field(default_factory=dict)
    """ns of the detector."""


class TimeWindows:
    """The windows of the chain of a node.

    Args:
        windows: the list of windows of the chain.
        no_hits: bank types that a source sends in place of hits.
        clock_offsets: ns that are added to the times of sources, by their ids. Records have the corrected times.
    """

    def __init__(
        self,
        streaming: Streaming,
        windows: OutputList,
        no_hits: Collection[int] = (),
        clock_offsets: Mapping[int, int] | None = None,
    ) -> None:
        self._streaming = streaming
        self._windows = windows
        hit, unit = streaming.hit, Fraction(streaming.hit.unit_ns)
        self.layout = WindowLayout(
            sub_slice_ns=streaming.sub_slice_ns,
            margin_before=streaming.margin_before,
            margin_behind=streaming.margin_behind,
            hit_size=hit.size,
            time_offset=hit.time_offset,
            time_bytes=np.dtype(hit.time_type).itemsize,
            big_endian=hit.time_type.startswith(">"),
            unit_numerator=unit.numerator,
            unit_denominator=unit.denominator,
            no_hits=sorted(no_hits),
            clock_offsets_ns=dict(clock_offsets or {}),
        )
        kinds = windows.description.values
        self._description = ListDescription(
            windows.name, {name: "u8" if name in (START, END) else kind for name, kind in kinds.items()}
        )
        self._text = self._description.to_bytes()
        self._left_out = encode_block(self._description, None)
        self._first: tuple[int, int] | None = None
        """The run, and the number of events of its first slice."""
        self._limit = RateLimit(LOG_INTERVAL_NS, time.monotonic_ns)

    @property
    def name(self) -> str:
        """The list of windows among the lists of the results."""
        return self._windows.name

    def is_slice(self, mep: MepRecord) -> bool:
        """Whether a MEP is a slice whose times can be told."""
        core = self._streaming.core(mep.n_events)
        return core > 0 and mep.mep * core * self._streaming.sub_slice_ns <= MAX_RUN_NS - (1 << 48)

    def hit_fragments(self, mep: MepRecord) -> NDArray[np.int64]:
        """The fragments of a MEP that are hits, i64[n, 3]; those of a timing system, for example, are in no window."""
        chosen = self._streaming.subdetectors
        if chosen is None:
            return mep.fragments
        return mep.fragments[np.isin(mep.fragments[:, 0] >> NUMBER_BITS, sorted(chosen))]

    def kept(self, run: int, mep: MepRecord, results: Results, to_error: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """The sub-slices of a slice whose windows are kept, u8[n]: accepted ones outside of margins that are no error.

        The first slice of a run tells how many sub-slices each has. Others have another start than their number tells.
        """
        if not self.is_slice(mep):
            if (left_out := self._limit.due("range")) is not None:
                log.error("slice_out_of_range", mep=mep.mep, sub_slices=mep.n_events, left_out=left_out)
            return np.zeros(mep.n_events, np.uint8)
        if self._first is None or run != self._first[0]:
            self._first = run, mep.n_events
        if mep.n_events != self._first[1]:
            if (left_out := self._limit.due("length")) is not None:
                expected = self._first[1]
                log.error(
                    "slice_of_other_length", mep=mep.mep, sub_slices=mep.n_events, expected=expected, left_out=left_out
                )
            return np.zeros(mep.n_events, np.uint8)
        found: NDArray[np.uint8] = ((results.accepted != 0) & (to_error == 0)).astype(np.uint8)
        found[: self._streaming.margin_before] = 0
        found[mep.n_events - self._streaming.margin_behind :] = 0
        return found

    def faults(
        self, content: ListContent, accepted: NDArray[np.bool_], kept: NDArray[np.uint8]
    ) -> dict[WindowFault, int]:
        """Faults of the windows of sub-slices that the lines accept (bool[n]) or whose windows are kept (u8[n])."""
        return {
            WindowFault.OUT_OF_SLICE: int(content.counts[accepted & (kept == 0)].sum()),
            WindowFault.EMPTY: int((self.are_empty(content) & (np.repeat(kept, content.counts) != 0)).sum()),
        }

    def is_of_its_run(self, mep: MepRecord) -> bool:
        """Whether the slice that `kept` got last has as many sub-slices as the first one of its run."""
        return self._first is not None and mep.n_events == self._first[1]

    def times(self, meps: Sequence[MepRecord]) -> dict[StreamTime, int]:
        """Time of slices in ns, margins not counted: of all, of late ones, and of those that a rule dropped."""
        found = dict.fromkeys(StreamTime, 0)
        for mep in meps:
            core_ns = self._streaming.core(mep.n_events) * self._streaming.sub_slice_ns
            found[StreamTime.TAKEN] += core_ns
            found[StreamTime.LATE] += core_ns if is_late(mep) else 0
            found[StreamTime.DROPPED] += 0 if mep.dropped_by is None else core_ns
        return found

    @staticmethod
    def are_empty(content: ListContent) -> NDArray[np.bool_]:
        """Whether each window ends before it begins, or where it begins."""
        n = int(content.offsets[-1])
        found: NDArray[np.bool_] = content.values[START][:n] >= content.values[END][:n]
        return found

    def encode(self, mep: MepRecord, content: ListContent, kept: NDArray[np.uint8], room: int) -> bytes:
        """The field `windows` of the decision message of a slice; a list of more bytes than `room` is left out.

        Its times are in ns since the start of the run. A window that begins before it begins at 0. Empty ones have no
        place in it.
        """
        length, core = self._streaming.sub_slice_ns, self._streaming.core(mep.n_events)
        # Without windows the number of the slice may be too large for times.
        first = mep.mep * core - self._streaming.margin_before if kept.any() else 0
        names = list(self._description.values)
        found = window_list(
            text=self._text,
            offsets=np.ascontiguousarray(content.offsets),
            starts=np.ascontiguousarray(content.values[START]),
            ends=np.ascontiguousarray(content.values[END]),
            columns=[
                _NO_BYTES
                if name in (START, END)
                else np.ascontiguousarray(content.values[name], f"<{kind}").view(np.uint8).reshape(-1, int(kind[1:]))
                for name, kind in self._description.values.items()
            ],
            start_column=names.index(START),
            end_column=names.index(END),
            kept=kept,
            first_ns=first * length,
            length_ns=length,
            room=room,
        )
        return self._left_out if found is None else found

    def is_left_out(self, decision: SliceDecision) -> bool:
        """Whether a message has no windows because they did not fit."""
        return decision.windows == self._left_out
