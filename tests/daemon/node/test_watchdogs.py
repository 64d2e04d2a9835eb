"""Faults that the node detects: a silent source, a loop that stands still, a back end that hangs."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import zmq.asyncio

from hltnode.client.mep import FeedMep
from hltnode.daemon.common.vocabulary import Stage
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.lhcb.chain import CHAIN, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.velo.decoding.cluster_limit import cluster_limit
from tests.daemon.fakes import (
    SOURCES,
    eventually,
    make_config,
    make_feeder,
    node_of_engine,
    running_node,
    synthetic_meps,
)
from tests.processing.lhcb.velo.dense_events import noise
from tests.protocol.packed_events import mfps_of_events

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]


@pytest.fixture
async def context() -> AsyncIterator[zmq.asyncio.Context]:
    context = zmq.asyncio.Context()
    yield context
    context.destroy(linger=0)


@pytest.fixture
def pings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """systemd watches the node; gives the number of watchdog datagrams since the last call."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "100000")
        monkeypatch.delenv("WATCHDOG_PID", raising=False)

        def received() -> int:
            n = 0
            while True:
                try:
                    n += systemd.recv(4096) == b"WATCHDOG=1"
                except BlockingIOError:
                    return n

        yield received


async def test_a_source_that_falls_silent_is_named_and_the_node_stays_ready(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    builder = {
        "min_feeders": 2,
        "max_feeders": 2,
        "mep_timeout_ms": 20,
        "feeder_timeout_ms": 500,
        "silent_source_ms": 300,
    }
    async with (
        running_node(make_config(tmp_path, builder=builder)) as (node, _),
        make_feeder(context, node, name="a", sources=SOURCES[:3]) as speaks,
        make_feeder(context, node, name="b", sources=SOURCES[3:]) as falls_silent,
    ):
        meps = iter(synthetic_meps(1000))
        for _ in range(3):
            mep = next(meps)
            for feeder in (speaks, falls_silent):
                await feeder.offer(mep)
        await eventually(lambda: speaks.window.unacknowledged == 0)
        assert node.status.full()["silent_sources"] == []
        while not node.status.full()["silent_sources"]:
            await speaks.offer(next(meps))
            await asyncio.sleep(0.01)
        assert node.status.full()["silent_sources"] == [SOURCES[3]]
        assert not node.health.problems(node.clock.now_ns)
        while node.status.full()["silent_sources"]:
            mep = next(meps)
            for feeder in (speaks, falls_silent):
                await feeder.offer(mep)
            await asyncio.sleep(0.01)
        assert node.status.full()["silent_sources"] == []


async def test_a_blocked_loop_is_counted_and_does_not_serve_the_watchdog(
    tmp_path: Path, context: zmq.asyncio.Context, pings: Callable[[], int]
) -> None:
    async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
        for _ in range(3):
            await eventually(pings)
        stalls = node.counters.loop_stalls
        time.sleep(0.6)
        assert pings() == 0
        await eventually(lambda: node.counters.loop_stalls > stalls)
        assert node.counters.loop_lag_max >= 0.5
        assert (await feed_meps(synthetic_meps(3), [feeder])).complete


async def test_a_back_end_that_hangs_ends_the_watchdog_datagrams_before_the_node_ends(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch, pings: Callable[[], int]
) -> None:
    monkeypatch.setattr("hltnode.daemon.monitoring.health.PIPELINE_STALL_NS", 1_000_000_000)
    monkeypatch.setattr("hltnode.daemon.node.node.STOP_SECONDS", 0.2)
    async with running_node(make_config(tmp_path)) as (node, engine), make_feeder(context, node) as feeder:
        engine.behaviour.hang.set()
        for mep in synthetic_meps(2):
            await feeder.offer(mep)
        await eventually(lambda: node.state == "error")
        assert pings() > 0
        await asyncio.sleep(0.3)
        assert pings() == 0
        assert feeder.window.unacknowledged == 2
        engine.behaviour.hang.clear()


@pytest.mark.timeout(300)
async def test_a_batch_of_the_densest_events_may_take_longer_than_a_hang_and_the_node_stays_healthy(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    stall_s, n_events = 0.5, 200
    monkeypatch.setattr("hltnode.daemon.monitoring.health.PIPELINE_STALL_NS", int(stall_s * 1e9))
    [densest] = (int(constant.value) for constant in cluster_limit.constants)
    events = [noise(densest, seed) for seed in range(4)] * (n_events // 4)
    mep = FeedMep.of_mfps(0, 0, mfps_of_events(events, 0, "retina"))
    nbytes = 1 << 25
    pipeline = {"slots": 2, "slot_bytes": 2 * nbytes, "max_events": n_events, "flush_deadline_us": 10_000}
    config = make_config(
        tmp_path,
        pipeline=pipeline,
        builder={"max_mep_bytes": nbytes, "mep_timeout_ms": 10_000},
        network={"max_frame_bytes": nbytes},
        node={"unhealthy_after_ms": int(stall_s * 1e3)},
    )
    engine = CHAIN.create_engine(
        create_backend("cpu", CHAIN.kernels, threads=1),
        geometry_constants(VeloGeometry.builtin()),
        CHAIN.load_trigger(None, "velo"),
        batch_limits(config),
    )
    async with (
        node_of_engine(config, engine, "cpu") as node,
        make_feeder(context, node, sources=tuple(mep.mfps), events=n_events, max_fragment_bytes=nbytes // 4) as feeder,
    ):
        feeding = asyncio.create_task(feed_meps([mep], [feeder]))
        while not feeding.done():
            assert node.health.health_problems(node.health.loop_tick_ns) == {}
            await asyncio.sleep(0.02)
        assert (await feeding).complete
        assert node.counters.stages[Stage.KERNELS].total > stall_s
        assert node.counters.objects["velo_clusters"] > 0.99 * densest * n_events
        assert node.state == "running"
