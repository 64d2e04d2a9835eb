"""Windows of time of a streaming chain: which are kept, their times in a decision message, and their records.

The windows of a sub-slice are kept if the lines accept the sub-slice. All loops over windows, fragments and hits are
compiled (protocol/window_records.cpp); Python sees slices.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import WindowCount, WindowFault
from hltnode.daemon.compute.results import Results
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.processing.framework.output_lists import ListContent, OutputList
from hltnode.processing.framework.streaming import END, START, Streaming
from hltnode.protocol._native import WindowLayout
from hltnode.protocol.raw_data.source_id import NUMBER_BITS
from hltnode.protocol.transport.decisions import SliceDecision, room_for_lists
from hltnode.protocol.value_lists import ListDescription, ValueList, encode_block

MAX_TIME_NS = (1 << 63) - 1
"""Times since the start of a run fit 63 bits, because those in the margin before the first slice are negative."""

log = get_logger("time_windows")


@dataclass(frozen=True, slots=True)
class WindowTally:
    """What became of the windows of one batch."""

    counts: Mapping[WindowCount, int]
    faults: Mapping[WindowFault, int]


class TimeWindows:
    """The windows of the chain of a node.

    Args:
        windows: the list of windows of the chain.
        no_hits: bank types that a source sends in place of hits.
    """

    def __init__(self, streaming: Streaming, windows: OutputList, no_hits: Collection[int] = ()) -> None:
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
        )
        kinds = windows.description.values
        self._description = ListDescription(
            windows.name, {name: "u8" if name in (START, END) else kind for name, kind in kinds.items()}
        )
        self._left_out = encode_block(self._description, None)

    @property
    def name(self) -> str:
        """The list of windows among the lists of the results."""
        return self._windows.name

    def is_slice(self, mep: MepRecord) -> bool:
        """Whether a MEP is a slice whose times can be told."""
        core = self._streaming.core(mep.n_events)
        return core > 0 and mep.mep * core * self._streaming.sub_slice_ns <= MAX_TIME_NS - (1 << 48)

    def hit_fragments(self, mep: MepRecord) -> NDArray[np.int64]:
        """The fragments of a MEP that are hits, i64[n, 3]; those of a timing system, for example, are in no window."""
        chosen = self._streaming.subdetectors
        if chosen is None:
            return mep.fragments
        return mep.fragments[np.isin(mep.fragments[:, 0] >> NUMBER_BITS, sorted(chosen))]

    def kept(self, meps: Sequence[MepRecord], results: Results, to_error: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """The sub-slices whose windows are kept, u8[n]: accepted ones outside of margins that are no error."""
        found: NDArray[np.uint8] = ((results.accepted != 0) & (to_error == 0)).astype(np.uint8)
        first = 0
        for mep in meps:
            last = first + mep.n_events
            if self.is_slice(mep):
                found[first : first + self._streaming.margin_before] = 0
                found[last - self._streaming.margin_behind : last] = 0
            else:
                log.error("slice_out_of_range", mep=mep.mep, sub_slices=mep.n_events)
                found[first:last] = 0
            first = last
        return found

    def encode(self, mep: MepRecord, content: ListContent, kept: NDArray[np.uint8], n_lines: int) -> bytes:
        """The field `windows` of the decision message of a slice; a list that does not fit is left out as a whole.

        Its times are in ns since the start of the run. A window that begins before it begins at 0.
        """
        counts = content.counts * kept
        rows = np.flatnonzero(np.repeat(kept, content.counts))
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.uint32)
        length, core = self._streaming.sub_slice_ns, self._streaming.core(mep.n_events)
        numbers = np.repeat(np.arange(mep.n_events, dtype=np.int64) - self._streaming.margin_before, counts)
        values = {name: of_all[rows] for name, of_all in content.values.items()}
        for name in (START, END):
            origin = mep.mep * core * length if len(rows) else 0
            times = origin + numbers * length + values[name].astype(np.int64)
            values[name] = np.maximum(times, 0).astype(np.uint64)
        size = 4 * len(offsets) + self._description.content_size(len(rows)) + len(self._left_out)
        if size > room_for_lists(mep.n_events, n_lines):
            return self._left_out
        return encode_block(self._description, ValueList(offsets, values))

    def is_left_out(self, decision: SliceDecision) -> bool:
        """Whether a message has no windows because they did not fit."""
        return decision.windows == self._left_out
