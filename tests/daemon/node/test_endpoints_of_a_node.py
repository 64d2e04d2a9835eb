"""Endpoints with IPv6 addresses, and the error of an endpoint that cannot be bound."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import zmq.asyncio

from hltnode.client.consumers import subscribe_decisions
from hltnode.daemon.common.vocabulary import Endpoint
from hltnode.daemon.common.zmq_sockets import BindError
from hltnode.daemon.configuration.node_sections import MAX_NAME, default_name
from hltnode.daemon.replay.single_node import feed_meps
from tests.daemon.fakes import eventually, make_config, make_feeder, running_node, synthetic_meps

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]


@pytest.fixture
async def context() -> AsyncIterator[zmq.asyncio.Context]:
    context = zmq.asyncio.Context()
    yield context
    context.destroy(linger=0)


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this machine has no IPv6")
async def test_a_node_on_addresses_of_ipv6_takes_data_and_sends_decisions(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    endpoints = dict.fromkeys(("data", "control", "decisions"), "tcp://[::1]:*")
    async with running_node(make_config(tmp_path, network=endpoints)) as (node, _):
        assert node.receiver.endpoint.startswith("tcp://[::1]:")
        connections = node.counters.operation.open_connections
        with subscribe_decisions(context.socket(zmq.SUB), node.publisher.endpoint, None):
            await eventually(lambda: connections[Endpoint.DECISIONS] == 1)
            async with make_feeder(context, node) as feeder:
                assert (await feed_meps(synthetic_meps(3), [feeder])).complete


async def test_a_failed_start_says_which_endpoint_and_why_also_if_the_limiter_ends_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.eventfd_write

    def late(descriptor: int, value: int) -> None:
        # As on a busy machine: the thread of the limiter ends before it is woken.
        until = time.monotonic() + 2
        while time.monotonic() < until and any(each.name == "connection-limiter" for each in threading.enumerate()):
            time.sleep(0.01)
        write(descriptor, value)

    monkeypatch.setattr(os, "eventfd_write", late)
    config = make_config(tmp_path, network={"control": f"ipc://{tmp_path}/missing/control"})
    with pytest.raises(BindError, match="missing/control cannot be bound: No such file or directory"):
        async with running_node(config):
            pass


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("node-7.example", "node-7.example"),
        ("(none)", "none"),
        ("", "node"),
        ("_-.", "node"),
        (80 * "n", MAX_NAME * "n"),
        (62 * "n" + ".example", 62 * "n"),
        ("gr\u00fcn host", "gr-n-host"),
    ],
)
def test_the_default_name_of_a_node_is_valid_for_any_host_name(host: str, name: str, tmp_path: Path) -> None:
    assert default_name(host) == name
    config: Any = make_config(tmp_path, node={"name": default_name(host)})
    assert config.node.name == name
