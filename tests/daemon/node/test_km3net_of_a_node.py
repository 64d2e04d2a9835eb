"""A node of the chain `km3net` over TCP: its windows and their hits are those of brute force over the stream."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import zmq
import zmq.asyncio
from numpy.typing import NDArray

from hltnode.daemon.commands.node.streaming_options import streaming_constants
from hltnode.daemon.common.vocabulary import StreamTime, WindowCount, WindowFault
from hltnode.daemon.node.sizing import batch_limits, names_of_lists
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.km3net.chain import CHAIN
from hltnode.processing.km3net.detector_constants import MARGIN_BEFORE, MARGIN_BEHIND, SUB_SLICE_NS
from hltnode.processing.km3net.geometry.pmt_table import km3net_tower
from hltnode.processing.km3net.hits.collections import WINDOW
from hltnode.processing.km3net.offline.simulation import sample as sample_module
from hltnode.processing.km3net.offline.simulation.sample import (
    TelescopeOptions,
    TelescopeSample,
    encode_slice,
    sub_slice_banks,
)
from hltnode.processing.km3net.offline.simulation.stream import source_of_pmts
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.km3net.hit_banks import HIT, KM3NET_SUBDETECTOR, hits_of
from hltnode.protocol.raw_data.source_id import source_id
from hltnode.protocol.raw_data.time_windows import TimeWindow, join_windows
from hltnode.protocol.transport.decisions import SliceDecision, decode_decision
from tests.daemon.fakes import RUN, eventually, make_config, make_feeder, node_of_engine
from tests.daemon.node.streamed_hits import windows_in
from tests.processing.km3net.trigger_oracle import expected

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

N, CORE = 30, 3
SAMPLE = TelescopeSample(
    SampleRequest(seed=1, run=RUN, file_format="mep"), TelescopeOptions(muon_rate=40_000.0, radius=40.0)
)


def found_by_brute_force(hits: list[NDArray[np.void]]) -> NDArray[np.int64]:
    """Start, end, lines and candidates of each window of a stream, i64[windows, 4]."""
    rows = [np.empty((0, 4), np.int64)]
    for number, here in enumerate(hits):
        behind = hits[number + 1] if number + 1 < N else here[:0]
        of = expected(km3net_tower(), here, behind).windows
        assert of.dtype == WINDOW.dtype
        origin = number * SUB_SLICE_NS
        times = (np.maximum(of[name].astype(np.int64) + origin, 0) for name in ("start_ns", "end_ns"))
        rows.append(np.column_stack([*times, of["lines"], of["candidates"]]).astype(np.int64))
    return np.concatenate(rows)


def in_order(times: NDArray[np.int64], hits: NDArray[np.void]) -> NDArray[np.int64]:
    """Time since the start of the run, PMT and charge of hits, i64[hits, 3], in ascending order."""
    rows = np.column_stack([times, hits["pmt"], hits["charge"]]).astype(np.int64)
    return rows[np.lexsort(rows.T[::-1])]


def check_hits(window: TimeWindow, times: NDArray[np.int64], hits: NDArray[np.void]) -> None:
    """The window has the hits of the stream in its time, each one once."""
    inside = (times >= window.start_ns) & (times < window.end_ns)
    found = in_order(window.times, window.hits.copy().view(HIT)[:, 0])
    np.testing.assert_array_equal(found, in_order(times[inside], hits[inside]))


def cut(hits: NDArray[np.void], times: NDArray[np.int64]) -> list[NDArray[np.void]]:
    """HIT[hits] of each sub-slice of a stream."""
    parts = []
    for number in range(N):
        inside = times // SUB_SLICE_NS == number
        part = hits[inside].copy()
        part["time"] = times[inside] - number * SUB_SLICE_NS
        parts.append(part)
    return parts


def with_clocks(
    offsets: dict[int, int], hits: NDArray[np.void], times: NDArray[np.int64], patch: pytest.MonkeyPatch
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Let the simulated sources send by clocks that need these offsets; returns the hits that they send at all."""
    made = sample_module._stream_of(SAMPLE)
    of_floors = np.array([offsets.get(source_id(KM3NET_SUBDETECTOR, floor), 0) for floor in range(14)])
    sent = times - of_floors[source_of_pmts(made.detector)[hits["pmt"]]]
    is_sent = (sent >= 0) & (sent < N * SUB_SLICE_NS)
    parts = cut(hits[is_sent], sent[is_sent])
    patch.setattr(sample_module, "sub_slice_banks", lambda _, number: sample_module.banks_of_hits(made, parts[number]))
    return hits[is_sent], times[is_sent]


@pytest.mark.parametrize("offsets", [{}, {2048: 75, 2051: -20_000, 2056: 20_999, 2061: -1}], ids=["right", "wrong"])
async def test_a_node_keeps_the_windows_and_hits_of_brute_force(
    offsets: dict[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = [hits_of(sub_slice_banks(SAMPLE, number)) for number in range(N)]
    hits = np.concatenate(true)
    times = np.concatenate([SUB_SLICE_NS * i + each["time"].astype(np.int64) for i, each in enumerate(true)])
    if offsets:
        hits, times = with_clocks(offsets, hits, times, monkeypatch)
    of_sub_slices = cut(hits, times)
    windows = found_by_brute_force(of_sub_slices)
    assert len(windows) > 10

    n_slices, n_events = N // CORE, MARGIN_BEFORE + CORE + MARGIN_BEHIND
    path = tmp_path / "slices.mep"
    path.write_bytes(b"".join(encode_slice(SAMPLE, number, CORE, N) for number in range(n_slices)))
    packing = Packing(events_per_mep=n_events, max_fragment_bytes=1 << 20, run=RUN)
    meps = meps_of_files([path], CHAIN.readout, packing)
    config = make_config(tmp_path, trigger={"chain": "km3net"}, streaming={"clock_offsets_ns": offsets})
    trigger = CHAIN.load_trigger(None)
    constants = {**CHAIN.load_geometry(None), **streaming_constants(config, None, CHAIN, trigger)}
    backend = create_backend("cpu", CHAIN.kernels, threads=1)
    engine = CHAIN.create_engine(
        *(backend, constants, trigger, batch_limits(config)),
        with_lists=names_of_lists(config),
    )
    with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as subscriber:
        async with (
            node_of_engine(config, engine, backend.name) as node,
            make_feeder(context, node, sources=meps.sources, events=n_events, chain="km3net") as feeder,
        ):
            subscriber.subscribe(b"")
            subscriber.connect(node.publisher.endpoint)
            await eventually(lambda: node.counters.decisions.subscribers > 0)
            report = await feed_meps(meps, [feeder])
            decisions = [decode_decision(await subscriber.recv()) for _ in range(n_slices)]
            await eventually(lambda: node.counters.meps_acknowledged == n_slices)
            counts, faults = dict(node.counters.windows), dict(node.counters.window_faults)
            kept_ns = node.counters.stream_ns[StreamTime.KEPT]
            assert (node.counters.events_flagged["hit_moved"] > 0) == bool(offsets)
    assert report.complete

    rows = []
    for decision in decisions:
        assert isinstance(decision, SliceDecision)
        of_slice = decision.time_windows()
        assert of_slice is not None
        values = [of_slice.values[name].astype(np.int64) for name in ("start_ns", "end_ns", "lines", "candidates")]
        rows.append(np.column_stack(values))
    published = np.concatenate(rows)
    np.testing.assert_array_equal(published[np.argsort(published[:, 0], kind="stable")], windows)

    records = windows_in(list((tmp_path / "out").glob("*accepted*.mdf")))
    assert len({record.id for record in records}) == len(records) == counts[WindowCount.RECORDS]
    assert sum(record.n for record in records) == len(windows) == counts[WindowCount.WINDOWS]
    assert faults == dict.fromkeys(WindowFault, 0)
    assert kept_ns == sum(record.end_ns - record.start_ns for record in records)
    for record in records:
        check_hits(record, times, hits)
    joined = join_windows(records)
    assert len(joined) < len(records), "no window crosses a border of slices"
    for window in joined:
        check_hits(window, times, hits)
    assert all(one.end_ns <= other.start_ns for one, other in pairwise(joined))
    assert sum(window.end_ns - window.start_ns for window in joined) == covered(windows)


def covered(windows: NDArray[np.int64]) -> int:
    """ns in at least one window."""
    end = np.maximum.accumulate(windows[:, 1])
    before = np.concatenate([[0], end[:-1]])
    return int(np.maximum(windows[:, 1] - np.maximum(windows[:, 0], before), 0).sum())
