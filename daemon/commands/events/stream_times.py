"""Times in the stream for the results of a streaming chain, which are in ns since the start of their sub-slice."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hltnode.processing.framework.event_files import event_counts, read_meps
from hltnode.processing.framework.streaming import END, START, Streaming
from hltnode.protocol.raw_data.file_format import FileFormat, format_of
from hltnode.protocol.raw_data.mdf import GENERIC_HEADER_SIZE

NUMBER, SUB_SLICE_START, WINDOWS = "sub_slice", "sub_slice_start_ns", "windows_ns"
"""Results of each event: the number of its sub-slice in the stream, the start of this sub-slice, and start and end of
each window that begins in it, in ns since the start of the stream."""


def with_stream_times(
    per_event: Sequence[dict[str, Any]], files: Sequence[Path], streaming: Streaming
) -> list[dict[str, Any]]:
    """The results of all events of the files, with times in the stream.

    As in decision messages and records, a window that begins before the stream begins at 0.
    """
    length = streaming.sub_slice_ns
    found = []
    for number, event in zip(sub_slice_numbers(files, streaming), per_event, strict=True):
        origin = number * length
        edges = zip(event.get(START, ()), event.get(END, ()), strict=True)
        windows = [[max(0, origin + start), max(0, origin + end)] for start, end in edges]
        found.append({NUMBER: number, SUB_SLICE_START: origin, **event, WINDOWS: windows})
    return found


def sub_slice_numbers(files: Sequence[Path], streaming: Streaming) -> Iterator[int]:
    """The number in the stream of each event of undamaged files.

    The id of a MEP is the number of its slice, whose margins have the numbers of the sub-slices that they repeat: those
    before the first slice are negative. Events of other files follow each other.
    """
    following = 0
    for path in files:
        with path.open("rb") as file:
            file_format = format_of(file.read(GENERIC_HEADER_SIZE))
        if file_format is FileFormat.MEP:
            core: int | None = None
            for mep in read_meps(path):
                # The last slice of a file may be shorter.
                core = streaming.core(mep.n_events) if core is None else core
                first = mep.event_id * core - streaming.margin_before
                yield from range(first, first + mep.n_events)
            continue
        for part in event_counts(path):
            yield from range(following, following + part.n_events)
            following += part.n_events
