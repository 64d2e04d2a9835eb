"""The outputs of a node over real sockets: kept events, error stream, monitoring, and the disk under each policy."""

import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from hltnode.daemon.common.vocabulary import DeadTimeReason, EventStream, OutputName
from hltnode.daemon.monitoring.health import Condition
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.transport.decisions import decode_decision
from hltnode.protocol.transport.event_message import ACCEPTED, ERROR, decode_event_header
from tests.daemon.fakes import RUN, SOURCES, eventually, make_config, make_feeder, running_node, synthetic_meps

ANYWHERE = "tcp://127.0.0.1:*"


@pytest.fixture
async def context() -> AsyncIterator[zmq.asyncio.Context]:
    context = zmq.asyncio.Context()
    yield context
    context.destroy(linger=0)


def event_number(record: bytes) -> int:
    [event] = iter_records(record)
    return int.from_bytes(event.banks()[0].payload[:8], "little")


@pytest.mark.loopback
@pytest.mark.usefixtures("nothing_is_left_behind")
async def test_accepted_events_are_sent_on_a_socket_with_consecutive_numbers(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    config = make_config(tmp_path, events={"endpoint": ANYWHERE})
    async with running_node(config) as (node, _), make_feeder(context, node) as feeder:
        with context.socket(zmq.PULL) as consumer:
            consumer.connect(node.outputs.events[EventStream.ACCEPTED].endpoint)
            report = await feed_meps(synthetic_meps(10), [feeder])
            messages = [await consumer.recv_multipart() for _ in range(40)]
    assert report.complete
    headers = [decode_event_header(header) for header, _ in messages]
    assert [header.sequence for header in headers] == list(range(40))
    assert {(header.stream, header.run) for header in headers} == {(ACCEPTED, RUN)}
    assert sorted(event_number(record) for _, record in messages) == [n for n in range(80) if n % 2]


@pytest.mark.loopback
@pytest.mark.usefixtures("nothing_is_left_behind")
async def test_decisions_wait_for_a_slow_subscriber_as_long_as_configured(tmp_path: Path) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        assert node.publisher.sender.drop_after_ns == 50_000_000
    async with running_node(make_config(tmp_path, decisions={"drop_after_ms": 7})) as (node, _):
        assert node.publisher.sender.drop_after_ns == 7_000_000


@pytest.mark.loopback
@pytest.mark.usefixtures("nothing_is_left_behind")
async def test_without_a_consumer_the_policy_wait_holds_back_acknowledgements_and_reports_it(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.output.output_set.REPORTED_WAIT_NS", 20_000_000)
    config = make_config(tmp_path, events={"endpoint": ANYWHERE})
    async with running_node(config) as (node, _), make_feeder(context, node) as feeder:
        for mep in synthetic_meps(2):
            await feeder.offer(mep)
        await eventually(lambda: Condition.OUTPUTS in node.health.problems(node.health.loop_tick_ns))
        assert "events has waited for its consumer" in str(node.health.output_problem)
        assert feeder.window.unacknowledged == 2
        with context.socket(zmq.PULL) as consumer:
            consumer.connect(node.outputs.events[EventStream.ACCEPTED].endpoint)
            await eventually(lambda: feeder.window.unacknowledged == 0)
            await eventually(lambda: node.health.output_problem is None)


@pytest.mark.loopback
@pytest.mark.usefixtures("nothing_is_left_behind")
async def test_without_a_consumer_the_policy_drop_new_counts_what_it_drops(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    config = make_config(tmp_path, events={"endpoint": ANYWHERE, "policy": "drop_new"})
    async with running_node(config) as (node, _), make_feeder(context, node) as feeder:
        assert (await feed_meps(synthetic_meps(5), [feeder])).complete
    output = node.counters.outputs[OutputName.EVENTS]
    assert (output.sent, sum(output.dropped.values())) == (0, 20)


@pytest.mark.loopback
@pytest.mark.usefixtures("nothing_is_left_behind")
async def test_flagged_events_are_sent_on_the_error_socket(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    builder = {"expected_sources": (*SOURCES, 7777), "mep_timeout_ms": 50, "on_timeout": "error"}
    config = make_config(tmp_path, builder=builder, errors={"endpoint": ANYWHERE, "kind": "pub"})
    async with running_node(config) as (node, _), make_feeder(context, node) as feeder:
        with context.socket(zmq.SUB) as consumer:
            consumer.subscribe(ERROR)
            consumer.connect(node.outputs.events[EventStream.ERROR].endpoint)
            first = 0
            while not await consumer.poll(50):  # until the subscription is received
                assert first < 100
                await feeder.offer(next(iter(synthetic_meps(1, first=first))))
                first += 1
            header, record = await consumer.recv_multipart()
    assert decode_event_header(header).stream == ERROR
    assert event_number(record) < 8 * first


@pytest.mark.loopback
@pytest.mark.usefixtures("nothing_is_left_behind")
@pytest.mark.parametrize("content", ["decisions", "events"])
async def test_a_monitor_gets_its_sample_and_a_missing_monitor_holds_back_nothing(
    tmp_path: Path, context: zmq.asyncio.Context, content: str
) -> None:
    monitor = {"endpoint": ANYWHERE, "content": content, "fraction": 0.5, "max_rate": 1e6}
    async with running_node(make_config(tmp_path, monitor=monitor)) as (node, _), make_feeder(context, node) as feeder:
        with context.socket(zmq.SUB) as consumer:
            consumer.subscribe(b"")
            assert node.outputs.monitor_endpoint is not None
            consumer.connect(node.outputs.monitor_endpoint)
            assert (await feed_meps(synthetic_meps(20), [feeder])).complete
            parts = await consumer.recv_multipart()
    if content == "decisions":
        assert decode_decision(parts[0]).run == RUN
        assert node.counters.outputs[OutputName.MONITOR].sent == 10
    else:
        assert decode_event_header(parts[0]).run == RUN
        output = node.counters.outputs[OutputName.MONITOR]
        assert output.sent + sum(output.dropped.values()) == 40


@pytest.mark.loopback
@pytest.mark.usefixtures("nothing_is_left_behind")
async def test_a_full_disk_holds_back_the_credits_and_feeding_continues_when_there_is_room(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.output.output_stage.RETRY_SECONDS", 0.02)
    full = True
    write = os.write

    def write_to_full_disk(descriptor: int, data: memoryview) -> int:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
        monkeypatch.setattr("hltnode.daemon.storage.event_writer.os.write", write_to_full_disk)
        offered = 0
        meps = list(synthetic_meps(2000))
        while node.counters.dead_time[DeadTimeReason.DISK] == 0.0:
            if feeder.window.limit > offered:
                await feeder.offer(meps[offered])
                offered += 1
            else:
                await eventually(
                    lambda: (
                        node.counters.dead_time[DeadTimeReason.DISK] > 0.0 or feeder.window.limit > offered  # noqa: B023
                    )
                )
        assert "No space left" in node.health.problems(node.health.loop_tick_ns)[Condition.DISK]
        assert feeder.window.limit == offered < len(meps)
        full = False
        for mep in meps[offered:]:
            await feeder.offer(mep)
        await eventually(lambda: feeder.window.unacknowledged == 0)
        assert node.health.disk_problem is None
    numbers = [
        int.from_bytes(record.banks()[0].payload[:8], "little")
        for path in (tmp_path / "out").glob("*.mdf")
        for record in iter_records(path.read_bytes())
    ]
    assert sorted(numbers) == [n for n in range(8 * len(meps)) if n % 2]


@pytest.mark.loopback
@pytest.mark.usefixtures("nothing_is_left_behind")
async def test_with_drop_new_a_full_disk_does_not_hold_back_acknowledgements(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses = False
    write = os.write

    def write_to_full_disk(descriptor: int, data: memoryview) -> int:
        if refuses and "_accepted_" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr("hltnode.daemon.storage.event_writer.os.write", write_to_full_disk)
    config = make_config(tmp_path, output={"policy": "drop_new"})
    async with running_node(config) as (node, _), make_feeder(context, node) as feeder:
        for full in (False, True, False):
            refuses = full
            for mep in synthetic_meps(4, first=feeder.window.next_mep):
                await feeder.offer(mep)
            await eventually(lambda: feeder.window.unacknowledged == 0)
    stream = node.counters.writer.streams[EventStream.ACCEPTED]
    assert stream.events + stream.dropped == 48
