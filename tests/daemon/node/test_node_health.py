"""/healthz of a node whose events do not leave, and the free space for events."""

import asyncio
import errno
import json
import math
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest
import zmq.asyncio

from hltnode.daemon.common.vocabulary import DeadTimeReason
from hltnode.daemon.machine.filesystem_identity import filesystem_identity
from hltnode.daemon.monitoring.health import Condition
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.protocol.transport.run_control_messages import RunState
from tests.daemon.fakes import SOURCES, eventually, make_config, make_feeder, running_node, synthetic_meps
from tests.daemon.pages import metric, status_page

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]


def healthz(port: int) -> tuple[int, dict[str, str]]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as page:
            return page.status, json.load(page)["problems"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["problems"]


async def healthz_of(node: Node) -> tuple[int, dict[str, str]]:
    return await asyncio.to_thread(healthz, node.http_port)


async def test_a_node_without_data_is_not_ready_while_its_journal_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.output.output_stage.CHECK_SECONDS", 0.01)
    config = make_config(tmp_path)
    async with running_node(config) as (node, _):
        [journal] = config.output.directory.glob("*.journal")

        def problem() -> str | None:
            return node.health.problems(node.clock.now_ns).get(Condition.DISK)

        assert problem() is None
        journal.rename(tmp_path / "away")
        await eventually(lambda: problem() is not None)
        assert (problem() or "").startswith(f"{journal}: it was removed or replaced")
        (tmp_path / "away").rename(journal)
        await eventually(lambda: problem() is None)


async def test_a_node_without_its_consumer_is_unhealthy_and_continues(tmp_path: Path) -> None:
    sections: dict[str, Mapping[str, object]] = {
        "node": {"unhealthy_after_ms": 1500},
        "events": {"endpoint": "tcp://127.0.0.1:*", "queue": 1, "policy": "wait"},
    }
    with zmq.asyncio.Context() as context:
        async with running_node(make_config(tmp_path, **sections)) as (node, _), make_feeder(context, node) as feeder:
            assert await healthz_of(node) == (200, {})
            feeding = asyncio.create_task(feed_meps(synthetic_meps(60), [feeder]))
            await eventually(lambda: node.health.health_problems(node.clock.now_ns), 10.0)
            code, problems = await healthz_of(node)
            assert code == 503
            assert "no built MEP acknowledged" in problems["acknowledgements"]
            assert "events has waited for its consumer" in problems["acknowledgements"]
            assert await asyncio.to_thread(metric, node.http_port, "hltnode_healthy") == 0
            assert node.state is RunState.RUNNING
            [output] = node.outputs.events.values()
            with context.socket(zmq.PULL) as consumer:
                consumer.connect(output.endpoint)
                while not feeding.done():
                    await asyncio.wait((asyncio.ensure_future(consumer.poll(50)),))
                    while await consumer.poll(0):
                        await consumer.recv_multipart()
                assert feeding.result().complete
            assert await healthz_of(node) == (200, {})


async def test_a_disk_that_refuses_for_long_makes_the_node_unhealthy_until_it_takes_events_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.output.output_stage.RETRY_SECONDS", 0.02)
    full = [True]
    write = os.write

    def write_to_full_disk(descriptor: int, data: memoryview) -> int:
        if full[0] and len(data) > 100:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    config = make_config(tmp_path, node={"unhealthy_after_ms": 300})
    with zmq.asyncio.Context() as context:
        async with running_node(config) as (node, _), make_feeder(context, node) as feeder:
            monkeypatch.setattr("hltnode.daemon.storage.file_bytes.os.write", write_to_full_disk)
            feeding = asyncio.create_task(feed_meps(synthetic_meps(20), [feeder]))
            await eventually(lambda: len(node.health.health_problems(node.clock.now_ns)) == 2, 10.0)
            code, problems = await healthz_of(node)
            assert code == 503
            assert "No space left on device, for" in problems["disk"]
            assert "No space left on device" in problems["acknowledgements"]
            full[0] = False
            assert (await feeding).complete
            await eventually(lambda: not node.health.health_problems(node.clock.now_ns))


async def test_waiting_for_a_slow_feeder_is_dead_time_of_its_own_and_not_unhealthy(tmp_path: Path) -> None:
    config = make_config(tmp_path, node={"unhealthy_after_ms": 300}, builder={"min_feeders": 2, "max_feeders": 2})
    with zmq.asyncio.Context() as context:
        async with (
            running_node(config) as (node, _),
            make_feeder(context, node, name="fast", sources=SOURCES[:2]) as fast,
            make_feeder(context, node, name="slow", sources=SOURCES[2:]) as slow,
        ):
            feeding = asyncio.create_task(feed_meps(synthetic_meps(200), [fast]))
            await eventually(lambda: node.counters.dead_time[DeadTimeReason.FEEDER] > 0.8, 10.0)
            assert await healthz_of(node) == (200, {})
            status = await asyncio.to_thread(status_page, node.http_port)
            assert status is not None
            assert status["oldest_open_mep"] == {"mep": 0, "n_missing": 2, "missing": list(SOURCES[2:])}
            assert (await feed_meps(synthetic_meps(200), [slow])).complete
            assert (await feeding).complete
            assert node.counters.meps_closed["complete"] == 200  # type: ignore[index]
            assert node.counters.dead_time[DeadTimeReason.COMPUTING] < 0.5


async def test_the_free_space_of_the_output_directory_is_shown(tmp_path: Path) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        await eventually(lambda: node.status.full()["output_free_bytes"] is not None)
        free = os.statvfs(tmp_path)
        filesystem = filesystem_identity(tmp_path)
        assert node.status.full()["output_filesystem"] == filesystem
        name = f'hltnode_output_free_bytes{{filesystem="{filesystem}"}}'
        shown = await asyncio.to_thread(metric, node.http_port, name)
        assert math.isclose(shown, free.f_bavail * free.f_frsize, rel_tol=0.2)
