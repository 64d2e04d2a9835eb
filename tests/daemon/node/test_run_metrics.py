"""Metrics of sources and lost feeders start and end with their run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import zmq.asyncio

from hltnode.daemon.node.node import Node
from tests.daemon.fakes import (
    RUN,
    SOURCES,
    InterceptedConnection,
    eventually,
    make_config,
    make_feeder,
    running_node,
    synthetic_meps,
)
from tests.daemon.pages import all_metrics

pytestmark = pytest.mark.loopback


async def metrics_of(node: Node) -> dict[str, float]:
    return await asyncio.to_thread(all_metrics, node.http_port)


def sources_of(metrics: dict[str, float]) -> set[int]:
    return {int(series.split('"')[1]) for series in metrics if series.startswith("hltnode_source_")}


async def test_sources_have_series_while_their_run_is_active(tmp_path: Path) -> None:
    with zmq.asyncio.Context() as context:
        async with running_node(make_config(tmp_path)) as (node, _):
            before = await metrics_of(node)
            assert (sources_of(before), before["hltnode_run_active"], before["hltnode_sources_expected"]) == (
                set(),
                0,
                0,
            )
            for run, sources in ((RUN, SOURCES), (RUN + 1, SOURCES[:2])):
                async with make_feeder(context, node, run=run, sources=sources) as feeder:
                    for mep in synthetic_meps(3, sources=sources):
                        await feeder.offer(mep)
                    await eventually(lambda: feeder.window.unacknowledged == 0)
                    during = await metrics_of(node)
                    assert sources_of(during) == set(sources)
                    assert (during["hltnode_run_active"], during["hltnode_sources_expected"]) == (1, len(sources))
                    assert (during["hltnode_run_number"], during["hltnode_feeders_lost"]) == (run, 0)
                    await feeder.finish(2)
                await eventually(lambda: not node.status.state().run_active)
                assert sources_of(await metrics_of(node)) == set()


async def test_a_feeder_that_falls_silent_in_its_run_is_lost_until_it_says_hello_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.readout.run_feeders.SILENT_NS", 1_500_000_000)
    with zmq.asyncio.Context() as context:
        async with running_node(make_config(tmp_path)) as (node, _):
            connection = InterceptedConnection(context, node)
            async with make_feeder(context, node, connection=connection, name="west") as feeder:
                for mep in synthetic_meps(3):
                    await feeder.offer(mep)
                await eventually(lambda: feeder.window.unacknowledged == 0)
                connection.sends_messages = False
                await eventually(lambda: node.status.state().lost_feeders)
                lost = await metrics_of(node)
                assert lost["hltnode_feeders_lost"] == 1
                assert lost['hltnode_feeder_lost{name="west"}'] == 1
                connection.sends_messages = True
                await eventually(lambda: not node.status.state().lost_feeders)
                found = await metrics_of(node)
                assert (found["hltnode_feeders_lost"], found["hltnode_run_active"]) == (0, 1)
                assert 'hltnode_feeder_lost{name="west"}' not in found
