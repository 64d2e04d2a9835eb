"""Hits of windows against a search hit by hit, for hits of eight bytes and others, and for clocks that are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.daemon.output.event_encoder import Decided, EncodedWindows, EventEncoder
from hltnode.daemon.output.time_windows import TimeWindows
from hltnode.processing.framework.collections import I32, U32, Collection, Placement
from hltnode.processing.framework.flags import FlagTable
from hltnode.processing.framework.output_lists import ListContent, ListValue, OutputList, no_words
from hltnode.processing.framework.streaming import HitLayout, Streaming
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.time_windows import TimeWindow, WindowStatus, decode_window

N_EVENTS, SLICE, HITS = 12, 3, 192
PLACES = Collection("places", capacity=lambda limits: limits.events, placement=Placement.fixed(1), max_per_event=1)
COLUMNS = {
    "start_ns": PLACES.column("start", I32),
    "end_ns": PLACES.column("end", I32),
    "lines": PLACES.column("l", U32),
}
WINDOWS = OutputList(
    name="windows",
    text="",
    count=PLACES.per_event("count", U32),
    values={name: ListValue(column=column, text="") for name, column in COLUMNS.items()},
)
LAYOUTS = [(8, 4), (8, 1), (12, 4), (6, 0)]
"""Bytes of a hit, and the first byte of its time."""
Fragments = dict[int, list[NDArray[np.void]]]
Window = tuple[int, int]
"""Start and end in ns since the start of the first sub-slice."""


@dataclass(frozen=True, slots=True)
class Expected:
    hits: list[tuple[int, int, bytes]]
    """Time since the start of the first sub-slice, source, bytes in the record."""
    outside: int


def hit_type(size: int, offset: int, kind: str) -> np.dtype[Any]:
    behind = offset + np.dtype(kind).itemsize
    return np.dtype(
        {
            "names": ["time", "before", "behind"],
            "formats": [kind, f"V{offset}" if offset else "V0", f"V{size - behind}"],
            "offsets": [offset, 0, behind],
            "itemsize": size,
        }
    )


def random_hits(rng: np.random.Generator, n: int, layout: np.dtype[Any], length: int) -> NDArray[np.void]:
    hits = np.frombuffer(rng.bytes(n * layout.itemsize), layout).copy()
    times = rng.integers(0, length, n)
    times[rng.random(n) < 0.1] = length
    hits["time"] = np.minimum(times, np.iinfo(layout["time"]).max)
    return hits


def search(fragments: Fragments, window: Window, length: int, offsets: Mapping[int, int]) -> Expected:
    """The hits of a window, each compared with it."""
    kind = next(iter(fragments.values()))[0].dtype["time"]
    found, outside = [], 0
    for sub_slice in range(window[0] // length, (window[1] - 1) // length + 1):
        for source in sorted(fragments):
            offset = offsets.get(source, 0)
            parts = {0: [0], 1: [-1, 0], -1: [0, 1]}[int(np.sign(offset))]
            for part in parts:
                if not 0 <= sub_slice + part < N_EVENTS:
                    continue
                for hit in fragments[source][sub_slice + part]:
                    sent = int(hit["time"])
                    corrected = sent + offset + part * length
                    inside = 0 <= corrected < length
                    moment = sub_slice * length + corrected
                    if sent >= length:
                        outside += part == 0
                    elif inside and window[0] <= moment < window[1]:
                        if corrected > np.iinfo(kind).max:
                            outside += part == 0
                            continue
                        copy = hit.copy()
                        copy["time"] = corrected
                        found.append((moment, source, copy.tobytes()))
    return Expected(found, outside)


def encode(
    fragments: Fragments, windows: list[Window], streaming: Streaming, offsets: dict[int, int], in_vectors: bool
) -> tuple[list[TimeWindow], EncodedWindows]:
    data, rows = b"", []
    for source, of_source in fragments.items():
        mfp = encode_mfp(
            source_id=source, event_id=0, version=3, types=[HITS] * N_EVENTS, fragments=[f.tobytes() for f in of_source]
        )
        rows.append((source, len(data), len(mfp)))
        data += mfp
    events = np.array([begin // streaming.sub_slice_ns for begin, _ in windows])
    order = np.argsort(events, kind="stable")
    columns = np.array(windows)[order] - events[order, None] * streaming.sub_slice_ns
    content = ListContent(
        np.r_[0, np.cumsum(np.bincount(events, minlength=N_EVENTS))].astype(np.uint32),
        {
            "start_ns": columns[:, 0].astype(np.int32),
            "end_ns": columns[:, 1].astype(np.int32),
            "lines": np.ones(len(windows), np.uint32),
        },
    )
    layout = TimeWindows(streaming, WINDOWS, clock_offsets=offsets).layout
    layout.in_vectors = in_vectors
    none = np.zeros((N_EVENTS, 1), np.uint32)
    encoded = EventEncoder(9, np.zeros((1, 3), np.uint32), ("things",), FlagTable()).encode_windows(
        layout,
        memoryview(data),
        [(N_EVENTS, np.array(rows, np.int64))],
        np.array([SLICE], np.uint64),
        np.zeros(1, np.uint8),
        7,
        Decided(none, none[:, 0], none, no_words(N_EVENTS)),
        content,
        np.ones(N_EVENTS, np.uint8),
    )
    found = [decode_window(record.banks()) for record in iter_records(encoded.data)]
    return [window for window in found if window is not None], encoded


@pytest.mark.parametrize("kind", ["<u2", ">u2", "<u4", ">u4"])
@pytest.mark.parametrize(("size", "offset"), LAYOUTS)
@pytest.mark.parametrize("in_vectors", [False, True])
def test_each_hit_of_a_window_is_copied_once_with_its_corrected_time(
    in_vectors: bool, size: int, offset: int, kind: str
) -> None:
    rng = np.random.default_rng(1)
    n_hits = n_outside = 0
    for length in (100, 70_000):
        layout = hit_type(size, offset, kind)
        hit = HitLayout(size=size, time_offset=offset, time_type=kind)
        streaming = Streaming(sub_slice_ns=length, margin_before=1, margin_behind=2, hit=hit)
        offsets = {5: 9, 77: -8, 901: 1 - length}
        fragments: Fragments = {
            source: [random_hits(rng, int(rng.integers(0, 20)), layout, length) for _ in range(N_EVENTS)]
            for source in (900, 5, 77, 901)
        }
        edges = np.sort(rng.choice(np.arange(length, (N_EVENTS - 2) * length), 12, replace=False)).tolist()
        windows: list[Window] = [(3 * length, 4 * length), *zip(edges[::2], edges[1::2], strict=True)]
        # Each in a record of its own: merged windows have another test.
        windows = [each for each in windows[1:] if each[1] <= windows[0][0] or each[0] >= windows[0][1]] + windows[:1]
        found, encoded = encode(fragments, windows, streaming, offsets, in_vectors)
        expected = [search(fragments, window, length, offsets) for window in sorted(windows)]
        origin = (SLICE * (N_EVENTS - 3) - 1) * length
        assert [(each.start_ns - origin, each.end_ns - origin) for each in found] == sorted(windows)
        for window, of_window in zip(found, expected, strict=True):
            rows = zip((window.times - origin).tolist(), window.sources.tolist(), map(bytes, window.hits), strict=True)
            assert list(rows) == of_window.hits
            assert window.status == (WindowStatus.DAMAGED if of_window.outside else 0)
        assert encoded.hits == sum(len(each.hits) for each in expected)
        assert encoded.hits_outside == sum(each.outside for each in expected)
        n_hits += encoded.hits
        n_outside += encoded.hits_outside
    assert n_hits > 100
    assert n_outside > 20
