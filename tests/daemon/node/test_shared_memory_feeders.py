"""A node that reads the fragments of feeders in their memory: the same as over tcp, whatever happens meanwhile."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from hltnode.client.fault_injection import FaultInjector, FaultPlan
from hltnode.client.feeder import Feeder, FeederIdentity, FeederRefusedError
from hltnode.client.mep import FeedMep
from hltnode.client.plain import Feeder as PlainFeeder
from hltnode.client.shared_memory import SharedMemory, SharedMemoryError
from hltnode.client.sockets import FeederConnection, FeederMemory
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.transport.decisions import MepDecision, decode_decision
from hltnode.protocol.transport.shared_memory import MemoryRefusal
from tests.daemon.fakes import RUN, SOURCES, eventually, make_config, make_feeder, running_node, synthetic_meps
from tests.daemon.pages import all_metrics

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

NBYTES = 1 << 20


@pytest.fixture
def context() -> Iterator[zmq.asyncio.Context]:
    with zmq.asyncio.Context() as context:
        yield context


@pytest.fixture
def memory() -> Iterator[SharedMemory]:
    memory = SharedMemory(NBYTES)
    yield memory
    memory.close()


def config_of(directory: Path, **sections: dict[str, object]) -> NodeConfig:
    return make_config(directory, shared_memory={"socket": str(directory / "memory.sock")}, **sections)


def connection(context: zmq.asyncio.Context, node: Node, memory: SharedMemory) -> FeederConnection:
    path = node.config.shared_memory.socket
    assert path is not None
    return FeederMemory(context, str(path), node.control.endpoint, memory)


def check_accounts(node: Node) -> None:
    accounts = accounting(node.counters, node.builder)
    assert closes(accounts), accounts


async def decisions_of(
    context: zmq.asyncio.Context, node: Node, feeder: Feeder, n_meps: int, meps: Iterator[FeedMep]
) -> list[MepDecision]:
    with context.socket(zmq.SUB) as subscriber:
        subscriber.subscribe(b"")
        subscriber.connect(node.publisher.endpoint)
        await eventually(lambda: node.counters.decisions.subscribers)
        async with feeder:
            report = await feed_meps(meps, [feeder])
        assert report.complete, report
        return sorted([decode_decision(await subscriber.recv()) for _ in range(n_meps)], key=lambda d: d.mep)


async def test_decisions_and_files_are_those_of_the_same_meps_over_tcp(
    tmp_path: Path, context: zmq.asyncio.Context, memory: SharedMemory
) -> None:
    kept = []
    decided = []
    for way in ("tcp", "shm"):
        (tmp_path / way).mkdir()
        async with running_node(config_of(tmp_path / way)) as (node, _):
            over = connection(context, node, memory) if way == "shm" else None
            feeder = make_feeder(context, node, connection=over)
            decisions = await decisions_of(context, node, feeder, 60, synthetic_meps(60))
            check_accounts(node)
            assert (node.counters.shared_memory.range_messages > 0) is (way == "shm")
            metrics = await asyncio.to_thread(all_metrics, node.http_port)
            assert metrics["hltnode_shared_memory_left_total"] == 0
        decided.append([(d.mep, d.accepted, d.lines, d.flags, d.close_reason) for d in decisions])
        [path] = (tmp_path / way / "out").glob("*accepted*.mdf")
        records = iter_records(path.read_bytes())
        kept.append(sorted(bytes(bank.payload) for record in records for bank in record.banks()))
    assert decided[0] == decided[1]
    assert len(kept[0]) > 60 * 4 * len(SOURCES)
    assert kept[0] == kept[1]


async def test_each_transport_fault_is_recovered_as_over_tcp(
    tmp_path: Path, context: zmq.asyncio.Context, memory: SharedMemory
) -> None:
    async with running_node(config_of(tmp_path)) as (node, _):
        feeder = make_feeder(context, node, connection=connection(context, node, memory))
        feeder.faults = FaultInjector(FaultPlan.parse("duplicate=0.1,reorder=0.1,corrupt=0.1"), 1)
        async with feeder:
            report = await feed_meps(synthetic_meps(40), [feeder])
        assert all(count for name, count in report.injected.items() if name in ("duplicate", "reorder", "corrupt"))
        assert report.unacknowledged == 0
        assert set(report.refused) <= {"late"}
        assert node.counters.fragments_rejected["bad_crc"] > 0  # type: ignore[index]
        check_accounts(node)


async def test_two_feeders_of_one_process_share_its_memory(
    tmp_path: Path, context: zmq.asyncio.Context, memory: SharedMemory
) -> None:
    async with running_node(config_of(tmp_path, builder={"min_feeders": 2, "max_feeders": 2})) as (node, _):
        feeders = [
            make_feeder(context, node, connection=connection(context, node, memory), name=name, sources=sources)
            for name, sources in (("one", SOURCES[:2]), ("two", SOURCES[2:]))
        ]
        async with feeders[0], feeders[1]:
            report = await feed_meps(synthetic_meps(40), feeders)
            assert node.counters.shared_memory.segments == 2
        assert report.complete
        check_accounts(node)


async def test_meps_wait_for_room_in_a_small_memory(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    # Of each MEP 4 frames of up to 600 bytes: the memory holds fewer MEPs than the node gives credits for.
    memory = SharedMemory(32 * 1024)
    async with running_node(config_of(tmp_path)) as (node, engine):
        engine.behaviour.seconds = 0.02
        async with make_feeder(context, node, connection=connection(context, node, memory)) as feeder:
            report = await feed_meps(synthetic_meps(100), [feeder])
        assert report.complete
        assert node.counters.meps_acknowledged == 100
    memory.close()


async def test_a_mep_too_large_for_the_memory_is_reported(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    memory = SharedMemory(8 * 1024)
    async with running_node(config_of(tmp_path)) as (node, _):
        feeder = make_feeder(context, node, connection=connection(context, node, memory))
        async with feeder:
            with pytest.raises(SharedMemoryError, match="feed fewer events per MEP"):
                await feed_meps(synthetic_meps(1, size=400), [feeder])
    memory.close()


async def test_a_plain_program_feeds_over_shared_memory(tmp_path: Path) -> None:
    async with running_node(config_of(tmp_path)) as (node, _):

        def feed() -> None:
            identity = FeederIdentity(
                name="plain", run=RUN, sources=SOURCES, events_per_mep=8, max_fragment_bytes=60_000
            )
            memory = SharedMemory(NBYTES)
            with PlainFeeder(
                f"shm://{node.config.shared_memory.socket}",
                node.control.endpoint,
                identity=identity,
                shared_memory=memory,
            ) as feeder:
                for mep in synthetic_meps(20):
                    feeder.offer(mep, timeout=20)
                feeder.finish(timeout=20)
            memory.close()

        await asyncio.to_thread(feed)
        assert node.counters.meps_acknowledged == 20
        assert node.counters.shared_memory.range_messages > 0
    zmq.asyncio.Context.instance().term()


async def test_a_node_that_was_killed_gets_everything_again_that_it_had_not_acknowledged(
    tmp_path: Path, context: zmq.asyncio.Context, memory: SharedMemory
) -> None:
    """The connections end like those of a killed process; the journal knows the acknowledged MEPs."""
    port = 0
    meps = list(synthetic_meps(60))
    async with running_node(config_of(tmp_path)) as (first, _):
        port = int(first.control.endpoint.rpartition(":")[2])
        feeder = make_feeder(context, first, connection=connection(context, first, memory))
        await feeder.__aenter__()
        for mep in meps[:30]:
            await feeder.offer(mep)
        await eventually(lambda: first.counters.meps_acknowledged > 5)
        assert first.memory_receiver is not None
        first.memory_receiver.close()
    assert not (tmp_path / "memory.sock").exists()
    again = config_of(tmp_path, network={"control": f"tcp://127.0.0.1:{port}"})
    async with running_node(again) as (second, _):
        for mep in meps[30:]:
            await feeder.offer(mep)
        await feeder.finish(59)
        assert feeder.window.unacknowledged == 0
        assert second.counters.shared_memory.segments == 1
        total = first.counters.meps_acknowledged + second.counters.meps_acknowledged
        assert total == 60
        check_accounts(second)
        await feeder.__aexit__(None, None, None)


async def test_a_connection_ended_by_the_node_is_reopened_without_loss(
    tmp_path: Path, context: zmq.asyncio.Context, memory: SharedMemory
) -> None:
    async with running_node(config_of(tmp_path)) as (node, _):
        receiver = node.memory_receiver
        assert receiver is not None
        async with make_feeder(context, node, connection=connection(context, node, memory)) as feeder:
            for mep in synthetic_meps(20):
                await feeder.offer(mep)
            for each in list(receiver._connections):
                receiver._forget(each)
            for mep in synthetic_meps(20, first=20):
                await feeder.offer(mep)
            await feeder.finish(39)
        assert node.counters.meps_acknowledged == 40
        check_accounts(node)


async def test_the_memory_of_a_killed_feeder_is_counted_and_released_and_its_successor_continues(
    tmp_path: Path, context: zmq.asyncio.Context, memory: SharedMemory
) -> None:
    async with running_node(config_of(tmp_path)) as (node, _):
        program = [
            sys.executable, "-m", "tests.daemon.node.shared_memory_feeder",
            f"shm://{node.config.shared_memory.socket}", node.control.endpoint,
        ]  # fmt: skip
        with subprocess.Popen(program) as killed:
            await eventually(lambda: node.counters.meps_acknowledged >= 5)
            killed.send_signal(signal.SIGSTOP)
            assert node.counters.shared_memory.segments == 1
            killed.kill()
        await eventually(lambda: node.counters.shared_memory.left == 1)
        assert (node.counters.shared_memory.segments, node.counters.shared_memory.bytes) == (0, 0)
        assert "memfd:hltnode-feeder" not in Path("/proc/self/maps").read_text()
        feeder = make_feeder(context, node, connection=connection(context, node, memory), name="killed")
        async with feeder:
            report = await feed_meps(synthetic_meps(40), [feeder])
        assert report.unacknowledged == 0
        assert set(report.refused) <= {"late"}
        check_accounts(node)


async def test_a_node_that_offers_no_shared_memory_is_named_as_the_reason(
    tmp_path: Path, context: zmq.asyncio.Context, memory: SharedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.client.memory_socket.PATIENCE_SECONDS", 0.5)
    async with running_node(make_config(tmp_path)) as (node, _):
        over = FeederMemory(context, str(tmp_path / "memory.sock"), node.control.endpoint, memory)
        async with make_feeder(context, node, connection=over) as feeder:
            with pytest.raises(FeederRefusedError, match=r"shared_memory\.socket"):
                await feed_meps(synthetic_meps(10), [feeder])


async def test_a_feeder_with_memory_above_the_limit_of_the_node_reports_it(
    tmp_path: Path, context: zmq.asyncio.Context, memory: SharedMemory
) -> None:
    config = make_config(
        tmp_path, shared_memory={"socket": str(tmp_path / "memory.sock"), "max_segment_bytes": NBYTES // 2}
    )
    async with running_node(config) as (node, _):
        async with make_feeder(context, node, connection=connection(context, node, memory)) as feeder:
            with pytest.raises(FeederRefusedError, match=f"expected 1 to {NBYTES // 2}"):
                await feed_meps(synthetic_meps(10), [feeder])
        assert node.counters.shared_memory.refused[MemoryRefusal.TOO_LARGE] == 1
