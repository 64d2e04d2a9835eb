"""A stream in time slices through a node over TCP: the windows that it publishes, and the records that it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import zmq
import zmq.asyncio
from numpy.typing import NDArray

from hltnode.daemon.commands.node.streaming_options import streaming_constants
from hltnode.daemon.common.vocabulary import StreamTime, WindowCount, WindowFault
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.node.sizing import batch_limits, names_of_lists
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.raw_data.time_windows import TimeWindow, join_windows
from hltnode.protocol.transport.decisions import SliceDecision, decode_decision
from tests.daemon.fakes import RUN, eventually, make_feeder, node_of_engine
from tests.daemon.node.streamed_hits import windows_in


@dataclass(frozen=True, slots=True)
class Kept:
    """What a node publishes, writes and counts of a run.

    published: the values of each window, by their names. records: in the order of files. moved: sub-slices with hits
    that clock offsets move. kept_ns: the time that the records cover.
    """

    published: dict[str, NDArray[np.int64] | NDArray[np.float64]]
    records: list[TimeWindow]
    counts: dict[WindowCount, int]
    faults: dict[WindowFault, int]
    moved: int
    kept_ns: int


async def keep_windows(chain: TriggerChain, config: NodeConfig, slices: Sequence[bytes], n_events: int) -> Kept:
    """Send time slices, MEPs of `n_events` sub-slices with their margins, to a node of a chain with its usual lines."""
    out = Path(config.output.directory)
    path = out.parent / "slices.mep"
    path.write_bytes(b"".join(slices))
    meps = meps_of_files([path], chain.readout, Packing(events_per_mep=n_events, max_fragment_bytes=1 << 20, run=RUN))
    trigger = chain.load_trigger(None)
    constants = {**chain.load_geometry(None), **streaming_constants(config, None, chain, trigger)}
    backend = create_backend("cpu", chain.kernels, threads=1)
    engine = chain.create_engine(
        *(backend, constants, trigger, batch_limits(config)), with_lists=names_of_lists(config)
    )
    with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as subscriber:
        async with (
            node_of_engine(config, engine, backend.name) as node,
            make_feeder(context, node, sources=meps.sources, events=n_events, chain=chain.name) as feeder,
        ):
            subscriber.subscribe(b"")
            subscriber.connect(node.publisher.endpoint)
            await eventually(lambda: node.counters.decisions.subscribers > 0)
            report = await feed_meps(meps, [feeder])
            decisions = [decode_decision(await subscriber.recv()) for _ in slices]
            await eventually(lambda: node.counters.meps_acknowledged == len(slices))
            counters = node.counters
            counts, faults = dict(counters.windows), dict(counters.window_faults)
            kept_ns, moved = counters.stream_ns[StreamTime.KEPT], counters.events_flagged.get("hit_moved", 0)
    assert report.complete
    records = windows_in(sorted(out.glob("*accepted*.mdf")))
    return Kept(_values_of(decisions), records, counts, faults, moved, kept_ns)


def _values_of(decisions: Sequence[object]) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    found = []
    for decision in decisions:
        assert isinstance(decision, SliceDecision)
        of_slice = decision.time_windows()
        assert of_slice is not None
        found.append(of_slice.values)
    values = {name: np.concatenate([each[name] for each in found]) for name in found[0]}
    order = np.argsort(values["start_ns"], kind="stable")
    return {name: _plain(each[order]) for name, each in values.items()}


def _plain(values: NDArray[Any]) -> NDArray[np.int64] | NDArray[np.float64]:
    return values.astype(np.float64) if values.dtype.kind == "f" else values.astype(np.int64)


def check_records(kept: Kept, windows: NDArray[np.int64], times: NDArray[np.int64], hits: NDArray[np.void]) -> None:
    """The records cover the windows i64[windows, 2 or more], by start, once; they have each hit in their time once.

    times, hits: those of the stream. Records of neighbouring slices must overlap somewhere.
    """
    records = kept.records
    assert len({record.id for record in records}) == len(records) == kept.counts[WindowCount.RECORDS]
    assert sum(record.n for record in records) == len(windows) == kept.counts[WindowCount.WINDOWS]
    assert kept.faults == dict.fromkeys(WindowFault, 0)
    assert kept.kept_ns == sum(record.end_ns - record.start_ns for record in records)
    for record in records:
        check_hits(record, times, hits)
    joined = join_windows(records)
    assert len(joined) < len(records), "no records of neighbouring slices overlap"
    for window in joined:
        check_hits(window, times, hits)
    assert all(one.end_ns <= other.start_ns for one, other in pairwise(joined))
    for start, end in windows[:, :2].tolist():
        assert sum(window.start_ns <= start and end <= window.end_ns for window in joined) == 1
    assert sum(window.end_ns - window.start_ns for window in joined) == covered(windows)


def check_hits(window: TimeWindow, times: NDArray[np.int64], hits: NDArray[np.void]) -> None:
    """The window has the hits of the stream in its time, each one once."""
    inside = (times >= window.start_ns) & (times < window.end_ns)
    found = _in_order(window.times, window.hits.copy().view(hits.dtype)[:, 0])
    np.testing.assert_array_equal(found, _in_order(times[inside], hits[inside]))


def _in_order(times: NDArray[np.int64], hits: NDArray[np.void]) -> NDArray[np.int64]:
    """Time since the start of the run and the other fields of hits, in ascending order."""
    assert hits.dtype.names is not None
    others = [hits[name] for name in hits.dtype.names if name != "time"]
    rows = np.column_stack([times, *others]).astype(np.int64)
    return rows[np.lexsort(rows.T[::-1])]


def covered(windows: NDArray[np.int64]) -> int:
    """ns in at least one window."""
    end = np.maximum.accumulate(windows[:, 1])
    before = np.concatenate([[0], end[:-1]])
    return int(np.maximum(windows[:, 1] - np.maximum(windows[:, 0], before), 0).sum())
