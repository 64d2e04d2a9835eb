"""A node with decisions first: the order of decisions, files, journal and acknowledgements, deadlines and threads."""

import asyncio
import gc
import os
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from hltnode.client.feeder import Feeder
from hltnode.daemon.common.vocabulary import ComputePart, DecisionThread, EventStream, MepStage, ThreadSetting
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.daemon.storage.histogram_files import HistogramFiles
from hltnode.processing.framework.histograms import HistogramShape
from hltnode.protocol.transport.decisions import MepDecision, decode_decision
from hltnode.protocol.transport.run_control_messages import RunState
from tests.daemon.fakes import SOURCES, FakeEngine, eventually, make_config, make_feeder, running_node, synthetic_meps
from tests.daemon.pages import all_metrics

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

FIRST: Mapping[str, Mapping[str, object]] = {"output": {"streams": ["error"]}, "latency": {"decisions_first": True}}
MEPS = 10
MISSING = 7777


class Listener:
    """A subscriber of decisions."""

    def __init__(self, socket: zmq.asyncio.Socket) -> None:
        self._socket = socket

    async def take(self, n: int, seconds: float = 20.0) -> list[MepDecision]:
        """The next decisions. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            return [decode_decision(await self._socket.recv()) for _ in range(n)]


@asynccontextmanager
async def node_with_listener(
    directory: Path, **sections: Mapping[str, object]
) -> AsyncIterator[tuple[Node, FakeEngine, Feeder, Listener]]:
    with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as socket:
        async with (
            running_node(make_config(directory, **sections)) as (node, engine),
            make_feeder(context, node) as feeder,
        ):
            socket.subscribe(b"")
            socket.connect(node.publisher.endpoint)
            await eventually(lambda: node.counters.decisions.subscribers > 0)
            yield node, engine, feeder, Listener(socket)


class HeldJournal:
    """The journal of a node takes no batch until `release`."""

    def __init__(self, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
        self._open = threading.Event()
        store = node._path.store
        commit = store.commit

        def held(run: int, meps: tuple[tuple[int, int], ...]) -> None:
            assert self._open.wait(10.0)
            commit(run, meps)

        monkeypatch.setattr(store, "commit", held)
        self.release = self._open.set


async def test_decisions_leave_before_the_journal_and_are_acknowledged_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with node_with_listener(tmp_path, **FIRST) as (node, _, feeder, listener):
        journal = HeldJournal(node, monkeypatch)
        [mep] = synthetic_meps(1)
        await feeder.offer(mep)
        [decision] = await listener.take(1)
        assert (decision.mep, decision.seq, decision.accepted_events().sum()) == (0, 0, 4)
        assert feeder.window.unacknowledged == 1
        assert node.counters.meps_acknowledged == node.counters.batches == 0
        journal.release()
        await eventually(lambda: not feeder.window.unacknowledged)
        with pytest.raises(TimeoutError):
            await listener.take(1, seconds=0.2)
    counters = node.counters
    assert (counters.decisions.sent, counters.decisions_first, counters.meps_acknowledged) == (1, 1, 1)
    assert counters.events_not_stored == {EventStream.ACCEPTED: 4, EventStream.ERROR: 0}
    assert not list((tmp_path / "out").glob("*.mdf*"))


@pytest.mark.parametrize("sections", [{}, {"output": {"streams": ["error"]}}])
async def test_without_the_key_no_decision_leaves_before_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sections: Mapping[str, Mapping[str, object]]
) -> None:
    async with node_with_listener(tmp_path, **sections) as (node, _, feeder, listener):
        journal = HeldJournal(node, monkeypatch)
        await feeder.offer(next(synthetic_meps(1)))
        await eventually(lambda: node._path.gather._queue.empty() and node.builder_control.builder._gathered)
        with pytest.raises(TimeoutError):
            await listener.take(1, seconds=0.3)
        journal.release()
        [decision] = await listener.take(1)
        assert (decision.mep, decision.late) == (0, False)
    assert (node.counters.decisions_first, node.counters.decisions.sent) == (0, 1)


async def test_an_incomplete_mep_keeps_the_usual_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {**FIRST, "builder": {"expected_sources": [*SOURCES, MISSING]}}
    async with node_with_listener(tmp_path, **config) as (node, _, feeder, listener):
        journal = HeldJournal(node, monkeypatch)
        await feeder.offer(next(synthetic_meps(1)))
        await eventually(lambda: sum(node.counters.meps_closed.values()) == 1)
        with pytest.raises(TimeoutError):
            await listener.take(1, seconds=0.3)
        journal.release()
        [decision] = await listener.take(1)
        assert decision.missing_sources == (MISSING,)
    assert node.counters.decisions_first == 0


async def test_stages_until_the_decision_add_up_to_the_latency_and_writing_comes_after(tmp_path: Path) -> None:
    async with node_with_listener(tmp_path, **FIRST) as (node, engine, feeder, listener):
        engine.behaviour.seconds = 0.01
        assert (await feed_meps(synthetic_meps(MEPS), [feeder])).complete
        assert [each.mep for each in await listener.take(MEPS)] == list(range(MEPS))
        metrics = await asyncio.to_thread(all_metrics, node.http_port)
    sums = {each: metrics[f'hltnode_mep_stage_seconds_sum{{stage="{each}"}}'] for each in MepStage}
    assert min(sums.values()) >= 0.0
    total = metrics["hltnode_mep_latency_seconds_sum"]
    assert sum(sums.values()) - sums[MepStage.WRITE] == pytest.approx(total)
    assert sums[MepStage.WRITE] > 0.0
    parts = {each: metrics[f'hltnode_mep_compute_seconds_sum{{part="{each}"}}'] for each in ComputePart}
    assert sum(parts.values()) == pytest.approx(sums[MepStage.COMPUTE], rel=1e-3)
    assert (parts[ComputePart.H2D], parts[ComputePart.D2H]) == pytest.approx((MEPS * 1e-4, MEPS * 1e-4))
    assert parts[ComputePart.KERNELS] == pytest.approx(MEPS * 0.01)
    assert metrics["hltnode_decisions_sent_first_total"] == node.counters.decisions.sent == MEPS
    assert metrics['hltnode_events_not_stored_total{stream="accepted"}'] == 4 * MEPS


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("deadline_us", "late"), [(1, True), (60_000_000, False)])
async def test_late_decisions_are_sent_marked_and_counted_in_both_orders(
    tmp_path: Path, first: bool, deadline_us: int, late: bool
) -> None:
    latency = {"decisions_first": first, "deadline_us": deadline_us}
    async with node_with_listener(tmp_path, output={"streams": ["error"]}, latency=latency) as (node, _, feeder, of):
        assert (await feed_meps(synthetic_meps(MEPS), [feeder])).complete
        decisions = await of.take(MEPS)
        metrics = await asyncio.to_thread(all_metrics, node.http_port)
    assert [each.late for each in decisions] == [late] * MEPS
    assert metrics["hltnode_late_decisions_total"] == late * MEPS
    assert metrics["hltnode_decisions_sent_first_total"] == first * MEPS


async def test_threads_and_garbage_collector_of_a_node_follow_the_keys(tmp_path: Path) -> None:
    cpus, cpu = os.sched_getaffinity(0), max(os.sched_getaffinity(0))
    latency = {"cpus": [cpu], "quiet_collector": True, "serial": True}
    try:
        async with node_with_listener(tmp_path, latency=latency) as (node, _, feeder, listener):
            assert os.sched_getaffinity(0) == {cpu}
            thread = node._path.pipeline._thread.native_id
            assert thread is not None
            assert os.sched_getaffinity(thread) == {cpu}
            assert not gc.isenabled()
            assert node._path.pipeline._serial
            assert (await feed_meps(synthetic_meps(MEPS), [feeder])).complete
            assert [each.mep for each in await listener.take(MEPS)] == list(range(MEPS))
            await eventually(lambda: sum(node.counters.collections.values()) > 0)
            metrics = await asyncio.to_thread(all_metrics, node.http_port)
    finally:
        os.sched_setaffinity(0, cpus)
    assert gc.isenabled()
    for each in (DecisionThread.EVENT_LOOP, DecisionThread.COMPUTE):
        assert metrics[f'hltnode_thread_setting{{setting="{ThreadSetting.CPUS}",thread="{each}"}}'] == 1.0
    assert metrics['hltnode_garbage_collections_total{moment="idle"}'] > 0


@pytest.mark.parametrize("latency", [{}, {"deadline_us": 1000}])
async def test_a_node_with_a_deadline_loads_the_library_of_histograms_before_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, latency: Mapping[str, object]
) -> None:
    nodes: list[Node] = []
    states: list[RunState] = []
    shape = HistogramShape(name="radius", bins=2, low=0.0, high=1.0)
    monkeypatch.setattr(FakeEngine, "histograms", (shape,))
    monkeypatch.setattr(HistogramFiles, "load", lambda _: states.append(nodes[0].state))
    config = make_config(tmp_path, latency=latency, node={"autostart": False})
    async with running_node(config) as (node, _):
        nodes.append(node)
        await node.controller.configure_now()
        assert states == ([RunState.CONFIGURED] if latency else [])


async def test_threads_of_a_node_that_is_started_later_have_all_cpus(tmp_path: Path) -> None:
    cpus, cpu = os.sched_getaffinity(0), max(os.sched_getaffinity(0))
    config = make_config(tmp_path, node={"autostart": False}, latency={"cpus": [cpu]})
    try:
        async with running_node(config) as (node, _):
            assert os.sched_getaffinity(0) == cpus
            await node.controller.configure_now()
            assert os.sched_getaffinity(0) == {cpu}
            deciding = {threading.get_native_id(), node._path.pipeline._thread.native_id}
            others = [each for each in threading.enumerate() if each.native_id not in deciding]
            assert len(others) > 1
            for each in others:
                assert each.native_id is not None
                assert os.sched_getaffinity(each.native_id) == cpus, each.name
    finally:
        os.sched_setaffinity(0, cpus)
