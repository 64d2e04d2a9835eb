"""A node of a streaming chain over TCP: windows and hits do not depend on the length of the slices."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
import zmq
import zmq.asyncio

from hltnode.daemon.common.vocabulary import WindowCount, WindowFault
from hltnode.daemon.node.sizing import batch_limits, names_of_lists
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.protocol.transport.decisions import SliceDecision, decode_decision
from tests.daemon.fakes import RUN, eventually, make_config, make_feeder, node_of_engine
from tests.daemon.node.streamed_hits import N_SUB_SLICES, check_windows, make_stream, windows_in, write_slices

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]


async def test_windows_and_hits_do_not_depend_on_the_length_of_slices(stream: ModuleType, tmp_path: Path) -> None:
    hits = make_stream(stream.SOURCES)
    expected = hits.windows()
    assert len(expected) > 150
    assert len(hits.merged()) > 8
    for core in (1, 7, N_SUB_SLICES):
        folder = tmp_path / str(core)
        folder.mkdir()
        n_events = write_slices(folder / "slices.mdf", stream, hits, core)
        n_slices = -(-N_SUB_SLICES // core)
        packing = Packing(events_per_mep=n_events, max_fragment_bytes=1 << 20, run=RUN)
        meps = meps_of_files([folder / "slices.mdf"], stream.STREAM.readout, packing)
        config = make_config(folder, trigger={"chain": "stream"})
        backend = create_backend("cpu", stream.STREAM.kernels, threads=2)
        engine = stream.STREAM.create_engine(
            backend, {}, stream.STREAM.load_trigger(None), batch_limits(config), with_lists=names_of_lists(config)
        )
        with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as subscriber:
            async with (
                node_of_engine(config, engine, backend.name) as node,
                make_feeder(context, node, sources=stream.SOURCES, events=n_events, chain="stream") as feeder,
            ):
                subscriber.subscribe(b"")
                subscriber.connect(node.publisher.endpoint)
                await eventually(lambda: node.counters.decisions.subscribers > 0)
                report = await feed_meps(meps, [feeder])
                decisions = [decode_decision(await subscriber.recv()) for _ in range(n_slices)]
                await eventually(lambda: node.counters.meps_acknowledged == n_slices)  # noqa: B023
                counts, faults = dict(node.counters.windows), dict(node.counters.window_faults)
        assert report.complete

        found = []
        for decision in decisions:
            assert isinstance(decision, SliceDecision)
            windows = decision.time_windows()
            assert windows is not None
            assert windows.offsets[1] == windows.offsets[0]
            columns = (windows.values[name].tolist() for name in ("start_ns", "end_ns", "lines", "n_hits"))
            found += list(zip(*columns, strict=True))
        assert sorted(found) == expected
        files = list((folder / "out").glob("*accepted*.mdf"))
        records = windows_in(files)
        check_windows(records, hits)
        assert faults == dict.fromkeys(WindowFault, 0)
        assert counts[WindowCount.SLICES] == n_slices
        assert counts[WindowCount.WINDOWS] == len(expected)
        assert counts[WindowCount.RECORDS] == len(records)
        assert counts[WindowCount.HITS] == sum(len(record.hits) for record in records)
        assert counts[WindowCount.BYTES] == sum(file.stat().st_size for file in files)
        assert counts[WindowCount.SLICE_BYTES] > 8 * len(hits.times)
