"""A stream of hits for the test chain `stream`: as MDF files of time slices, and its windows by brute force."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.raw_data.mdf import encode_record, iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from hltnode.protocol.raw_data.time_windows import TimeWindow, decode_window, join_windows
from tests.daemon.fakes import RUN

LENGTH, BEFORE, BEHIND = 200, 1, 2
"""Length of a sub-slice in ns and margins, as the chain declares them."""
N_SUB_SLICES = 60
Hit = tuple[int, int, int]
"""Time in ns since the start of the run, source id, channel."""


@dataclass(frozen=True, slots=True)
class Stream:
    """All hits of a run. times: i64[n] in ns, ascending. sources: u16[n]. channels: u16[n], a number of each hit."""

    times: NDArray[np.int64]
    sources: NDArray[np.uint16]
    channels: NDArray[np.uint16]

    def hits(self, begin: int = 0, end: int = 1 << 62) -> set[Hit]:
        """The hits from `begin` to `end`."""
        chosen = (self.times >= begin) & (self.times < end)
        rows = zip(self.times[chosen], self.sources[chosen], self.channels[chosen], strict=True)
        return {(int(time), int(source), int(channel)) for time, source, channel in rows}

    def windows(self) -> list[tuple[int, int, int, int]]:
        """Start, end, lines and number of hits of each coincidence: three hits in 25 ns."""
        found = self.times[None, :] - self.times[:, None]
        n = ((found >= 0) & (found < 25)).sum(axis=1).tolist()
        rows = zip(self.times.tolist(), n, strict=True)
        return sorted((max(0, time - 100), time + 150, 3 if of > 3 else 1, of) for time, of in rows if of >= 3)

    def merged(self) -> list[tuple[int, int]]:
        """Start and end of the windows, merged where they overlap."""
        joined: list[tuple[int, int]] = []
        for start, end, *_ in self.windows():
            if joined and start < joined[-1][1]:
                joined[-1] = joined[-1][0], max(end, joined[-1][1])
            else:
                joined.append((start, end))
        return joined


def make_stream(sources: tuple[int, ...], seed: int = 5) -> Stream:
    """Hits of 12 us: a few at random, coincidences at borders of sub-slices and elsewhere, and a burst of 2 us."""
    rng = np.random.default_rng(seed)
    total = LENGTH * N_SUB_SLICES
    centres = np.concatenate([np.arange(7, N_SUB_SLICES, 7) * LENGTH - 8, rng.integers(0, total, 8)])
    clusters = (centres[:, None] + rng.integers(0, 20, (len(centres), 4))).ravel()
    times = np.concatenate([rng.integers(0, total, 40), clusters, np.arange(4300, 6300, 12), [0, 0, 0, total - 1]])
    times = np.sort(times[times < total]).astype(np.int64)
    channels = np.arange(len(times), dtype=np.uint16)
    return Stream(times, np.array(sources, np.uint16)[rng.integers(0, len(sources), len(times))], channels)


def write_slices(path: Path, chain: ModuleType, stream: Stream, core: int) -> int:
    """Write a run cut into slices of `core` sub-slices as events; returns the number of events of a slice."""
    n_slices = -(-N_SUB_SLICES // core)
    with path.open("wb") as file:
        for number in range(n_slices):
            for sub_slice in range(number * core - BEFORE, (number + 1) * core + BEHIND):
                inside = 0 <= sub_slice < n_slices * core
                banks = [bank_of(chain, stream, source, sub_slice) for source in chain.SOURCES] if inside else []
                file.write(encode_record(encode_banks(banks), run=RUN, checksum=False))
    return BEFORE + core + BEHIND


def bank_of(chain: ModuleType, stream: Stream, source: int, sub_slice: int) -> RawBank:
    """The hits of a source in a sub-slice."""
    start = sub_slice * LENGTH
    chosen = (stream.times >= start) & (stream.times < start + LENGTH) & (stream.sources == source)
    hits = np.zeros(int(chosen.sum()), chain.HIT)
    hits["channel"], hits["time"] = stream.channels[chosen], stream.times[chosen] - start
    return RawBank(chain.HITS, 1, source, memoryview(hits.tobytes()))


def windows_in(paths: list[Path]) -> list[TimeWindow]:
    """The records of windows in files."""
    found = [decode_window(record.banks()) for path in paths for record in iter_records(path.read_bytes())]
    return [window for window in found if window is not None]


def hits_of(window: TimeWindow) -> list[Hit]:
    """The hits of a record."""
    channels = window.hits[:, :2].copy().view("<u2")[:, 0]
    rows = zip(window.times.tolist(), window.sources.tolist(), channels.tolist(), strict=True)
    return [(time, source, channel) for time, source, channel in rows]


def check_windows(records: list[TimeWindow], stream: Stream) -> None:
    """Records hold each hit of each window once when those of neighbouring slices are joined, and no other hit."""
    assert len({record.id for record in records}) == len(records)
    assert all(set(hits_of(record)) == stream.hits(record.start_ns, record.end_ns) for record in records)
    joined = join_windows(records)
    assert [(window.start_ns, window.end_ns) for window in joined] == stream.merged()
    for window in joined:
        hits = hits_of(window)
        assert len(set(hits)) == len(hits)
        assert set(hits) == stream.hits(window.start_ns, window.end_ns)
