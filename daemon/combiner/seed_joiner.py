"""Joins the seeds of all nodes to windows (no I/O, no clock).

A seed is confirmed if at least `min_nodes` nodes, its own included, have a seed that lies within `distance_ns` of it.
It is also confirmed if one of its lines is among `lines`. The windows of a slice are the confirmed seeds that belong to
it. So a window depends on the seeds around it only, never on the order of messages.

A slice is decided as soon as `nodes` nodes have reported each time that may matter for its seeds: its neighbours, as
far as margins and the distance reach. Otherwise it is decided `wait_ns` after its first report, with the seeds that are
there. A decided slice is remembered, so that a slice that is sent again gets the same windows.

All loops over seeds are in NumPy: Python sees slices and nodes.
"""

import heapq
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.common.vocabulary import CombinedSlice
from hltnode.protocol.transport.seed_messages import (
    MAX_SEED_BYTES,
    ExternalWindow,
    Keep,
    KeepReply,
    SliceSeeds,
    SliceWindows,
    row_type,
    rows_of,
)

Rows = NDArray[np.void]

MAX_RUNS = 4
"""Runs whose slices are remembered; of a further one, the oldest is forgotten."""
MAX_NODES = 256
MAX_EXTERNAL = 1024
"""External windows of all runs; further ones are refused."""
BYTES_OF_SLICE, BYTES_OF_REPORT = 800, 600
"""What a slice, and the report of a node without seeds, take in addition to seeds and windows (tracemalloc)."""


class SeedError(ValueError):
    """Seeds that contradict those of other nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRules:
    """How seeds are joined.

    nodes: number of nodes that report each time. min_nodes, distance_ns, lines: which seeds are confirmed. wait_ns:
    time from the first report of a slice to its decision without the others. keep_incomplete: every seed of a slice is
    confirmed that was decided without the others, also for lack of memory. max_bytes: memory of seeds and windows.
    """

    nodes: int = 1
    min_nodes: int = 1
    distance_ns: int = 0
    lines: int = 0
    wait_ns: int = 1_000_000_000
    keep_incomplete: bool = True
    max_bytes: int = 256 << 20


@dataclass(slots=True)
class _Slice:
    """One slice. `seeds`: rows of each node that reported it. `windows`: None until it is decided."""

    number: int
    since_ns: int
    seeds: dict[str, Rows] = field(default_factory=dict)
    windows: SliceWindows | None = None

    @property
    def nbytes(self) -> int:
        of_windows = 0 if self.windows is None else len(self.windows.windows)
        return BYTES_OF_SLICE + of_windows + sum(BYTES_OF_REPORT + rows.nbytes for rows in self.seeds.values())


@dataclass(slots=True)
class _Run:
    """The slices of a run in the order of their first reports. `below`: forgotten slices, which count as reported."""

    core_ns: int
    before_ns: int
    behind_ns: int
    description: bytes
    newest_ns: int = 0
    """End of the latest slice that a node reported."""
    slices: OrderedDict[int, _Slice] = field(default_factory=OrderedDict)
    open: OrderedDict[int, None] = field(default_factory=OrderedDict)
    numbers: list[int] = field(default_factory=list)
    """A heap with the numbers of `slices`, and of some that are forgotten."""
    below: int = 0
    highest_forgotten: int = -1

    def add(self, number: int, now_ns: int) -> "_Slice":
        """A new slice, which is open."""
        self.slices[number] = of = _Slice(number, now_ns)
        self.open[number] = None
        heapq.heappush(self.numbers, number)
        if len(self.numbers) > 2 * len(self.slices) + 64:
            self.numbers = sorted(self.slices)
        return of

    def forget(self, number: int) -> None:
        """Forget a slice. `below` follows, but not above a slice that is there: one that is far ahead moves nothing."""
        del self.slices[number]
        self.highest_forgotten = max(self.highest_forgotten, number)
        while self.numbers and self.numbers[0] not in self.slices:
            heapq.heappop(self.numbers)
        first = self.numbers[0] if self.numbers else 0
        self.below = max(self.below, min(self.highest_forgotten + 1, first))


@dataclass(slots=True)
class CombinerCounts:
    """What the combiner counts: slices by their decision, seeds and windows, reports that came again."""

    slices: dict[CombinedSlice, int] = field(default_factory=lambda: dict.fromkeys(CombinedSlice, 0))
    reports: int = 0
    repeated: int = 0
    seeds: int = 0
    windows: int = 0
    whole: int = 0
    external: int = 0
    forgotten: int = 0


Decision = tuple[SliceWindows, tuple[str, ...]]
"""The windows of a slice, and the nodes that get them."""


class SeedJoiner:
    """The state machine of a combiner."""

    def __init__(self, rules: JoinRules) -> None:
        self.rules = rules
        self.counts = CombinerCounts()
        self.nbytes = 0
        self.external: list[ExternalWindow] = []
        self._runs: OrderedDict[int, _Run] = OrderedDict()
        self._last_run = 0

    @property
    def open_slices(self) -> int:
        """Number of slices that wait for reports."""
        return sum(len(run.open) for run in list(self._runs.values()))

    def report(self, now_ns: int, node: str, message: SliceSeeds) -> list[Decision]:
        """The seeds of a node for a slice; returns the slices that are decided with them.

        Raises SeedError for a slice that is cut in another way than those of other nodes.
        """
        run = self._run_of(message)
        self.counts.reports += 1
        run.newest_ns = max(run.newest_ns, (message.slice + 1) * message.core_ns)
        of = run.slices.get(message.slice)
        if of is not None and of.windows is not None:
            self.counts.repeated += 1
            return [(of.windows, (node,))]
        rows = rows_of(message.description, message.seeds)
        self.counts.seeds += len(rows)
        self.counts.whole += message.whole
        if of is None:
            of = run.add(message.slice, now_ns)
            self.nbytes += BYTES_OF_SLICE
        before = of.seeds.get(node)
        if before is not None:
            self.counts.repeated += 1
            self.nbytes -= before.nbytes
        elif len(of.seeds) >= MAX_NODES:
            raise SeedError(f"slice {message.slice}: reported by more than {MAX_NODES} nodes")
        else:
            self.nbytes += BYTES_OF_REPORT
        of.seeds[node] = rows
        self.nbytes += rows.nbytes
        decided = [self._decide(message.run, run, each, CombinedSlice.COMPLETE) for each in self._ready(run, of)]
        return decided + self._make_room()

    def tick(self, now_ns: int) -> list[Decision]:
        """Decide the slices whose other reports have not come in time."""
        decided = []
        for number, run in self._runs.items():
            while run.open:
                oldest = run.slices[next(iter(run.open))]
                if now_ns - oldest.since_ns < self.rules.wait_ns:
                    break
                decided.append(self._decide(number, run, oldest, CombinedSlice.INCOMPLETE))
        return decided

    def keep(self, message: Keep, held_from: Mapping[int, Sequence[int]]) -> tuple[KeepReply, ExternalWindow | None]:
        """An external window: the answer, and the message for all nodes.

        held_from: for each run the start of the oldest slice that each of its nodes holds, in ns.
        """
        number = message.run or self._last_run

        def refused(text: str) -> tuple[KeepReply, None]:
            return KeepReply(message.request, False, number, text), None

        if number == 0:
            return refused("no node has reported a run: expected a run number")
        window = ExternalWindow(number, message.start_ns, message.end_ns)
        if window in self.external:
            return KeepReply(message.request, True, number, "known already"), window
        starts = held_from.get(number, ())
        if starts and window.end_ns <= min(starts):
            return refused(
                f"over: the window ends at {window.end_ns} ns, and no node holds anything before {min(starts)} ns "
                "(combiner.hold_ms)"
            )
        if len(self.external) >= MAX_EXTERNAL:
            return refused(f"{MAX_EXTERNAL} external windows are kept already")
        overlapping = sum(
            each.run == number and each.start_ns < window.end_ns and window.start_ns < each.end_ns
            for each in self.external
        )
        self.external.append(window)
        self.counts.external += 1
        text = self._what_is_kept(number, window, starts)
        if overlapping:
            text += f"; overlaps {overlapping} earlier window{'s' * (overlapping > 1)}: hits are kept once"
        return KeepReply(message.request, True, number, text), window

    def _what_is_kept(self, number: int, window: ExternalWindow, starts: Sequence[int]) -> str:
        run = self._runs.get(number)
        if run is None:
            return "no node has reported this run yet: kept when it comes"
        if window.start_ns >= run.newest_ns:
            return f"in the future: the nodes are at {run.newest_ns} ns; kept when it comes"
        if late := sum(start > window.start_ns for start in starts):
            return (
                f"its first part is over: {late} of {len(starts)} nodes hold nothing before {max(starts)} ns "
                "(combiner.hold_ms); kept from there on"
            )
        return "kept by all nodes that hold it"

    def _run_of(self, message: SliceSeeds) -> _Run:
        run = self._runs.get(message.run)
        if run is None:
            run = _Run(message.core_ns, message.before_ns, message.behind_ns, message.description)
            self._runs[message.run] = run
            self._last_run = message.run
            if len(self._runs) > MAX_RUNS:
                _, gone = self._runs.popitem(last=False)
                self.counts.forgotten += len(gone.slices)
                self.nbytes -= sum(each.nbytes for each in gone.slices.values())
        expected = (run.core_ns, run.before_ns, run.behind_ns, run.description)
        if (message.core_ns, message.before_ns, message.behind_ns, message.description) != expected:
            raise SeedError(
                f"run {message.run}: slices of {message.core_ns} ns with margins of {message.before_ns} and "
                f"{message.behind_ns} ns, but other nodes have {run.core_ns}, {run.before_ns} and {run.behind_ns} ns, "
                "or another list of windows"
            )
        return run

    def _ready(self, run: _Run, changed: _Slice) -> list[_Slice]:
        """The open slices around a changed one whose times are all reported."""
        reach = 2 + (self.rules.distance_ns + 2 * (1 + run.before_ns + run.behind_ns)) // run.core_ns
        if 2 * reach < len(run.open):
            numbers: Iterator[int] = iter(range(changed.number - reach, changed.number + reach + 1))
        else:
            numbers = iter(sorted(run.open))
        return [run.slices[each] for each in numbers if each in run.open and self._is_reported(run, run.slices[each])]

    def _is_reported(self, run: _Run, of: _Slice) -> bool:
        """Whether all seeds are there that may confirm those of a slice.

        Seeds of a slice reach up to 1 ns behind its margins, and so do those of others. Seeds that touch are near.
        """
        if of.number < run.below:
            return False
        begin = of.number * run.core_ns
        first, last = begin, begin + run.core_ns
        for rows in of.seeds.values():
            if len(rows):
                distance = self.rules.distance_ns
                first = min(first, int(rows["start_ns"].min()) - distance - run.behind_ns - 2)
                last = max(last, int(rows["end_ns"].max()) + distance + run.before_ns + 2)
        if self.rules.min_nodes <= 1:
            # Nothing that another slice has can change the windows.
            first, last = begin, begin + run.core_ns
        numbers = range(max(first // run.core_ns, run.below, 0), -(-last // run.core_ns))
        return all(each in run.slices and self._has_all(run.slices[each]) for each in numbers)

    def _has_all(self, of: _Slice) -> bool:
        return of.windows is not None or len(of.seeds) >= self.rules.nodes

    def _decide(self, number: int, run: _Run, of: _Slice, how: CombinedSlice) -> Decision:
        found = self._windows(run, of, how)
        dtype = row_type(run.description)
        if len(found) * dtype.itemsize > MAX_SEED_BYTES:
            self.counts.whole += 1
            begin = of.number * run.core_ns
            whole = np.zeros(1, dtype)
            whole["start_ns"], whole["end_ns"] = begin, begin + run.core_ns + run.behind_ns
            whole["lines"] = np.bitwise_or.reduce(found["lines"])
            whole["sub_slice"] = found["sub_slice"].min()
            found = whole
        self.counts.slices[how] += 1
        self.counts.windows += len(found)
        of.windows = SliceWindows(number, of.number, how is CombinedSlice.COMPLETE, run.description, found.tobytes())
        self.nbytes += len(of.windows.windows)
        del run.open[of.number]
        return of.windows, tuple(of.seeds)

    def _windows(self, run: _Run, of: _Slice, how: CombinedSlice) -> Rows:
        """The confirmed seeds of a slice, in the order of sub-slices."""
        rules = self.rules
        nodes = sorted(of.seeds)
        rows = np.concatenate([of.seeds[node] for node in nodes]) if nodes else np.zeros(0, row_type(run.description))
        if not len(rows) or rules.min_nodes <= 1 or (how is not CombinedSlice.COMPLETE and rules.keep_incomplete):
            kept = rows
        else:
            is_confirmed = (rows["lines"] & np.uint32(rules.lines)) != 0
            is_confirmed |= self._nodes_near(run, rows) >= rules.min_nodes
            kept = rows[is_confirmed]
        return kept[np.argsort(kept["sub_slice"], kind="stable")]

    def _nodes_near(self, run: _Run, rows: Rows) -> NDArray[np.int64]:
        """The number of nodes with a seed within the distance of each seed, i64[rows]."""
        distance, reach = self.rules.distance_ns, 2 + run.before_ns + run.behind_ns
        low, high = int(rows["start_ns"].min()) - distance, int(rows["end_ns"].max()) + distance
        first, end = (low - reach) // run.core_ns, -(-(high + reach) // run.core_ns)
        numbers = range(first, end)
        near = (
            [each for number, each in run.slices.items() if number in numbers]
            if end - first > len(run.slices)
            else [run.slices[number] for number in numbers if number in run.slices]
        )
        around: dict[str, list[Rows]] = {}
        for each in near:
            for node, seeds in each.seeds.items():
                around.setdefault(node, []).append(seeds)
        found = np.zeros(len(rows), np.int64)
        for parts in around.values():
            starts = np.concatenate([part["start_ns"] for part in parts])
            if not len(starts):
                continue
            order = np.argsort(starts, kind="stable")
            ends = np.maximum.accumulate(np.concatenate([part["end_ns"] for part in parts])[order])
            # The last seed of the node that begins early enough, and the latest end of all seeds up to it.
            last = np.searchsorted(starts[order], rows["end_ns"] + distance, side="right") - 1
            found += (last >= 0) & (ends[last] >= rows["start_ns"] - distance)
        return found

    def _make_room(self) -> list[Decision]:
        """Forget the oldest slices above the limit of memory; an open one is decided before."""
        decided = []
        while self.nbytes > self.rules.max_bytes:
            number, run = next((each for each in self._runs.items() if each[1].slices), (0, None))
            if run is None:
                break
            oldest = next(iter(run.slices.values()))
            if oldest.windows is None:
                decided.append(self._decide(number, run, oldest, CombinedSlice.NO_ROOM))
            run.forget(oldest.number)
            self.nbytes -= oldest.nbytes
            self.counts.forgotten += 1
        return decided
