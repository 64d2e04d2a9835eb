"""Two processes that feed under one name: the first process keeps its place while it is connected."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import zmq.asyncio

from hltnode.client.feeder import Feeder, FeederRefusedError
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.transport.refusals import HelloRefusal
from tests.daemon.fakes import (
    SOURCES,
    InterceptedConnection,
    eventually,
    make_config,
    make_feeder,
    running_node,
    synthetic_meps,
)

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

FIRST, SECOND = 1, 2  # seeds of their events: the same MEP ids with other content


@asynccontextmanager
async def feeding_process(node: Node) -> AsyncIterator[tuple[Feeder, InterceptedConnection]]:
    """A feeder as of a process of its own, which ends without a message as a killed one does."""
    context = zmq.asyncio.Context()
    connection = InterceptedConnection(context, node)
    try:
        async with make_feeder(context, node, connection=connection) as feeder:
            yield feeder, connection
            connection.sends_messages = False
    finally:
        context.destroy(linger=0)


def kept(directory: Path) -> list[list[bytes]]:
    """The banks of the feeders in each kept event."""
    [path] = (directory / "out").glob("*_accepted_*.mdf")
    return [
        [bytes(bank.payload) for bank in record.banks()][: len(SOURCES)] for record in iter_records(path.read_bytes())
    ]


def refused_doubles(node: Node) -> int:
    return node.counters.hellos_refused[HelloRefusal.NAME_TAKEN]


async def test_a_second_process_of_a_name_is_refused_and_none_of_its_data_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.client.hello_refusals.PATIENCE_NS", 0)
    (tmp_path / "alone").mkdir()
    async with running_node(make_config(tmp_path / "alone")) as (node, _), feeding_process(node) as (feeder, _):
        assert (await feed_meps(synthetic_meps(20, seed=FIRST), [feeder])).complete
    async with running_node(make_config(tmp_path)) as (node, _), feeding_process(node) as (first, _):
        meps = list(synthetic_meps(20, seed=FIRST))
        for mep in meps[:10]:
            await first.offer(mep)
        async with feeding_process(node) as (second, _):
            with pytest.raises(FeederRefusedError, match="another process feeds as feeder, its last message"):
                await feed_meps(synthetic_meps(20, seed=SECOND), [second])
            assert second.fragments == 0
        assert (await feed_meps(meps[10:], [first])).complete
        assert refused_doubles(node) > 0
        assert first.node_session == node.session
        accounts = accounting(node.counters, node.builder)
        assert closes(accounts), accounts
    assert node.counters.fragments_received == 20 * len(SOURCES)
    assert kept(tmp_path) == kept(tmp_path / "alone")


async def test_a_process_that_is_restarted_takes_its_place(tmp_path: Path) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        meps = list(synthetic_meps(20))
        async with feeding_process(node) as (killed, _):
            for mep in meps[:10]:
                await killed.offer(mep)
            await eventually(lambda: killed.window.unacknowledged == 0)
        async with feeding_process(node) as (restarted, _):
            assert (await feed_meps(meps, [restarted])).complete
        # One refusal is possible if the hello overtakes the end of the old connection; the next hello is welcome.
        assert refused_doubles(node) <= 1
    assert len(kept(tmp_path)) == 20 * 8 // 2


async def test_a_process_that_returns_after_too_long_a_pause_stops_sending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.readout.run_feeders.SILENT_NS", 400_000_000)
    monkeypatch.setattr("hltnode.client.feeder.HELLO_SECONDS", 0.02)
    async with running_node(make_config(tmp_path)) as (node, _), feeding_process(node) as (first, connection):
        await eventually(lambda: first.window.limit > 0)
        connection.sends_messages = False
        async with feeding_process(node) as (second, _):
            await eventually(lambda: second.window.limit > 0)
            connection.sends_messages = True
            await eventually(lambda: refused_doubles(node) > 0 and not first.is_connected)
            assert first.window.limit == 0
            assert (await feed_meps(synthetic_meps(5), [second])).complete
