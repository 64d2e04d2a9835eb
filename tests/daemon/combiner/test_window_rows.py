"""Windows of a slice as rows of messages, and the list of windows that rows and external windows make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hltnode.daemon.combiner import window_rows
from hltnode.daemon.combiner.window_rows import PART_NS, WindowRows
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.processing.framework.collections import I32, U32, Collection, DeclarationError, Placement
from hltnode.processing.framework.output_lists import ListContent, ListValue, OutputList
from hltnode.processing.framework.streaming import HitLayout, Streaming
from hltnode.protocol.transport.seed_messages import ExternalWindow, decode_to_combiner, encode_to_combiner, rows_of

RUN, LENGTH, BEFORE, BEHIND, N = 7, 100, 1, 2, 13
CORE = N - BEFORE - BEHIND
SLICE = 5
BEGIN, END = SLICE * CORE * LENGTH, (SLICE + 1) * CORE * LENGTH
PLACES = Collection("places", capacity=lambda limits: limits.events, placement=Placement.fixed(1), max_per_event=1)
TYPES: dict[str, np.dtype[Any]] = {
    "start_ns": I32,
    "end_ns": I32,
    "n": np.dtype("<u2"),
    "lines": U32,
    "energy": np.dtype("<f4"),
}
WINDOWS = OutputList(
    name="windows",
    text="",
    count=PLACES.per_event("count", U32),
    values={name: ListValue(column=PLACES.column(f"c_{name}", dtype), text="") for name, dtype in TYPES.items()},
)


def streaming(length: int = LENGTH) -> Streaming:
    hit = HitLayout(size=4, time_offset=0)
    return Streaming(sub_slice_ns=length, margin_before=BEFORE, margin_behind=BEHIND, hit=hit)


def mep(number: int = SLICE) -> MepRecord:
    return MepRecord(mep=number, slot=0, first_event=0, n_events=N, opened_ns=0, n_sources=1)


def content_of(windows: list[tuple[int, int, int]]) -> ListContent:
    """From sub-slice, start and end."""
    counts = np.bincount([each[0] for each in windows], minlength=N)
    table = np.array(windows, np.int64).reshape(-1, 3)
    n = len(windows)
    values = {
        "start_ns": table[:, 1].astype("<i4"),
        "end_ns": table[:, 2].astype("<i4"),
        "n": np.arange(n).astype("<u2"),
        "lines": (1 << (np.arange(n) % 31)).astype("<u4"),
        "energy": (0.5 * np.arange(n)).astype("<f4"),
    }
    return ListContent(np.r_[0, np.cumsum(counts)].astype(np.uint32), values)


def check_same(found: ListContent, wanted: ListContent) -> None:
    assert list(found.values) == list(wanted.values)
    np.testing.assert_array_equal(found.offsets, wanted.offsets)
    for name, values in wanted.values.items():
        assert found.values[name].dtype == values.dtype
        np.testing.assert_array_equal(found.values[name], values)


def test_windows_come_back_as_they_were() -> None:
    rows = WindowRows(streaming(), WINDOWS)
    wanted = content_of([(1, -30, 60), (1, 5, 50), (4, 99, 350), (10, 80, 299)])
    message = rows.seeds(RUN, mep(), wanted, np.ones(N, np.uint8))
    assert decode_to_combiner(encode_to_combiner(message)) == message
    assert (message.core_ns, message.before_ns, message.behind_ns) == (CORE * LENGTH, 100, 200)
    found = rows_of(message.description, message.seeds)
    assert found["start_ns"].tolist() == [BEGIN - 30, BEGIN + 5, BEGIN + 399, BEGIN + 980]
    content, bad = rows.content(mep(), [found])
    assert bad == 0
    check_same(content, wanted)


def test_windows_of_rejected_sub_slices_and_empty_ones_are_no_seeds() -> None:
    rows = WindowRows(streaming(), WINDOWS)
    kept = np.ones(N, np.uint8)
    kept[4] = 0
    message = rows.seeds(RUN, mep(), content_of([(3, 0, 10), (4, 0, 10), (5, 7, 7), (6, 8, 7), (6, 7, 8)]), kept)
    assert rows_of(message.description, message.seeds)["sub_slice"].tolist() == [3, 6]


def test_a_window_beyond_the_margins_is_cut_one_ns_behind_them() -> None:
    rows = WindowRows(streaming(), WINDOWS)
    message = rows.seeds(RUN, mep(), content_of([(1, -5000, 10), (10, 0, 5000)]), np.ones(N, np.uint8))
    found = rows_of(message.description, message.seeds)
    assert found["start_ns"].tolist() == [BEGIN - 101, END - 100]
    assert found["end_ns"].tolist() == [BEGIN + 10, END + 201]


def test_more_seeds_than_a_message_holds_become_the_whole_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = WindowRows(streaming(), WINDOWS)
    windows = content_of([(2, 0, 10), (3, 0, 10), (4, 0, 10)])
    size = rows_of(rows.description, b"").dtype.itemsize
    for limit, is_whole in ((3 * size, False), (3 * size - 1, True)):
        monkeypatch.setattr(window_rows, "MAX_SEED_BYTES", limit)
        message = rows.seeds(RUN, mep(), windows, np.ones(N, np.uint8))
        assert message.whole == is_whole
    found = rows_of(message.description, message.seeds)
    assert (found["start_ns"].item(), found["end_ns"].item()) == (BEGIN, END + 200)
    assert found["lines"].item() == 7
    assert rows.content(mep(), [found])[0].counts.tolist() == [0, 1, *[0] * 11]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 1 << 62, (BEGIN, END + 200)),
        (BEGIN + 250, BEGIN + 260, (BEGIN + 250, BEGIN + 260)),
        (END - 1, END + 150, (END - 1, END + 150)),
        (BEGIN - 10, BEGIN + 1, (BEGIN, BEGIN + 1)),
        (END, END + 10, None),
        (BEGIN - 10, BEGIN, None),
    ],
)
def test_external_windows_are_cut_to_the_slice(start: int, end: int, expected: tuple[int, int] | None) -> None:
    rows = WindowRows(streaming(), WINDOWS)
    content, bad = rows.content(mep(), [], [ExternalWindow(RUN, start, end)])
    assert bad == 0
    sub_slices = np.repeat(np.arange(N), content.counts)
    origins = BEGIN + (sub_slices - BEFORE) * LENGTH
    starts, ends = origins + content.values["start_ns"], origins + content.values["end_ns"]
    times = list(zip(starts.tolist(), ends.tolist(), strict=True))
    assert times == ([] if expected is None else [expected])
    assert content.values["lines"].tolist() == [0] * len(times)
    assert all(0 <= start < LENGTH for start in content.values["start_ns"])


def test_long_windows_are_made_in_parts_that_overlap() -> None:
    length = PART_NS // 4
    rows = WindowRows(streaming(length), WINDOWS)
    begin = SLICE * CORE * length
    content, bad = rows.content(mep(), [], [ExternalWindow(RUN, 0, 1 << 62)])
    assert bad == 0
    sub_slices = np.repeat(np.arange(N), content.counts)
    origins = begin + (sub_slices - BEFORE) * length
    starts, ends = origins + content.values["start_ns"], origins + content.values["end_ns"]
    assert len(starts) == 3
    assert (starts[0], ends[-1]) == (begin, begin + (CORE + BEHIND) * length)
    assert (ends[:-1] == starts[1:] + 1).all()
    whole = np.zeros(1, rows_of(rows.description, b"").dtype)
    whole["start_ns"], whole["end_ns"], whole["sub_slice"], whole["lines"] = begin, ends[-1], BEFORE, 9
    again, bad = rows.content(mep(), [whole])
    assert bad == 0
    np.testing.assert_array_equal(again.values["end_ns"], content.values["end_ns"])
    assert again.values["lines"].tolist() == [9] * 3


def test_rows_that_do_not_fit_the_slice_are_left_out_and_counted() -> None:
    rows = WindowRows(streaming(), WINDOWS)
    found = np.zeros(5, rows_of(rows.description, b"").dtype)
    found["start_ns"], found["end_ns"], found["sub_slice"] = BEGIN + 5, BEGIN + 9, [1, 0, 11, 1, 1]
    found["start_ns"][3], found["end_ns"][3] = END, END + 4
    found["start_ns"][4], found["end_ns"][4] = BEGIN - 120, BEGIN - 100
    content, bad = rows.content(mep(), [found])
    assert bad == 4
    assert content.counts.tolist() == [0, 1, *[0] * 11]


def test_sub_slices_of_more_than_a_second_cannot_be_held() -> None:
    WindowRows(streaming(PART_NS // 4), WINDOWS)
    with pytest.raises(DeclarationError, match="cannot be held"):
        WindowRows(streaming(PART_NS // 4 + 1), WINDOWS)


def test_a_slice_without_windows_is_reported_and_comes_back_empty() -> None:
    rows = WindowRows(streaming(), WINDOWS)
    message = rows.seeds(RUN, mep(), content_of([]), np.ones(N, np.uint8))
    assert message.seeds == b""
    check_same(rows.content(mep(), [rows_of(message.description, message.seeds)])[0], content_of([]))
