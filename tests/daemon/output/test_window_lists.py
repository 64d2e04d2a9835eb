"""The list of windows of a decision message, compared with a search window by window."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.daemon.output.time_windows import TimeWindows
from hltnode.processing.framework.output_lists import ListContent
from hltnode.protocol._native import window_list
from hltnode.protocol.value_lists import ListDescription, ValueList, encode_block
from tests.daemon.output.test_window_records import BEFORE, LENGTH, N_EVENTS, STREAMING, WINDOWS

DESCRIPTION = ListDescription("windows", {"start_ns": "u8", "size": "u2", "end_ns": "u8", "lines": "u4"})
NO_BYTES = np.zeros((0, 8), np.uint8)


def made_content(rng: np.random.Generator, n_events: int) -> ListContent:
    counts = rng.integers(0, 4, n_events)
    n = int(counts.sum())
    starts = rng.integers(-LENGTH, LENGTH, n)
    values = {
        "start_ns": starts.astype("<i4"),
        "size": rng.integers(0, 1 << 16, n).astype("<u2"),
        "end_ns": (starts + rng.integers(-20, 60, n)).astype("<i4"),
        "lines": rng.integers(0, 1 << 32, n).astype("<u4"),
    }
    return ListContent(np.r_[0, np.cumsum(counts)].astype(np.uint32), values)


def packed(content: ListContent, kept: NDArray[np.uint8], first_ns: int, room: int) -> bytes | None:
    values = content.values
    return window_list(
        text=DESCRIPTION.to_bytes(),
        offsets=content.offsets,
        starts=values["start_ns"],
        ends=values["end_ns"],
        columns=[
            NO_BYTES,
            values["size"].view(np.uint8).reshape(-1, 2),
            NO_BYTES,
            values["lines"].view(np.uint8).reshape(-1, 4),
        ],
        start_column=0,
        end_column=2,
        kept=kept,
        first_ns=first_ns,
        length_ns=LENGTH,
        room=room,
    )


def test_a_list_has_the_windows_of_kept_sub_slices_that_are_not_empty() -> None:
    rng = np.random.default_rng(2)
    n_cut = n_odd = 0
    for first_ns in (-LENGTH, 0, 1 << 61):
        for _ in range(10):
            content = made_content(rng, N_EVENTS)
            kept = rng.integers(0, 2, N_EVENTS).astype(np.uint8)
            counts, rows = [0] * N_EVENTS, []
            for event in np.flatnonzero(kept).tolist():
                for i in range(content.offsets[event], content.offsets[event + 1]):
                    if content.values["start_ns"][i] < content.values["end_ns"][i]:
                        counts[event] += 1
                        times = [first_ns + event * LENGTH + int(content.values[n][i]) for n in ("start_ns", "end_ns")]
                        n_cut += times[0] < 0
                        rows.append((max(times[0], 0), content.values["size"][i], max(times[1], 0), i))
            n_odd += len(rows) % 2
            columns = {
                "start_ns": np.array([row[0] for row in rows], "<u8"),
                "size": np.array([row[1] for row in rows], "<u2"),
                "end_ns": np.array([row[2] for row in rows], "<u8"),
                "lines": content.values["lines"][[row[3] for row in rows]],
            }
            expected = encode_block(DESCRIPTION, ValueList(np.r_[0, np.cumsum(counts)].astype("<u4"), columns))
            assert packed(content, kept, first_ns, len(expected)) == expected
            assert packed(content, kept, first_ns, len(expected) - 1) is None
    # Times before the run are 0, and values of two bytes are padded.
    assert n_cut
    assert n_odd


def test_inconsistent_tables_are_refused() -> None:
    content = made_content(np.random.default_rng(3), N_EVENTS)
    kept = np.ones(N_EVENTS, np.uint8)
    descending = content.offsets.copy()
    descending[1] = descending[-1] + 1
    short = {**content.values, "lines": content.values["lines"][:-1]}
    for changed, marks in (
        (content, kept[:-1]),
        (ListContent(descending, content.values), kept),
        (ListContent(content.offsets, short), kept),
        (ListContent(content.offsets, {**content.values, "end_ns": content.values["end_ns"][:-1]}), kept),
    ):
        with pytest.raises(ValueError, match="windows"):
            packed(changed, marks, 0, 1 << 20)


def test_values_that_are_not_contiguous_are_read() -> None:
    """Results of a chain may be fields of records."""
    times = TimeWindows(STREAMING, WINDOWS)
    record = np.zeros(2, [("start_ns", "<i4"), ("end_ns", "<i4"), ("lines", "<u4")])
    record["start_ns"], record["end_ns"], record["lines"] = [1, 2], [5, 9], [3, 4]
    offsets = np.r_[np.zeros(BEFORE + 1), np.full(N_EVENTS - BEFORE, 2)].astype(np.uint32)

    class Slice:
        mep, n_events = 0, N_EVENTS

    kept = np.ones(N_EVENTS, np.uint8)
    contents = [ListContent(offsets, {name: record[name] for name in record.dtype.names or ()})]
    contents.append(contents[0].copy())
    found = [times.encode(Slice(), each, kept, 1 << 20) for each in contents]  # type: ignore[arg-type]
    assert found[0] == found[1]
    assert len(found[0]) == len(encode_block(times._description, None)) + 4 * (N_EVENTS + 1) + 2 * (8 + 8 + 4)
