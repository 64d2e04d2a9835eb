"""Records of windows for layouts of hits, compared with a search hit by hit: bytes, status and counts of faults."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.daemon.output.time_windows import TimeWindows
from hltnode.processing.framework.streaming import HitLayout, Streaming
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.time_windows import WindowStatus
from tests.daemon.output.test_window_records import (
    BEFORE,
    BEHIND,
    N_EVENTS,
    NO_DATA,
    SLICE,
    WINDOWS,
    Fragments,
    encode,
    rows_of,
)


@dataclass(frozen=True)
class Layout:
    """length: ns of a sub-slice."""

    time_type: str
    unit: Fraction
    size: int
    offset: int
    length: int

    def __str__(self) -> str:
        return f"{self.time_type} of {self.size} bytes, {self.unit} ns"

    @property
    def field(self) -> int:
        return np.dtype(self.time_type).itemsize

    @property
    def order(self) -> Literal["big", "little"]:
        return "big" if self.time_type[0] == ">" else "little"

    @property
    def largest_clock(self) -> int:
        """The largest clock offset below two thirds of a sub-slice; 0 where none can be corrected."""
        is_whole = (self.length / self.unit).denominator == 1
        return self.length * 2 // 3 // self.unit.numerator * self.unit.numerator if is_whole else 0

    @property
    def streaming(self) -> Streaming:
        hit = HitLayout(size=self.size, time_offset=self.offset, time_type=self.time_type, unit_ns=self.unit)
        return Streaming(sub_slice_ns=self.length, margin_before=BEFORE, margin_behind=BEHIND, hit=hit)

    def hits(self, ticks: NDArray[np.int64], rng: np.random.Generator) -> bytes:
        """Hits with these times and any other bytes."""
        raw = rng.integers(0, 256, (len(ticks), self.size), np.uint8)
        times = np.ascontiguousarray(ticks.astype(self.time_type)).view(np.uint8).reshape(-1, self.field)
        raw[:, self.offset : self.offset + self.field] = times
        return raw.tobytes()

    def ticks(self, hit: bytes) -> int:
        return int.from_bytes(hit[self.offset : self.offset + self.field], self.order)


LAYOUTS = [
    Layout(time_type, unit, size, offset, length)
    for time_type, length in (("<u2", 70_000), (">u2", 70_000), ("<u4", 100_003), (">u4", 100_003))
    for unit, size, offset in ((Fraction(1), 4, 0), (Fraction(5, 2), 9, 3), (Fraction(8, 5), 70, 66))
]


def searched(
    layout: Layout, fragments: Fragments, begin: int, end: int, clock: int
) -> tuple[list[tuple[int, int, bytes]], int, int]:
    """The hits of a window (ns in the slice) as `rows_of` gives them, hits outside, and bytes that are no whole hit.

    clock: ns that are added to the times of all sources.
    """
    length, size = layout.length, layout.size
    origin = (SLICE * (N_EVENTS - BEFORE - BEHIND) - BEFORE) * length
    rows, outside, left = [], 0, 0
    for event in range(begin // length, (end - 1) // length + 1):
        for source in sorted(fragments):
            for of in (event - 1, event, event + 1) if clock else (event,):
                raw = fragments[source][of] or b""
                left += (of == event) * (len(raw) % size)
                for at in range(0, len(raw) // size * size, size):
                    hit = raw[at : at + size]
                    ticks = layout.ticks(hit)
                    sent = ticks * layout.unit.numerator // layout.unit.denominator
                    time = of * length + sent + clock
                    if sent >= length:
                        outside += of == event
                    elif max(begin, event * length) <= time < min(end, (event + 1) * length):
                        ticks += int(((of - event) * length + clock) / layout.unit)
                        if ticks < 1 << 8 * layout.field:
                            moved = ticks.to_bytes(layout.field, layout.order)
                            hit = hit[: layout.offset] + moved + hit[layout.offset + layout.field :]
                            rows.append((origin + time, source, hit))
                        else:
                            outside += of == event
    return rows, outside, left


@pytest.mark.parametrize(
    ("layout", "direction"),
    [(each, sign) for each in LAYOUTS for sign in (0, 1, -1) if sign == 0 or each.largest_clock],
    ids=str,
)
def test_records_have_the_bytes_and_faults_of_a_search_hit_by_hit(layout: Layout, direction: int) -> None:
    clock = direction * layout.largest_clock
    rng = np.random.default_rng(5)
    length = layout.length
    most = min(int(1.02 * length / layout.unit), (1 << 8 * layout.field) - 1)
    n_outside = n_left = n_hits = 0
    for _ in range(4):
        fragments: Fragments = {}
        for source in (900, 5, 77):
            fragments[source] = []
            for _event in range(N_EVENTS):
                # Hits in order, and out of order: then others divide those of a window.
                ticks = rng.integers(0, most, int(rng.integers(0, 12)))
                ticks = np.sort(ticks) if rng.integers(0, 2) else ticks
                tail = 0 if clock else int(rng.integers(0, 2)) * (layout.size - 1)
                fragments[source].append(layout.hits(ticks, rng) + b"\xff" * tail)
        starts, sizes = rng.integers(-length // 2, length // 2, 3), rng.integers(1, length, 3)
        given = [(int(e), int(a), int(a + n), 1) for e, a, n in zip((2, 5, 8), starts, sizes, strict=True)]
        offsets = dict.fromkeys(fragments, clock) if clock else {}
        found, encoded = encode(fragments, given, times=TimeWindows(layout.streaming, WINDOWS, (NO_DATA,), offsets))
        expected = [searched(layout, fragments, e * length + a, e * length + b, clock) for e, a, b, _ in given]
        for window, (rows, outside, left) in zip(found, expected, strict=True):
            assert rows_of(window) == rows
            assert (window.status == WindowStatus.DAMAGED) == (outside + left > 0)
        faults = (sum(outside for _, outside, _ in expected), sum(left for _, _, left in expected))
        assert (encoded.hits_outside, encoded.bytes_left) == faults
        n_hits, n_outside, n_left = n_hits + encoded.hits, n_outside + faults[0], n_left + faults[1]
        for record in iter_records(encoded.data):
            at = 0
            for bank in record.banks():
                end = at + 8 + len(bank.payload)
                at = end + -end % 4
                assert not any(record.body[end:at])
    assert n_hits > 50
    # Times of 16 bits and 1 ns end before the sub-slice: only a late clock moves some out of their field.
    assert (n_outside > 0) == (most < (1 << 8 * layout.field) - 1 or direction > 0)
    assert (n_left > 0) == (not clock)
