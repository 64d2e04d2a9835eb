"""A node whose GPU faults: it ends with an error and acknowledges nothing that the GPU had. The next session does.

The engine is the real one, on a simulated GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import zmq.asyncio

from hltnode.client.feeder import Feeder
from hltnode.client.mep import FeedMep
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.framework.engine import Engine
from hltnode.protocol.raw_data.mdf import iter_records
from tests.daemon.fakes import eventually, make_config, make_feeder, node_of_engine, synthetic_meps
from tests.processing.framework.cupy_stand_in import install
from tests.processing.framework.simulated_gpu import SimulatedGpu

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

BEFORE, EVENTS = 5, 8
SIZE = 500
"""Most bytes of a bank. Random banks of this size nearly always have the ten hits that the line asks for."""


@pytest.fixture
async def context() -> AsyncIterator[zmq.asyncio.Context]:
    context = zmq.asyncio.Context()
    yield context
    context.destroy(linger=0)


class Sessions:
    """Sessions of one node, each with a GPU of its own."""

    def __init__(self, tiny: ModuleType, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CACHE_DIRECTORY", str(directory / "cache"))
        self._tiny = tiny
        self._directory = directory
        self._monkeypatch = monkeypatch
        self._network: dict[str, str] = {}
        self.gpu = SimulatedGpu(tiny.TINY.kernels)

    def begin(self) -> tuple[NodeConfig, Engine]:
        """Configuration and engine of the next session, on the ports of the first."""
        self.gpu = SimulatedGpu(self._tiny.TINY.kernels)
        install(self._monkeypatch, self.gpu)
        config = make_config(self._directory, network=self._network)
        trigger = self._tiny.TINY.load_trigger(None)
        backend = CudaBackend(self._tiny.TINY.kernels, block_size=1)
        # The emulator runs each block of a grid, also those of rows that a batch does not have.
        limits = replace(batch_limits(config), rows=256)
        return config, self._tiny.TINY.create_engine(backend, {}, trigger, limits)

    def keep_ports(self, node: Node) -> None:
        """The next session binds them again."""
        self._network = {
            "data": node.receiver.endpoint,
            "control": node.control.endpoint,
            "decisions": node.publisher.endpoint,
        }

    def meps(self, n: int, *, first: int = 0) -> list[FeedMep]:
        return list(synthetic_meps(n, sources=self._tiny.SOURCES, events=EVENTS, first=first, size=SIZE))

    def written(self) -> Counter[int]:
        """How often the first 1000 events are in the files, by their numbers."""
        return Counter(
            int.from_bytes(bytes(next(iter(record.banks())).payload)[:8], "little")
            for path in (self._directory / "out").glob("*.mdf")
            for record in iter_records(path.read_bytes())
        )


@pytest.fixture
def sessions(tiny: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sessions:
    return Sessions(tiny, tmp_path, monkeypatch)


async def lose_the_device(node: Node, sessions: Sessions, feeder: Feeder, meps: list[FeedMep]) -> None:
    """Let the GPU fault on some MEPs."""
    acknowledged = node.counters.meps_acknowledged
    sessions.gpu.fault("tiny_count_hits")
    for mep in meps:
        await feeder.offer(mep)
    await eventually(lambda: node.state == "error")
    assert node.counters.meps_acknowledged == acknowledged
    assert node.counters.backend_errors == 1


async def test_the_next_session_computes_the_batches_of_a_lost_device(
    tiny: ModuleType, context: zmq.asyncio.Context, sessions: Sessions
) -> None:
    async with node_of_engine(*sessions.begin(), "cuda") as first:
        sessions.keep_ports(first)
        feeder = make_feeder(context, first, sources=tiny.SOURCES, events=EVENTS)
        await feeder.__aenter__()
        for mep in sessions.meps(BEFORE):
            await feeder.offer(mep)
        await eventually(lambda: first.counters.meps_acknowledged == BEFORE)
        await lose_the_device(first, sessions, feeder, sessions.meps(3, first=BEFORE))
    assert feeder.window.unacknowledged == 3
    async with node_of_engine(*sessions.begin(), "cuda") as second:
        report = await feed_meps(iter(sessions.meps(10, first=BEFORE + 3)), [feeder])
        await feeder.__aexit__()
    assert report.complete
    assert second.counters.meps_not_processed == 0
    assert set(sessions.written().values()) == {1}
    assert len(sessions.written()) == EVENTS * (BEFORE + 3 + 10)


async def test_a_mep_that_loses_two_devices_is_skipped(
    tiny: ModuleType, context: zmq.asyncio.Context, sessions: Sessions
) -> None:
    async with node_of_engine(*sessions.begin(), "cuda") as first:
        sessions.keep_ports(first)
        feeder = make_feeder(context, first, sources=tiny.SOURCES, events=EVENTS)
        await feeder.__aenter__()
        await lose_the_device(first, sessions, feeder, sessions.meps(1))
    async with node_of_engine(*sessions.begin(), "cuda") as second:
        await lose_the_device(second, sessions, feeder, [])
    async with node_of_engine(*sessions.begin(), "cuda") as third:
        report = await feed_meps(iter(sessions.meps(3, first=1)), [feeder])
        await feeder.__aexit__()
    assert report.complete
    assert third.counters.meps_not_processed == 1
    assert len(sessions.written()) == EVENTS * 4
